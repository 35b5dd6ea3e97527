// What an event of the PickyBPE loop changes in the words: places merged, places split, and the
// counts of the pairs around them.
#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "core/picky_loop.h"
#include "core/stop.h"

namespace vocabshift {

// Left to right, so that of three equal tokens the first two merge.
void PickyLoop::merge_places(Row row, Pair pair, TokenId product) {
  const bool removes = threshold_ < 1;
  places_ = std::exchange(pairs_.places(row), {});
  sort_places(places_);
  std::size_t merged = 0;
  for (const Place at : places_) {
    may_stop(8);
    if (tokens_.at(at) != pair.left) continue;
    const Place other = tokens_.after(at);
    if (other == PlacedTokens::kNowhere || tokens_.at(other) != pair.right) continue;
    const Word word = tokens_.word_of(at);
    for (const Weight& weight : weights_of(word)) sums_[weight.language] += weight.count;
    const Place before = tokens_.before(at), after = tokens_.after(other);
    if (before != PlacedTokens::kNowhere) see(left_, tokens_.at(before), word, before);
    if (after != PlacedTokens::kNowhere) see(right_, tokens_.at(after), word, at);
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
    may_stop(8);
    const Word word = tokens_.word_of(at);
    for (const Weight& weight : weights_of(word)) sums_[weight.language] += weight.count;
    const Place left = tokens_.before(at), right = tokens_.after(at);
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
    may_stop(8);
    const Row row = pairs_.find_or_add((is_left ? Pair{token, after} : Pair{after, token}).key());
    Count* const counts = pairs_.counts(row);
    for (std::size_t i = 0; i < languages_; ++i) counts[i] += side.sums[token * languages_ + i];
    side.rows[token] = row;
    changed_.push_back(row);
  }
  for (const auto& [token, place] : side.seen) {
    may_stop(4);
    pairs_.places(side.rows[token]).push_back(place);
  }
}

void PickyLoop::take_side(Side& side, TokenId before, bool is_left) {
  for (const TokenId token : side.touched) {
    may_stop(8);
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

}  // namespace vocabshift
