#include "core/merge_loop.h"

#include <algorithm>

#include "core/platform.h"
#include "core/stop.h"
#include "core/threads.h"

namespace vocabshift {

namespace {

using ChunkAt = Sequences::ChunkAt;

constexpr std::size_t kAhead = 12;           // index entries to prefetch before the one being used
constexpr Count kFloorStep = 8;              // the floor falls by this factor at most
constexpr std::size_t kTickEvery = 1 << 14;  // chunks, and a merge costs as much as kMergeChunks
constexpr std::size_t kMergeChunks = 256;
constexpr std::size_t kArenaWordsPerChunk = 16;  // about
constexpr std::size_t kStopEvery = 1 << 12;      // occurrences

}  // namespace

MergeLoop::MergeLoop(Vocabulary vocabulary, Sequences sequences, MergeRule rule,
                     Duplicates duplicates, std::vector<bool> held)
    : vocabulary_(std::move(vocabulary)),
      sequences_(std::move(sequences)),
      rule_(std::move(rule)),
      duplicates_(duplicates),
      held_(std::move(held)) {}

bool MergeLoop::may_make(TokenId existing) const {
  if (duplicates_ != Duplicates::kReuseUnheld) return duplicates_ == Duplicates::kReuseId;
  return existing >= held_.size() || !held_[existing];
}

void MergeLoop::build_index(const std::function<Count(Count largest)>& choose_floor) {
  if (floor_ != 0) sequences_.compact();  // merges have emptied most of the room they took
  const std::size_t threads = std::clamp<std::size_t>(
      sequences_.arena_end() / (kArenaWordsPerChunk * chunks_per_thread_), 1, mergers_.size());
  floor_ = index_.build(sequences_, vocabulary_.size(), choose_floor, threads);
  std::vector<Candidate> candidates;
  candidates.reserve(index_.size());
  index_.for_each(
      [&](const PairIndex::Entry& entry) { candidates.push_back({entry.count, entry.key}); });
  queue_.assign(std::move(candidates));
}

void MergeLoop::prepare(const Limits& limits) {
  nothing_ = static_cast<TokenId>(std::max<std::size_t>(limits.vocab_size, vocabulary_.size()));
  mergers_.assign(std::max<std::size_t>(limits.threads, 1), ChunkMerger(nothing_));
  chunks_per_thread_ = std::max<std::size_t>(limits.chunks_per_thread, 1);
}

Stopped MergeLoop::run(const Limits& limits, const Tick& tick) {
  const Count lowest = std::max<Count>({limits.min_frequency, limits.lowest_floor, 1});
  prepare(limits);
  const std::size_t start = vocabulary_.size();
  if (floor_ == 0) queue_.order_by(vocabulary_, limits.tie_break);
  if (start < limits.vocab_size && floor_ == 0) {
    // By Zipf's law the k-th merge counts about 1/k of the first, on real text some times less.
    // Building the index costs more than keeping some thousands of pairs too many. A bad guess
    // costs one more build, never another result.
    const Count wanted = limits.vocab_size - start;
    build_index([&](Count largest) { return std::max(lowest, largest / 8 / wanted); });
  }
  std::string product;
  std::size_t chunks = 0;  // merged since the last tick
  while (vocabulary_.size() < limits.vocab_size) {
    widen_if_full();
    if (queue_.empty()) {
      if (floor_ > lowest) {
        // By the same law; so late that few merges are left, few pairs more are needed for them.
        const Count done = vocabulary_.size() - start + 1, all = limits.vocab_size - start;
        const Count step = std::min(kFloorStep, 2 * all / done + 1);
        build_index([&](Count) { return std::max(lowest, floor_ / step); });
        continue;
      }
      if (limits.lowest_floor > std::max<Count>(limits.min_frequency, 1)) return Stopped::kFloor;
      return lowest > 1 ? Stopped::kMinFrequency : Stopped::kNoPairLeft;
    }
    const Candidate top = queue_.pop();
    PairIndex::Entry* entry = index_.find(top.key);
    if (!entry || entry->count < floor_) continue;  // merged, or to be found again below the floor
    if (entry->count != top.count) {
      queue_.push({entry->count, top.key});
      continue;
    }
    const Pair pair{static_cast<TokenId>(top.key >> 32), static_cast<TokenId>(top.key)};
    product.assign(vocabulary_[pair.left]);
    product.append(vocabulary_[pair.right]);
    if (!rule_.allows(product)) continue;  // never queued again, so refused for good
    TokenId id = vocabulary_.find(product);
    const bool is_duplicate = id != kNoToken;
    if (is_duplicate && !may_make(id)) continue;
    if (!is_duplicate) id = vocabulary_.add(product);
    merges_.push_back({pair.left, pair.right, id, top.count});
    chunks += entry->chunk_count + kMergeChunks;
    if (!queue_.empty()) index_.prefetch(queue_.top().key);  // most likely the next merge
    tokens_saved_ += apply(pair, id, {entry->chunks, entry->chunk_count}, is_duplicate);
    if (duplicates_ == Duplicates::kReuseUnheld) {
      held_.resize(vocabulary_.size());
      held_[pair.left] = held_[pair.right] = true;
    }
    // Subtle: pairs of a reused id gain occurrences, which the index cannot take in.
    if (is_duplicate) build_index([&](Count) { return floor_; });
    if (tick && chunks > kTickEvery) {
      tick(vocabulary_.size() - start, limits.vocab_size - start);
      chunks = 0;
    }
  }
  return Stopped::kVocabSize;
}

void MergeLoop::widen_if_full() {
  if (!sequences_.is_narrow() || vocabulary_.size() < Sequences::kNarrowTokens) return;
  sequences_.widen();
  index_.rebuild(sequences_, floor_);
}

// Merges with all threads where the pair stands in many chunks; returns the tokens this saves.
// Subtle: where the product is a reused id, a product that follows a product may have been there
// before, and update_counts would take it for one of this merge. The caller counts anew.
Count MergeLoop::apply(Pair pair, TokenId product, Chunks chunks, bool is_reused) {
  const std::vector<Part> parts = parts_of(chunks);
  parallel_for(parts.size(), [&](std::size_t i) {
    mergers_[i].merge(sequences_, parts[i].chunks, pair, product);
  });
  for (std::size_t i = 0; i < parts.size(); ++i) {
    mergers_[i].merge(sequences_, parts[i].seam, pair, product);
    if (i > 0) mergers_[0].join(mergers_[i]);
  }
  const Count saved = mergers_[0].tokens_saved;
  const PairIndex::Entry* const next = queue_.empty() ? nullptr : index_.find(queue_.top().key);
  const Chunks coming =
      next && next->count > 0 ? Chunks(next->chunks, next->chunk_count) : Chunks();
  prefetch_to_read(coming.data());
  if (!is_reused) update_counts(pair, product);
  for (const ChunkAt at : coming.first(std::min(coming.size(), kAhead))) sequences_.prefetch(at);
  for (std::size_t i = 0; i < parts.size(); ++i) mergers_[i].clear();
  return saved;
}

// Cuts chunks into about equal parts between sequences. The last chunks of a part are kept for
// later, when no other thread writes what is read after their tokens.
std::vector<MergeLoop::Part> MergeLoop::parts_of(Chunks chunks) {
  std::vector<Part> parts;
  std::size_t begin = 0;
  const std::size_t count = std::min(mergers_.size(), chunks.size() / chunks_per_thread_);
  for (std::size_t i = 1; i < count; ++i) {
    std::size_t end = std::max(begin, chunks.size() * i / count);
    // Chunks of a long sequence come one after the other: give up where it does not end.
    const std::size_t last_try = end + Sequences::kChunkTokens;
    while (end < std::min(last_try, chunks.size()) && sequences_.chunk(chunks[end]).joined_before())
      ++end;
    if (end == last_try || end >= chunks.size()) continue;
    std::size_t seam = end;
    while (seam > begin && chunks[end] - chunks[seam - 1] < Sequences::kSeamWords) --seam;
    parts.push_back({chunks.subspan(begin, seam - begin), chunks.subspan(seam, end - seam)});
    begin = end;
  }
  parts.push_back({chunks.subspan(begin), {}});
  return parts;
}

// (x, left) -> (x, product) and (right, y) -> (product, y). A product that follows a product was
// first counted as (product, left) and is (product, product) in the end.
void MergeLoop::update_counts(Pair pair, TokenId product) {
  Neighbours& left = mergers_[0].left;
  Neighbours& right = mergers_[0].right;
  const std::uint64_t section = Pair::section_key(section_);
  const auto consume = [&](Pair consumed, Count count) {
    if (PairIndex::Entry* entry = index_.find(consumed.key() | section)) entry->count -= count;
  };
  const auto prefetch_key = [&](const Neighbours& side, std::size_t i, bool is_left) {
    if (i + kAhead >= side.touched_count) return;
    const TokenId token = side.touched[i + kAhead];
    index_.prefetch((is_left ? Pair{token, pair.left} : Pair{pair.right, token}).key() | section);
  };
  for (std::size_t i = 0; i < left.touched_count; ++i) {
    may_stop(8);
    prefetch_key(left, i, true);
    const TokenId token = left.touched[i];
    if (token != product && token != nothing_) {
      consume({token, pair.left}, left.by_token[token].sum);
    }
  }
  for (std::size_t i = 0; i < right.touched_count; ++i) {
    may_stop(8);
    prefetch_key(right, i, false);
    const TokenId token = right.touched[i];
    if (token != nothing_) consume({pair.right, token}, right.by_token[token].sum);
  }
  right.by_token[pair.left].sum -= left.by_token[product].sum;
  index_.remove(index_.find(pair.key() | section));
  born_.clear();
  add_new_pairs(&ChunkMerger::left, product, false);
  add_new_pairs(&ChunkMerger::right, product, true);
  for (const Candidate& candidate : born_) push(section_, candidate);
  if (queues_.empty()) note_memory(queue_.memory_bytes());
}

void MergeLoop::note_memory(std::size_t of_queues) {
  peak_memory_bytes_ =
      std::max(peak_memory_bytes_, sequences_.memory_bytes() + index_.memory_bytes() + of_queues);
}

void MergeLoop::push(std::uint32_t section, Candidate candidate) {
  if (queues_.empty()) return queue_.push(candidate);
  if (section >= queues_.size()) return;  // nobody merges for its sake
  LanguageQueue& of_language = queues_[section];
  if (candidate.count < of_language.floor) {
    of_language.waiting.push_back(candidate);
  } else {
    of_language.queue.push(candidate);
  }
}

void MergeLoop::add_new_pairs(Neighbours ChunkMerger::* which, TokenId product,
                              bool product_is_left) {
  Neighbours& side = mergers_[0].*which;
  Sequences::ChunkAt ignored;
  lists_.assign(1, {&ignored, 0});
  for (std::size_t i = 0; i < side.touched_count; ++i) {
    const TokenId token = side.touched[i];
    Neighbours::Neighbour& neighbour = side.by_token[token];
    may_stop(8);
    const std::size_t chunks = neighbour.chunk_count;
    neighbour.chunk_count = 0;
    if (neighbour.sum < floor_ || neighbour.sum == 0 || token == nothing_) continue;
    neighbour.chunk_count = static_cast<std::uint32_t>(lists_.size());  // from now on
    lists_.push_back({index_.allocate(chunks), 1});
    const Pair pair = product_is_left ? Pair{product, token} : Pair{token, product};
    index_.insert(pair.key() | Pair::section_key(section_), neighbour.sum,
                  {lists_.back().next, chunks});
    born_.push_back({neighbour.sum, pair.key()});
  }
  if (lists_.size() == 1) return;
  for (const ChunkMerger& merger : mergers_) {
    const Neighbours& seen = merger.*which;
    for (std::size_t i = 0; i < seen.occurrence_count; ++i) {
      if (i % kStopEvery == 0) may_stop(kStopEvery * 4);
      const Neighbours::Occurrence occurrence = seen.occurrences[i];
      ListEnd& list = lists_[side.by_token[occurrence.neighbour].chunk_count];
      *list.next = occurrence.chunk;
      list.next += list.step;
    }
  }
}

}  // namespace vocabshift
