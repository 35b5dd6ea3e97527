// What merges do to the tokens of a piece whose words are encoded already (superwords).
//
// Few neighbours can ever end up in one token: a merge joins two tokens across a border only if
// the token left of it is the right end of what is joined, and likewise the token right of it. All
// such pairs are entered into a filter of bits, once; a border between any other two stays, so the
// piece falls into short runs that are merged one by one. The filter has no false negatives.
#pragma once

#include <cstdint>
#include <vector>

#include "core/hash.h"
#include "core/merge_by_rank.h"
#include "core/merge_table.h"
#include "core/types.h"

namespace vocabshift {

class LateMerges {
 public:
  LateMerges() : table_(0) {}
  // The merges from rank `first` on, which must be all that can happen; `all` has the rank of a
  // pair that is listed twice.
  LateMerges(const std::vector<ModelMerge>& merges, std::size_t first, const MergeTable& all);

  // Merges ids[begin:] in place.
  void apply(std::vector<TokenId>& ids, std::size_t begin, std::vector<TokenId>& run,
             MergeScratch& scratch) const;

 private:
  bool may_join(TokenId left, TokenId right) const {
    const std::size_t bit = bit_of(left, right);
    return bits_[bit / 64] >> bit % 64 & 1;
  }
  std::size_t bit_of(TokenId left, TokenId right) const {
    return (Pair{left, right}.key() * kSeed0 >> 32) & mask_;
  }

  MergeTable table_;
  std::vector<std::uint64_t> bits_{~std::uint64_t{0}};  // by default all borders are open
  std::size_t mask_ = 63;
};

}  // namespace vocabshift
