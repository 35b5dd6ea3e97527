// Where text may be cut before superwords are learned: at borders between two neighbouring tokens
// that are rarer than a bound (docs/algorithms/superwords.md). Owns the sketch of the borders'
// counts, the bound that is tried first, and how a piece falls into runs.
//
// The sketch has one hash, and two pairs may share a counter: it only overestimates, so text is
// cut too rarely, never wrongly.
#pragma once

#include <bit>
#include <span>

#include "core/big_memory.h"
#include "core/bits.h"
#include "core/filled.h"
#include "core/hash.h"
#include "core/merge_rule.h"
#include "core/stop.h"
#include "core/types.h"
#include "core/vocabulary.h"

namespace vocabshift {

// The counter of a border among `cells`, a power of two.
inline std::size_t cell_of(TokenId left, TokenId right, std::size_t cells) {
  return hash_pair(Pair{left, right}.key()) & (cells - 1);
}

class BorderSketch {
 public:
  static constexpr std::size_t kLeastCells = 1024;
  static constexpr std::size_t kMostCells = std::size_t{1} << 26;  // 8 bytes each

  // std::invalid_argument unless `cells` is a power of two between these.
  explicit BorderSketch(std::size_t cells);

  // Counts every border of a piece `count` times. std::invalid_argument where the sum over all
  // borders does not fit 64 bits.
  void add(std::span<const TokenId> piece, Count count);

  const BigVector<Count>& counts() const { return counts_; }

 private:
  BigVector<Count> counts_;
  Count of_all_ = 0;  // at least the sum of all counts
};

// The bound to try first where `wanted` merges are to be learned, from the counters of a sketch.
Count guess_bound(std::span<const Count> counts, std::size_t wanted);
// The bound to try after the first one left only `found` merges.
Count lower_bound(Count bound, std::size_t found, std::size_t wanted);

// Cuts pieces at the borders that are rare, and beside tokens that may be part of no product.
class RunCutter {
 public:
  // `is_frequent`: a bit for each cell of the sketch.
  RunCutter(const Vocabulary& vocabulary, const MergeRule& rule, Bits is_frequent,
            std::size_t cells);

  // Calls visit(run) for the longest runs of at least two tokens whose neighbours are all joined.
  // Whether two are is as good as random: 64 of them are looked at without a branch.
  // All text without a space may be one piece.
  template <class Visit>
  void for_each_run(std::span<const TokenId> piece, Visit&& visit) const {
    const std::size_t borders = piece.size() - std::min<std::size_t>(piece.size(), 1);
    std::size_t begin = 0;  // of the run under way
    bool is_under_way = false;
    for (std::size_t from = 0; from < borders; from += kAtOnce) {
      const std::size_t count = std::min<std::size_t>(borders - from, kAtOnce);
      may_stop(4 * count);
      std::uint64_t joined = 0;
      for (std::size_t i = 0; i < count; ++i) {
        joined |= std::uint64_t{is_joined(piece[from + i], piece[from + i + 1])} << i;
      }
      for (std::size_t at = 0; at < count;) {
        if (!is_under_way) {
          at += static_cast<std::size_t>(std::countr_zero(joined >> at));
          if (at >= count) break;
          begin = from + at;
        }
        at += static_cast<std::size_t>(std::countr_one(joined >> at));
        is_under_way = at >= count;
        if (!is_under_way) visit(piece.subspan(begin, from + at + 1 - begin));
      }
    }
    if (is_under_way) visit(piece.subspan(begin));
  }

 private:
  static constexpr std::size_t kAtOnce = 64;  // bits of a word

  std::uint64_t is_joined(TokenId left, TokenId right) const {
    return is_frequent_[cell_of(left, right, cells_)] & merges_[left] & merges_[right];
  }

  Bits is_frequent_;
  Bits merges_;  // by token: whether it may be part of a product
  std::size_t cells_;
};

}  // namespace vocabshift
