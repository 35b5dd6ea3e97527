#include "core/sure_borders.h"

#include <algorithm>

namespace vocabshift {

SureBorders::SureBorders(const std::array<TokenId, 256>& byte_ids, const MergeTable& table,
                         std::uint32_t limit)
    : meetings_(std::size_t{1} << 16), joins_((std::size_t{1} << kJoinBits) / 64) {
  const std::vector<ModelMerge> merges = table.by_rank(limit);
  TokenId most = *std::max_element(byte_ids.begin(), byte_ids.end());
  for (const ModelMerge& merge : merges) {
    if (merge.product != kNoToken) most = std::max({most, merge.left, merge.right, merge.product});
  }
  // Of each token: its outer byte, and the pair of bytes that may have been there before it was
  // made. It spells both, however it is made.
  constexpr Known kUnknown = 0xFFFFFFFFu;
  struct Ends {
    Known byte = kUnknown, pair = kUnknown;
  };
  std::vector<Ends> begins(most + std::size_t{1}), ends(most + std::size_t{1});
  std::vector<bool> is_byte(most + std::size_t{1});
  for (Known byte = 0; byte < 256; ++byte) {
    begins[byte_ids[byte]].byte = ends[byte_ids[byte]].byte = byte;
    is_byte[byte_ids[byte]] = true;
  }
  bool is_new = true;
  const auto take = [&](Known& known, Known found) {
    if (known != kUnknown || found == kUnknown) return;
    known = found;
    is_new = true;
  };
  while (is_new) {  // again where a list uses tokens before it makes them
    is_new = false;
    for (const ModelMerge& merge : merges) {
      if (merge.product == kNoToken) continue;
      take(begins[merge.product].byte, begins[merge.left].byte);
      take(begins[merge.product].pair, begins[merge.left].pair);
      take(ends[merge.product].byte, ends[merge.right].byte);
      take(ends[merge.product].pair, ends[merge.right].pair);
      if (is_byte[merge.left] && is_byte[merge.right]) {
        const Known pair = kPair | begins[merge.left].byte << 8 | begins[merge.right].byte;
        take(begins[merge.product].pair, pair);
        take(ends[merge.product].pair, pair);
      }
    }
  }
  for (std::uint32_t rank = 0; rank < merges.size(); ++rank) {
    const ModelMerge& merge = merges[rank];
    if (merge.product == kNoToken) continue;
    const Ends left = ends[merge.left], right = begins[merge.right];
    if (left.byte == kUnknown || right.byte == kUnknown) continue;  // never made
    Meeting& meeting = meetings_[left.byte << 8 | right.byte];
    meeting.first = std::min(meeting.first, rank);
    if (is_byte[merge.left] && is_byte[merge.right]) meeting.rank = rank;
    for (const Known before : {left.byte, left.pair}) {
      for (const Known after : {right.byte, right.pair}) {
        if (before == kUnknown || after == kUnknown) continue;
        const std::size_t bit = bit_of(before, after);
        joins_[bit / 64] |= std::uint64_t{1} << bit % 64;
      }
    }
  }
}

}  // namespace vocabshift
