// What the core does, as it is defined: count everything anew after every step.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/merge_loop.h"
#include "core/merge_table.h"
#include "core/vocabulary.h"

namespace vocabshift::fuzz {

// The pair of least rank is merged, the leftmost of equals first. `happened`, if not null, has a
// number for every merge.
inline void merge_slowly(const std::vector<ModelMerge>& merges, std::vector<TokenId>& ids,
                         std::vector<Count>* happened = nullptr, Count count = 1) {
  std::unordered_map<std::uint64_t, std::size_t> ranks;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    ranks[Pair{merges[rank].left, merges[rank].right}.key()] = rank;
  }
  for (;;) {
    std::size_t best = merges.size(), at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = ranks.find(Pair{ids[i], ids[i + 1]}.key());
      if (found != ranks.end() && found->second < best) best = found->second, at = i;
    }
    if (best == merges.size()) return;
    if (happened) (*happened)[best] += count;
    ids[at] = merges[best].product;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

inline std::vector<TokenId> ids_of_bytes(const Vocabulary& vocabulary, std::string_view word) {
  std::vector<TokenId> ids;
  for (const char& byte : word) ids.push_back(vocabulary.find(std::string_view(&byte, 1)));
  return ids;
}

inline std::vector<TokenId> slow_merges(const Vocabulary& vocabulary,
                                        const std::vector<ModelMerge>& merges,
                                        std::string_view word) {
  std::vector<TokenId> ids = ids_of_bytes(vocabulary, word);
  merge_slowly(merges, ids);
  return ids;
}

inline std::string text_of(const Vocabulary& vocabulary, const std::vector<TokenId>& ids) {
  std::string text;
  for (const TokenId id : ids) text += vocabulary[id];
  return text;
}

// Every pair, from the left, becomes its product; returns how many there were.
inline Count replace_pair(std::vector<TokenId>& ids, Pair pair, TokenId product) {
  const std::size_t before = ids.size();
  std::vector<TokenId> merged;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool is_pair = i + 1 < ids.size() && ids[i] == pair.left && ids[i + 1] == pair.right;
    merged.push_back(is_pair ? product : ids[i]);
    i += is_pair;
  }
  ids = std::move(merged);
  return before - ids.size();
}

struct SlowWord {
  std::vector<TokenId> ids;
  Count count;
};

// In the order of keys, which decides ties.
inline std::map<std::uint64_t, Count> count_pairs(const std::vector<SlowWord>& words) {
  std::map<std::uint64_t, Count> counts;
  for (const SlowWord& word : words) {
    for (std::size_t i = 0; i + 1 < word.ids.size(); ++i) {
      counts[Pair{word.ids[i], word.ids[i + 1]}.key()] += word.count;
    }
  }
  return counts;
}

// Merges the most frequent pair that may merge, the smaller of equals, up to `limits`; leaves the
// tokens in `words` and in `vocabulary`.
inline std::vector<Merge> learn_slowly(Vocabulary& vocabulary, std::vector<SlowWord>& words,
                                       const Limits& limits, const MergeRule& rule,
                                       Duplicates duplicates, std::vector<bool> held = {}) {
  std::vector<Merge> merges;
  while (vocabulary.size() < limits.vocab_size) {
    Merge best{kNoToken, kNoToken, kNoToken, 0};
    std::string spelt;
    for (const auto& [key, count] : count_pairs(words)) {
      if (count < limits.min_frequency || count <= best.count) continue;
      const auto left = static_cast<TokenId>(key >> 32), right = static_cast<TokenId>(key);
      const std::string product = std::string(vocabulary[left]) + std::string(vocabulary[right]);
      const TokenId existing = vocabulary.find(product);
      if (!rule.allows(product)) continue;
      if (existing != kNoToken && duplicates == Duplicates::kRefusePair) continue;
      if (existing != kNoToken && duplicates == Duplicates::kReuseUnheld &&
          existing < held.size() && held[existing]) {
        continue;
      }
      best = {left, right, existing, count};
      spelt = product;
    }
    if (best.count == 0) break;
    if (best.product == kNoToken) best.product = vocabulary.add(spelt);
    held.resize(vocabulary.size());
    held[best.left] = held[best.right] = true;
    for (SlowWord& word : words) replace_pair(word.ids, {best.left, best.right}, best.product);
    merges.push_back(best);
  }
  return merges;
}

inline bool are_equal(const std::vector<Merge>& a, const std::vector<Merge>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Merge& x, const Merge& y) {
    return x.left == y.left && x.right == y.right && x.product == y.product && x.count == y.count;
  });
}

}  // namespace vocabshift::fuzz
