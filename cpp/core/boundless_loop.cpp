#include "core/boundless_loop.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace vocabshift {

namespace {
constexpr std::size_t kTickEvery = 64;  // merges
}

void BoundlessLoop::Neighbours::see(Unit unit, Count count, At place) {
  if (unit >= sums.size()) sums.resize(unit + std::size_t{1});
  if (sums[unit] == 0) touched.push_back(unit);
  sums[unit] += count;
  seen.emplace_back(unit, place);
}

void BoundlessLoop::Neighbours::clear() {
  for (const Unit unit : touched) sums[unit] = 0;
  touched.clear();
  seen.clear();
}

BoundlessLoop::BoundlessLoop(const Vocabulary& words, const std::vector<Merge>& merges,
                             MergeRule rule, Count floor)
    : words_(words),
      word_merges_(merges),
      rule_(std::move(rule)),
      floor_(std::max<Count>(floor, 1)),
      token_of_(words.size(), kNoToken),
      waiting_(words.size()) {
  if (words.size() != 256 + merges.size()) {
    throw std::invalid_argument("every merge must make one new token");
  }
  for (TokenId id = 0; id < 256; ++id) {
    token_of_[id] = result_.vocabulary.add(words[id]);
    unit_of_.push_back(id);
  }
}

void BoundlessLoop::add_run(std::span<const TokenId> words, Count weight, Count occurrences) {
  if (units_.size() + words.size() >= kNowhere) {
    throw std::length_error("too many words stand beside frequent words; raise min_frequency");
  }
  const auto run = static_cast<std::uint32_t>(runs_.size());
  runs_.push_back({weight, occurrences});
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto at = static_cast<At>(units_.size());
    units_.push_back(words[i]);
    previous_.push_back(i > 0 ? at - 1 : kNowhere);
    next_.push_back(i + 1 < words.size() ? at + 1 : kNowhere);
    run_of_.push_back(run);
  }
}

BoundlessTrained BoundlessLoop::run(std::size_t vocab_size, Count min_count, const Tick& tick) {
  floor_ = std::max(floor_, min_count);
  index_pairs();
  const std::size_t start = result_.vocabulary.size();
  while (result_.vocabulary.size() < vocab_size) {
    Candidate best{0, 0};
    const bool has_super = find_best(&best);
    const bool has_word = next_word_ < word_merges_.size();
    if (!has_super && !has_word) {
      result_.stopped = min_count > 1 ? Stopped::kMinFrequency : Stopped::kNoPairLeft;
      break;
    }
    if (has_word) {
      const Merge& merge = word_merges_[next_word_];
      const Pair pair{token_of_[merge.left], token_of_[merge.right]};
      const Candidate next{merge.count, pair.key()};
      if (!has_super || best < next) {
        take_word_merge(next);
      } else if (!take_supermerge(best)) {
        continue;
      }
    } else if (!take_supermerge(best)) {
      continue;
    }
    if (tick && result_.merges.size() % kTickEvery == 0) {
      tick(result_.vocabulary.size() - start, vocab_size - start);
    }
  }
  result_.peak_memory_bytes = std::max(result_.peak_memory_bytes, memory_bytes());
  return std::move(result_);
}

void BoundlessLoop::index_pairs() {
  std::unordered_map<std::uint64_t, Count> counts;
  for (At at = 0; at < units_.size(); ++at) {
    if (next_[at] == kNowhere) continue;
    counts[Pair{units_[at], units_[next_[at]]}.key()] += runs_[run_of_[at]].weight;
  }
  for (const auto& [key, count] : counts) {
    if (count < floor_) continue;
    pair_of_.emplace(key, static_cast<std::uint32_t>(pairs_.size()));
    pairs_.push_back({key, count, {}});
  }
  for (At at = 0; at < units_.size(); ++at) {
    if (next_[at] == kNowhere) continue;
    const auto found = pair_of_.find(Pair{units_[at], units_[next_[at]]}.key());
    if (found == pair_of_.end()) continue;
    pairs_[found->second].places.push_back(at);
    ++places_in_pairs_;
  }
  for (std::uint32_t pair = 0; pair < pairs_.size(); ++pair) announce(pair);
  result_.peak_memory_bytes = memory_bytes();
}

// Queues a pair of unlocked units; one with a locked word waits for that.
void BoundlessLoop::announce(std::uint32_t pair) {
  const auto left = static_cast<Unit>(pairs_[pair].key >> 32);
  const auto right = static_cast<Unit>(pairs_[pair].key);
  if (!is_unlocked(left)) {
    waiting_[left].push_back(pair);
  } else if (!is_unlocked(right)) {
    waiting_[right].push_back(pair);
  } else if (pairs_[pair].count >= floor_) {
    queue_.push({pairs_[pair].count, Pair{token_of_[left], token_of_[right]}.key()});
  }
}

// The best live pair, which stays queued.
bool BoundlessLoop::find_best(Candidate* best) {
  while (!queue_.empty()) {
    *best = queue_.top();
    const Pair units{unit_of_[best->key >> 32], unit_of_[static_cast<TokenId>(best->key)]};
    const Count count = pairs_[pair_of_.at(units.key())].count;
    if (count == best->count) return true;
    queue_.pop();
    if (count >= floor_) queue_.push({count, best->key});
  }
  return false;
}

