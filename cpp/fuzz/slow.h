// Encoding as it is defined: the pair of least rank is merged, the leftmost of equals first.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/merge_table.h"
#include "core/vocabulary.h"

namespace vocabshift::fuzz {

inline std::vector<TokenId> slow_merges(const Vocabulary& vocabulary,
                                        const std::vector<ModelMerge>& merges,
                                        std::string_view word) {
  std::unordered_map<std::uint64_t, std::size_t> ranks;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    ranks[Pair{merges[rank].left, merges[rank].right}.key()] = rank;
  }
  std::vector<TokenId> ids;
  for (const char& byte : word) ids.push_back(vocabulary.find(std::string_view(&byte, 1)));
  for (;;) {
    std::size_t best = merges.size(), at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = ranks.find(Pair{ids[i], ids[i + 1]}.key());
      if (found != ranks.end() && found->second < best) best = found->second, at = i;
    }
    if (best == merges.size()) return ids;
    ids[at] = merges[best].product;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

}  // namespace vocabshift::fuzz
