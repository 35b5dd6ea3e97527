#include "core/borders.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <vector>

#include "core/platform.h"
#include "core/word_join.h"

namespace vocabshift {

namespace {

constexpr Count kBoundStep = 4;              // a bound falls by at most this factor
constexpr std::size_t kBordersPerMerge = 3;  // see guess_bound
constexpr std::size_t kMoreBorders = 64;
constexpr std::size_t kAtOnce = 64;  // borders counted before it may be stopped

}  // namespace

BorderSketch::BorderSketch(std::size_t cells) {
  if (!std::has_single_bit(cells) || cells < kLeastCells || cells > kMostCells) {
    throw std::invalid_argument("a sketch of borders has a power of two of cells, 2^10 to 2^26");
  }
  counts_ = filled<BigVector<Count>>(cells, 0);
}

void BorderSketch::add(std::span<const TokenId> piece, Count count) {
  Count product;
  if (multiply_overflows(count, piece.size(), &product) ||
      add_overflows(of_all_, product, &of_all_)) {
    WordSum::overflow();
  }
  const std::size_t cells = counts_.size();
  for (std::size_t i = 0; i + 1 < piece.size();) {
    const std::size_t end = std::min(i + kAtOnce, piece.size() - 1);
    may_stop(4 * (end - i));
    for (; i < end; ++i) counts_[cell_of(piece[i], piece[i + 1], cells)] += count;
  }
}

// The count of about the k-th most frequent border. Merges find more pairs than there are frequent
// borders from the start, and refuse some: the last of k / kBordersPerMerge merges mostly counts
// more than that.
Count guess_bound(std::span<const Count> counts, std::size_t wanted) {
  const std::size_t k = kBordersPerMerge * wanted + kMoreBorders;
  std::vector<Count> found;
  for (const Count count : counts) {
    if (count > 1) found.push_back(count);
  }
  if (found.size() <= k) return 1;
  std::nth_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(k), found.end(),
                   std::greater<Count>());
  return found[k];
}

// By Zipf's law the k-th counts about 1/k of the first, and a bound that is a little too low costs
// less than a third try.
Count lower_bound(Count bound, std::size_t found, std::size_t wanted) {
  const double share =
      static_cast<double>(found) / static_cast<double>(std::max<std::size_t>(wanted, 1));
  const double least = 1.0 / kBoundStep, most = 3.0 / 4;
  const auto lower =
      static_cast<Count>(static_cast<double>(bound) * std::clamp(share * most, least, most));
  return std::max<Count>(lower, 1);
}

RunCutter::RunCutter(const Vocabulary& vocabulary, const MergeRule& rule, Bits is_frequent,
                     std::size_t cells)
    : is_frequent_(std::move(is_frequent)), merges_(0), cells_(cells) {
  MergeRule terminals;
  terminals.terminals = rule.terminals;
  merges_ = Bits(vocabulary.size(), [&](std::size_t id) {
    return terminals.terminals.empty() || terminals.allows(vocabulary[static_cast<TokenId>(id)]);
  });
}

}  // namespace vocabshift