// Merges the best pair, or refuses it for good: it is not queued again.
bool BoundlessLoop::take_supermerge(const Candidate& best) {
  queue_.pop();
  const Pair tokens{static_cast<TokenId>(best.key >> 32), static_cast<TokenId>(best.key)};
  std::string bytes(result_.vocabulary[tokens.left]);
  bytes.append(result_.vocabulary[tokens.right]);
  if (!rule_.allows(bytes) || words_.find(bytes) != kNoToken ||
      result_.vocabulary.find(bytes) != kNoToken) {
    return false;
  }
  const std::uint32_t pair = pair_of_.at(Pair{unit_of_[tokens.left], unit_of_[tokens.right]}.key());
  const auto product = static_cast<Unit>(token_of_.size());
  token_of_.push_back(kNoToken);
  add_token(product, bytes, tokens, best.count, true);
  merge_places(pair, product);
  return true;
}

void BoundlessLoop::take_word_merge(const Candidate& next) {
  const Unit word = word_merges_[next_word_++].product;
  const Pair tokens{static_cast<TokenId>(next.key >> 32), static_cast<TokenId>(next.key)};
  add_token(word, words_[word], tokens, next.count, false);
  for (const std::uint32_t pair : std::exchange(waiting_[word], {})) announce(pair);
}

TokenId BoundlessLoop::add_token(Unit unit, std::string_view bytes, Pair tokens, Count count,
                                 bool is_super) {
  const TokenId id = result_.vocabulary.add(bytes);
  token_of_[unit] = id;
  unit_of_.push_back(unit);
  result_.merges.push_back({tokens.left, tokens.right, id, count});
  result_.is_supermerge.push_back(is_super);
  return id;
}

// Overlapping neighbours count (A A A holds two A A) and merge left to right, as in merge_loop.h.
void BoundlessLoop::merge_places(std::uint32_t pair, Unit product) {
  const auto left = static_cast<Unit>(pairs_[pair].key >> 32);
  const auto right = static_cast<Unit>(pairs_[pair].key);
  const std::vector<At> places = std::exchange(pairs_[pair].places, {});
  for (const At at : places) {
    if (units_[at] != left || next_[at] == kNowhere) continue;
    const At other = next_[at];
    if (units_[other] != right) continue;
    const Run& run = runs_[run_of_[at]];
    units_[at] = product;
    units_[other] = kNoToken;
    next_[at] = next_[other];
    if (previous_[at] != kNowhere) left_.see(units_[previous_[at]], run.weight, previous_[at]);
    if (next_[at] == kNowhere) continue;
    previous_[next_[at]] = at;
    right_.see(units_[next_[at]], run.weight, at);
  }
  // (x, left) -> (x, product) and (right, y) -> (product, y). A product that follows a product was
  // first counted as (product, left) and is (product, product) in the end.
  for (const Unit unit : left_.touched) {
    if (unit != product) consume(unit, left, left_.sums[unit]);
  }
  for (const Unit unit : right_.touched) consume(right, unit, right_.sums[unit]);
  if (product < left_.sums.size() && left_.sums[product] != 0) {
    right_.sums[left] -= left_.sums[product];
  }
  pairs_[pair].count = 0;
  places_in_pairs_ -= places.size();
  add_new_pairs(left_, product, false);
  add_new_pairs(right_, product, true);
  left_.clear();
  right_.clear();
}

void BoundlessLoop::consume(Unit left, Unit right, Count count) {
  const auto found = pair_of_.find(Pair{left, right}.key());
  if (found != pair_of_.end()) pairs_[found->second].count -= count;
}

void BoundlessLoop::add_new_pairs(Neighbours& side, Unit product, bool product_is_left) {
  const auto first = static_cast<std::uint32_t>(pairs_.size());
  const auto key_of = [&](Unit unit) {
    return (product_is_left ? Pair{product, unit} : Pair{unit, product}).key();
  };
  for (const Unit unit : side.touched) {
    if (side.sums[unit] < floor_) continue;
    pair_of_.emplace(key_of(unit), static_cast<std::uint32_t>(pairs_.size()));
    pairs_.push_back({key_of(unit), side.sums[unit], {}});
  }
  if (pairs_.size() == first) return;
  for (const auto& [unit, place] : side.seen) {
    if (side.sums[unit] < floor_) continue;
    pairs_[pair_of_.at(key_of(unit))].places.push_back(place);
    ++places_in_pairs_;
  }
  for (std::uint32_t pair = first; pair < pairs_.size(); ++pair) announce(pair);
}

std::size_t BoundlessLoop::memory_bytes() const {
  constexpr std::size_t kMapEntry = 40;  // node and bucket of an unordered_map, about
  return units_.capacity() * (sizeof(Unit) + 2 * sizeof(At) + sizeof(std::uint32_t)) +
         runs_.capacity() * sizeof(Run) + places_in_pairs_ * sizeof(At) +
         pairs_.capacity() * sizeof(PairState) + pair_of_.size() * kMapEntry +
         queue_.memory_bytes();
}

}  // namespace vocabshift
