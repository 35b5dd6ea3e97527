// The merge loop where each merge serves one language (Parity-aware BPE).
#include <algorithm>
#include <utility>

#include "core/merge_loop.h"
#include "core/stop.h"

namespace vocabshift {

namespace {

constexpr Count kFloorStep = 8;
constexpr std::size_t kTickEvery = 64;    // merges
constexpr std::size_t kMemoryEvery = 64;  // merges
// The index keeps the room of pairs that are gone: it is built anew where that may be half of it.
constexpr std::size_t kRoom = std::size_t{1} << 26;

std::uint32_t section_of(std::uint64_t key) {
  return static_cast<std::uint32_t>(key >> 56 | (key >> 24 & 255) << 8);
}

}  // namespace

// Counts all pairs of all sections; those of languages wait in their queues.
void MergeLoop::index_by_language() {
  if (floor_ != 0) sequences_.compact();
  floor_ = index_.build(sequences_, vocabulary_.size(), [](Count) { return Count{1}; });
  for (LanguageQueue& of_language : queues_) {
    of_language.queue.assign({});
    of_language.waiting.clear();
    of_language.floor = ~Count{0};
  }
  index_.for_each([&](const PairIndex::Entry& entry) {
    push(section_of(entry.key), {entry.count, entry.key & ~Pair::kSectionMask});
  });
  note_memory(bytes_of_queues());
}

std::size_t MergeLoop::bytes_of_queues() const {
  std::size_t bytes = 0;
  for (const LanguageQueue& each : queues_) {
    bytes += each.queue.memory_bytes() + each.waiting.capacity() * sizeof(Candidate);
  }
  return bytes;
}

// Takes in those that wait above a lower floor; false where there is no lower one. What waits
// counts no more than it says, so that none of the floor's count is left behind.
bool MergeLoop::refill(LanguageQueue& of_language, Count lowest) {
  if (of_language.floor <= lowest) return false;
  Count largest = 0;
  for (const Candidate& candidate : of_language.waiting) {
    largest = std::max(largest, candidate.count);
  }
  of_language.floor = std::max(lowest, std::min(of_language.floor, largest) / kFloorStep);
  const auto rare = std::partition(
      of_language.waiting.begin(), of_language.waiting.end(),
      [&](const Candidate& candidate) { return candidate.count < of_language.floor; });
  may_stop(of_language.waiting.size() * 4);
  of_language.queue.assign({rare, of_language.waiting.end()});
  of_language.waiting.erase(rare, of_language.waiting.end());
  return true;
}

void MergeLoop::merge_in_sections(const Merge& merge, bool is_reused, LanguageChoice& choice,
                                  bool measures_others) {
  const Pair pair{merge.left, merge.right};
  const auto languages = static_cast<std::uint32_t>(choice.languages());
  const std::uint32_t sections = measures_others ? 2 * languages : languages;
  for (section_ = 0; section_ < sections; ++section_) {
    const PairIndex::Entry* entry = index_.find(pair.key() | Pair::section_key(section_));
    if (!entry || entry->count == 0) continue;
    const Chunks chunks{entry->chunks, entry->chunk_count};
    const Count saved = apply(pair, merge.product, chunks, is_reused);
    const bool is_language = section_ < languages;
    if (is_language) {
      tokens_saved_ += saved;
      saved_by_language_[section_] += saved;
    }
    if (is_language != measures_others) choice.shrink(section_ % languages, saved);
  }
}

Stopped MergeLoop::run_by_language(const Limits& limits, LanguageChoice& choice,
                                   bool measures_others, const Tick& tick) {
  const Count lowest = std::max<Count>(limits.min_frequency, 1);
  const std::size_t start = vocabulary_.size();
  prepare(limits);
  queues_.resize(choice.languages());
  saved_by_language_.resize(choice.languages());
  for (LanguageQueue& of_language : queues_) {
    of_language.queue.order_by(vocabulary_, limits.tie_break);
  }
  index_by_language();
  std::size_t after_build = index_.memory_bytes();
  std::string product;
  while (vocabulary_.size() < limits.vocab_size) {
    widen_if_full();
    const std::size_t language = choice.next();
    if (language == LanguageChoice::kNone) {
      return lowest > 1 ? Stopped::kMinFrequency : Stopped::kNoPairLeft;
    }
    LanguageQueue& of_language = queues_[language];
    if (of_language.queue.empty()) {
      if (!refill(of_language, lowest)) choice.exhausted(language);
      continue;
    }
    const Candidate top = of_language.queue.pop();
    const auto section = static_cast<std::uint32_t>(language);
    const PairIndex::Entry* entry = index_.find(top.key | Pair::section_key(section));
    if (!entry || entry->count == 0) continue;
    if (entry->count != top.count) {
      push(section, {entry->count, top.key});
      continue;
    }
    const Pair pair{static_cast<TokenId>(top.key >> 32), static_cast<TokenId>(top.key)};
    product.assign(vocabulary_[pair.left]);
    product.append(vocabulary_[pair.right]);
    if (!rule_.allows(product)) continue;
    TokenId id = vocabulary_.find(product);
    const bool is_duplicate = id != kNoToken;
    if (!is_duplicate) id = vocabulary_.add(product);
    merges_.push_back({pair.left, pair.right, id, top.count});
    served_.push_back(section);
    choice.served(language);
    merge_in_sections(merges_.back(), is_duplicate, choice, measures_others);
    if (merges_.size() % kMemoryEvery == 0) note_memory(bytes_of_queues());
    // As in run: pairs of a token that is made again gain occurrences.
    if (is_duplicate || index_.memory_bytes() > 2 * after_build + kRoom) {
      index_by_language();
      after_build = index_.memory_bytes();
    }
    if (tick && merges_.size() % kTickEvery == 0) {
      tick(vocabulary_.size() - start, limits.vocab_size - start);
    }
  }
  return Stopped::kVocabSize;
}

}  // namespace vocabshift
