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

void sort_places(std::vector<PlacedTokens::Place>& places) {
  if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
}

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
  std::vector<TokenId> ids;
  ids.reserve(word.size());
  for (const char byte : word) ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
  tokens_.add(ids);
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
      for (Place next; (next = tokens_.behind(at)) != PlacedTokens::kNowhere; at = next) {
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

// Left to right, so that of three equal tokens the first two merge.
void PickyLoop::merge_places(Row row, Pair pair, TokenId product) {
  const bool removes = threshold_ < 1;
  places_ = std::exchange(pairs_.places(row), {});
  sort_places(places_);
  std::size_t merged = 0;
  for (const Place at : places_) {
    may_stop(8);
    if (tokens_.at(at) != pair.left) continue;
    const Place other = tokens_.behind(at);
    if (other == PlacedTokens::kNowhere || tokens_.at(other) != pair.right) continue;
    const Word word = tokens_.word_of(at);
    for (const Weight& weight : weights_of(word)) sums_[weight.language] += weight.count;
    const Place before = tokens_.before(at), behind = tokens_.behind(other);
    if (before != PlacedTokens::kNowhere) see(left_, tokens_.at(before), word, before);
    if (behind != PlacedTokens::kNowhere) see(right_, tokens_.at(behind), word, at);
    tokens_.merge(at, product);
    ++merged;
    if (removes) places_of_[product].push_back(at);
  }
  const Count count = std::accumulate(sums_.begin(), sums_.end(), Count{0});
  for (std::size_t i = 0; i < languages_; ++i) pairs_.counts(row)[i] -= sums_[i];
  changed_.push_back(row);
  pairs_.queued(row) = 0;
  std::fill(sums_.begin(), sums_.end(), 0);
  counts_[product] += count;
  place_counts_[product] += merged;
  for (const TokenId token : {pair.left, pair.right}) {
    counts_[token] -= count;
    place_counts_[token] -= merged;
  }
  events_.push_back({pair.left, pair.right, product, count, {}});
  replace({pair.left, pair.right}, {product, product});
  if (removes) {
    forget_stale_places(pair.left);
    forget_stale_places(pair.right);
  }
}

void PickyLoop::remove_if_rare(TokenId token, Count merged) {
  if (parts_[token].left == kNoToken) return;
  const Count before = counts_[token] + merged;
  if (!(static_cast<double>(merged) / static_cast<double>(before) > threshold_)) return;
  present_[token] = false;
  --present_count_;
  const std::vector<TokenId> parts = parts_of(token);
  std::vector<Place> offsets{0};
  for (const TokenId part : parts) offsets.push_back(offsets.back() + tokens_.length(part));
  const std::size_t last = parts.size() - 1;

  places_ = std::exchange(places_of_[token], {});
  sort_places(places_);
  std::erase_if(places_, [&](Place at) { return tokens_.at(at) != token; });
  for (const Place at : places_) {
    const Word word = tokens_.word_of(at);
    for (const Weight& weight : weights_of(word)) sums_[weight.language] += weight.count;
    const Place left = tokens_.before(at), right = tokens_.behind(at);
    if (left != PlacedTokens::kNowhere) see(left_, tokens_.at(left), word, left);
    if (right != PlacedTokens::kNowhere) see(right_, tokens_.at(right), word, at + offsets[last]);
    tokens_.split(at, parts);
  }
  pairs_.make_room(last);
  for (std::size_t i = 0; i < last && !places_.empty(); ++i) {
    const Row row = pairs_.find_or_add(Pair{parts[i], parts[i + 1]}.key());
    for (std::size_t j = 0; j < languages_; ++j) pairs_.counts(row)[j] += sums_[j];
    for (const Place at : places_) pairs_.places(row).push_back(at + offsets[i]);
    changed_.push_back(row);
  }
  std::fill(sums_.begin(), sums_.end(), 0);
  const Count count = std::exchange(counts_[token], 0);
  place_counts_[token] = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    counts_[parts[i]] += count;
    place_counts_[parts[i]] += places_.size();
    if (parts_[parts[i]].left == kNoToken) continue;
    for (const Place at : places_) places_of_[parts[i]].push_back(at + offsets[i]);
  }
  events_.push_back({token, kNoToken, kNoToken, count, parts});
  replace({token, token}, {parts.front(), parts.back()});
}

// The tokens, all of them there, that a removed token falls into.
std::vector<TokenId> PickyLoop::parts_of(TokenId token) const {
  std::vector<TokenId> parts, waiting{token};
  while (!waiting.empty()) {
    const TokenId next = waiting.back();
    waiting.pop_back();
    if (present_[next]) {
      parts.push_back(next);
    } else {
      waiting.push_back(parts_[next].right);
      waiting.push_back(parts_[next].left);
    }
  }
  return parts;
}

void PickyLoop::see(Side& side, TokenId token, Word word, Place pair) {
  if (!side.is_touched[token]) {
    side.is_touched[token] = true;
    side.touched.push_back(token);
  }
  for (const Weight& weight : weights_of(word)) {
    side.sums[token * languages_ + weight.language] += weight.count;
  }
  side.seen.emplace_back(token, pair);
}

// Of every place that was seen: (x, before.left) -> (x, after.left) and (before.right, y) ->
// (after.right, y). A neighbour that the event itself made first counts as what stood there: the
// pair is added by one side and taken back by the other, so all are added before any is taken.
void PickyLoop::replace(Pair before, Pair after) {
  // Making room may give away the rows of pairs that do not occur: settle those that changed.
  settle();
  pairs_.make_room(left_.touched.size() + right_.touched.size());
  add_side(left_, after.left, true);
  add_side(right_, after.right, false);
  take_side(left_, before.left, true);
  take_side(right_, before.right, false);
  settle();
}

void PickyLoop::add_side(Side& side, TokenId after, bool is_left) {
  for (const TokenId token : side.touched) {
    const Row row = pairs_.find_or_add((is_left ? Pair{token, after} : Pair{after, token}).key());
    Count* const counts = pairs_.counts(row);
    for (std::size_t i = 0; i < languages_; ++i) counts[i] += side.sums[token * languages_ + i];
    side.rows[token] = row;
    changed_.push_back(row);
  }
  for (const auto& [token, place] : side.seen) pairs_.places(side.rows[token]).push_back(place);
}

void PickyLoop::take_side(Side& side, TokenId before, bool is_left) {
  for (const TokenId token : side.touched) {
    const Row row = pairs_.find((is_left ? Pair{token, before} : Pair{before, token}).key());
    if (row == PlacedPairs::kNone) throw std::logic_error("a pair that stood there is unknown");
    Count* const counts = pairs_.counts(row);
    for (std::size_t i = 0; i < languages_; ++i) {
      counts[i] -= std::exchange(side.sums[token * languages_ + i], 0);
    }
    changed_.push_back(row);
    side.is_touched[token] = false;
  }
  side.touched.clear();
  side.seen.clear();
}

// Queues pairs whose score has risen. All that changed are looked at, not only those that gained:
// a mean of rounded powers need not fall where its counts do.
void PickyLoop::settle() {
  for (const Row row : changed_) {
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
