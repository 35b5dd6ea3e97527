#include "core/picky_loop.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "core/stop.h"

namespace vocabshift {

namespace {

constexpr std::size_t kTickEvery = 64;     // merges
constexpr std::size_t kMemoryEvery = 256;  // merges
constexpr std::size_t kStalePlaces = 1024;

}  // namespace

PickyLoop::PickyLoop(PairScore score, MergeRule rule, double threshold)
    : score_(std::move(score)),
      rule_(std::move(rule)),
      threshold_(threshold),
      languages_(score_.languages()),
      pairs_(languages_),
      sums_(languages_) {
  if (!(threshold > 0 && threshold <= 1)) {
    throw std::invalid_argument("the threshold must be in (0, 1]");
  }
  const Vocabulary bytes = byte_vocabulary();
  for (TokenId id = 0; id < 256; ++id) {
    vocabulary_.add(bytes[id]);
    byte_ids_[static_cast<unsigned char>(bytes[id][0])] = id;
    add_token(id, {kNoToken, kNoToken});
  }
}

void PickyLoop::add_token(TokenId id, Pair parts) {
  tokens_.define(static_cast<std::uint32_t>(vocabulary_[id].size()));
  parts_.push_back(parts);
  present_.push_back(true);
  counts_.push_back(0);
  place_counts_.push_back(0);
  places_of_.emplace_back();
  ++present_count_;
  for (Side* side : {&left_, &right_}) {
    side->sums.resize((id + std::size_t{1}) * languages_);
    side->is_touched.resize(id + std::size_t{1});
    side->rows.resize(id + std::size_t{1});
  }
}

void PickyLoop::add_word(std::string_view word, std::span<const Weight> weights,
                         Count occurrences) {
  tokens_.add(word, byte_ids_);
  weights_.insert(weights_.end(), weights.begin(), weights.end());
  weight_ends_.push_back(weights_.size());
  occurrences_.push_back(occurrences);
}

std::span<const PickyLoop::Weight> PickyLoop::weights_of(Word word) const {
  return std::span<const Weight>(weights_).subspan(weight_ends_[word],
                                                   weight_ends_[word + 1] - weight_ends_[word]);
}

Stopped PickyLoop::run(std::size_t vocab_size, Count min_count, const Tick& tick) {
  min_count_ = std::max<Count>(min_count, 1);
  tokens_.finish();
  index_pairs();
  std::size_t merges = 0;
  while (present_count_ < vocab_size) {
    if (queue_.empty()) return min_count_ > 1 ? Stopped::kMinFrequency : Stopped::kNoPairLeft;
    const Candidate top = queue_.pop();
    const Row row = pairs_.find(top.key);
    // Forgotten, or queued again with more since.
    if (row == PlacedPairs::kNone || pairs_.queued(row) != top.count) continue;
    const Count score = score_of(row);
    if (score != top.count) {
      pairs_.queued(row) = score;
      if (score > 0) queue_.push({score, top.key});
      continue;
    }
    if (!take(row)) continue;
    if (tick && ++merges % kTickEvery == 0) tick(present_count_ - 256, vocab_size - 256);
  }
  return Stopped::kVocabSize;
}

// Pairs that count too little have no score.
Count PickyLoop::score_of(Row row) {
  const Count* counts = pairs_.counts(row);
  const Count all = std::accumulate(counts, counts + languages_, Count{0});
  return all < min_count_ ? 0 : score_(counts);
}

void PickyLoop::index_pairs() {
  std::vector<std::size_t> place_counts(std::size_t{1} << 16);
  const auto for_each_pair = [&](auto&& visit) {
    for (Word word = 0; word < tokens_.word_count(); ++word) {
      Place at = tokens_.begin(word);
      for (Place next; (next = tokens_.after(at)) != PlacedTokens::kNowhere; at = next) {
        may_stop(4);
        visit(Pair{tokens_.at(at), tokens_.at(next)}, word, at);
      }
    }
  };
  for_each_pair([&](Pair pair, Word, Place) { ++place_counts[pair.left << 8 | pair.right]; });
  std::vector<Row> rows(place_counts.size());
  for (TokenId pair = 0; pair < place_counts.size(); ++pair) {
    if (place_counts[pair] == 0) continue;
    pairs_.make_room(1);
    rows[pair] = pairs_.find_or_add(Pair{pair >> 8, pair & 255}.key());
    *pairs_.counts(rows[pair]) = 1;  // it occurs: making room must not take it
    changed_.push_back(rows[pair]);
    pairs_.places(rows[pair]).reserve(place_counts[pair]);
  }
  for (const Row row : changed_) *pairs_.counts(row) = 0;
  for_each_pair([&](Pair pair, Word word, Place at) {
    const Row row = rows[pair.left << 8 | pair.right];
    for (const Weight& weight : weights_of(word)) {
      pairs_.counts(row)[weight.language] += weight.count;
    }
    pairs_.places(row).push_back(at);
  });
  settle();
}

// Merges the best pair; false where it may not merge.
bool PickyLoop::take(Row row) {
  const std::uint64_t key = pairs_.key(row);
  const Pair pair{static_cast<TokenId>(key >> 32), static_cast<TokenId>(key)};
  std::string product(vocabulary_[pair.left]);
  product.append(vocabulary_[pair.right]);
  if (!rule_.allows(product)) return false;  // queued again only where it counts more
  TokenId id = vocabulary_.find(product);
  if (id == kNoToken) {
    id = vocabulary_.add(product);
    add_token(id, pair);
  } else if (!present_[id]) {
    present_[id] = true;
    ++present_count_;
  }
  merge_places(row, pair, id);
  const Count merged = events_.back().count;
  remove_if_rare(pair.left, merged);
  if (pair.right != pair.left) remove_if_rare(pair.right, merged);
  if (events_.size() % kMemoryEvery == 0) note_memory();
  return true;
}

// Queues pairs whose score has risen. All that changed are looked at, not only those that gained:
// a mean of rounded powers need not fall where its counts do.
void PickyLoop::settle() {
  for (const Row row : changed_) {
    may_stop(4);
    if (!pairs_.occurs(row)) {
      std::vector<Place>().swap(pairs_.places(row));
      continue;
    }
    const Count score = score_of(row);
    if (score <= pairs_.queued(row)) continue;
    pairs_.queued(row) = score;
    queue_.push({score, pairs_.key(row)});
  }
  changed_.clear();
}

void PickyLoop::forget_stale_places(TokenId token) {
  std::vector<Place>& places = places_of_[token];
  if (places.size() <= 2 * place_counts_[token] + kStalePlaces) return;
  std::erase_if(places, [&](Place at) { return tokens_.at(at) != token; });
  sort_places(places);
  places.shrink_to_fit();
}

void PickyLoop::note_memory() {
  std::size_t places = 0;
  for (const auto& of_token : places_of_) places += of_token.capacity();
  peak_memory_bytes_ =
      std::max(peak_memory_bytes_, tokens_.memory_bytes() + pairs_.memory_bytes() +
                                       queue_.memory_bytes() + places * sizeof(Place));
}

}  // namespace vocabshift
