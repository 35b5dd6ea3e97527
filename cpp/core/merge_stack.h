// Tokens stacked one by one into a merge list in which every token stays within reach.
//
// A token goes on top when the merges below leave its bytes as exactly two tokens: these two become
// its merge. Merging by rank always takes the lowest rank there is, so what is stacked later cannot
// change how the token's own bytes come together, and the self-tokenization test holds for the
// whole list by construction. Knows nothing of where the tokens were learned.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "core/merge_by_rank.h"
#include "core/merge_loop.h"
#include "core/vocabulary.h"

namespace vocabshift {

class MergeStack {
 public:
  explicit MergeStack(std::size_t max_tokens);  // the 256 bytes included

  // Into how many tokens the merges so far cut `token` (its bytes): 1, it is there already (or
  // empty: 0); 2, it is taken now; more, it is out of reach and left out.
  std::size_t push(std::string_view token);

  // The tokens that the last push was cut into.
  const std::vector<TokenId>& parts() const { return symbols_; }

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const std::vector<Merge>& merges() const { return merges_; }  // counts are 0

 private:
  std::size_t max_tokens_;
  Vocabulary vocabulary_;
  std::array<TokenId, 256> ids_of_bytes_;
  MergeTable table_;
  std::vector<Merge> merges_;
  std::vector<TokenId> symbols_;
  MergeScratch scratch_;
};

}  // namespace vocabshift
