#include "core/late_merges.h"

#include <algorithm>
#include <bit>

namespace vocabshift {

namespace {

constexpr std::size_t kMostPairs = std::size_t{1} << 22;  // above, every border is left open
constexpr std::size_t kMostEnds = 256;                    // of one token; likewise
constexpr std::size_t kBitsPerPair = 16;

// For every token the tokens that may be its left (or right) end: itself, and the ends of the
// parts of the merges that make it.
class Ends {
 public:
  Ends(const std::vector<ModelMerge>& merges, std::size_t first, TokenId ModelMerge::* part) {
    for (std::size_t rank = first; rank < merges.size(); ++rank) {
      const TokenId product = merges[rank].product;
      if (product >= last_way_.size()) last_way_.resize(product + std::size_t{1}, kNoWay);
      ways_.push_back({merges[rank].*part, last_way_[product]});
      last_way_[product] = static_cast<std::uint32_t>(ways_.size() - 1);
    }
  }

  // False where they are too many to be of use.
  bool find(TokenId token, std::vector<TokenId>& out) const {
    out.assign(1, token);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out.size() > kMostEnds) return false;
      if (out[i] >= last_way_.size()) continue;
      for (std::uint32_t way = last_way_[out[i]]; way != kNoWay; way = ways_[way].other) {
        const TokenId end = ways_[way].end;
        if (std::find(out.begin(), out.end(), end) == out.end()) out.push_back(end);
      }
    }
    return true;
  }

 private:
  static constexpr std::uint32_t kNoWay = 0xFFFFFFFFu;
  struct Way {
    TokenId end;
    std::uint32_t other;  // the next way to the same product
  };
  std::vector<Way> ways_;
  std::vector<std::uint32_t> last_way_;  // by product
};

}  // namespace

LateMerges::LateMerges(const std::vector<ModelMerge>& merges, std::size_t first,
                       const MergeTable& all)
    : table_(merges.size() - first) {
  for (std::size_t rank = first; rank < merges.size(); ++rank) {
    const ModelMerge& merge = merges[rank];
    if (all.has_doubles() && all.find(merge.left, merge.right).rank != rank) continue;
    table_.set({merge.left, merge.right}, static_cast<std::uint32_t>(rank), merge.product);
  }
  const Ends right_ends(merges, first, &ModelMerge::right);
  const Ends left_ends(merges, first, &ModelMerge::left);
  std::vector<Pair> pairs;
  std::vector<TokenId> before, after;
  for (std::size_t rank = first; rank < merges.size(); ++rank) {
    if (!right_ends.find(merges[rank].left, before)) return;
    if (!left_ends.find(merges[rank].right, after)) return;
    if (pairs.size() + before.size() * after.size() > kMostPairs) return;
    for (const TokenId left : before) {
      for (const TokenId right : after) pairs.push_back({left, right});
    }
  }
  bits_.assign(std::bit_ceil(pairs.size() * kBitsPerPair + 64) / 64, 0);
  mask_ = bits_.size() * 64 - 1;
  for (const Pair& pair : pairs) {
    const std::size_t bit = bit_of(pair.left, pair.right);
    bits_[bit / 64] |= std::uint64_t{1} << bit % 64;
  }
}

void LateMerges::apply(std::vector<TokenId>& ids, std::size_t begin, std::vector<TokenId>& run,
                       MergeScratch& scratch) const {
  std::size_t to = begin;
  for (std::size_t at = begin; at < ids.size();) {
    std::size_t end = at + 1;
    while (end < ids.size() && may_join(ids[end - 1], ids[end])) ++end;
    if (end == at + 1) {
      ids[to++] = ids[at];
    } else {
      run.assign(ids.begin() + static_cast<std::ptrdiff_t>(at),
                 ids.begin() + static_cast<std::ptrdiff_t>(end));
      merge_by_rank(table_, run, kNoRank, scratch);
      std::copy(run.begin(), run.end(), ids.begin() + static_cast<std::ptrdiff_t>(to));
      to += run.size();
    }
    at = end;
  }
  ids.resize(to);
}

}  // namespace vocabshift
