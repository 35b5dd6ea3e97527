// (left, right) -> rank and product: what a trained model knows about a pair.
#pragma once

#include <cstdint>
#include <vector>

#include "core/big_memory.h"
#include "core/hash.h"
#include "core/types.h"

namespace vocabshift {

inline constexpr std::uint32_t kNoRank = 0xFFFFFFFFu;

// A merge of a model; its place in the list of merges is its rank.
struct ModelMerge {
  TokenId left, right, product;
};

class MergeTable {
 public:
  struct Found {
    std::uint32_t rank;  // kNoRank where the pair does not merge
    TokenId product;
  };

  explicit MergeTable(std::size_t merges);
  // Of all these, by rank.
  explicit MergeTable(const std::vector<ModelMerge>& merges);

  // A pair given twice keeps its later rank, as `tokenizers` reads a merge list.
  void set(Pair pair, std::uint32_t rank, TokenId product);
  bool has_doubles() const { return has_doubles_; }  // whether any pair was given twice

  // The merges below rank `limit`, by rank. Where another pair has the rank, all is kNoToken.
  std::vector<ModelMerge> by_rank(std::uint32_t limit) const;

  Found find(TokenId left, TokenId right) const {
    const std::uint64_t key = Pair{left, right}.key();
    for (std::size_t at = hash_pair(key) & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return {slot.rank, slot.product};
      if (slot.key == kEmpty) return {kNoRank, kNoToken};
    }
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key;
    std::uint32_t rank;
    TokenId product;
  };
  BigVector<Slot> slots_;
  std::size_t mask_;
  bool has_doubles_ = false;
};

}  // namespace vocabshift
