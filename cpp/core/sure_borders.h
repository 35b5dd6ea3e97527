// Borders in a long word that no merge ever reaches across: it falls into short parts there.
//
// Of a byte-level model, with any list of merges. Two bytes are a sure pair if their merge comes
// before every merge across the place on either side of them: nothing can take one of the two away,
// so that merge happens in any word. So what ends and what begins at a place is known as far as its
// nearest bytes; if no merge joins tokens that end and begin so, the place is a border for good.
// Proof: docs/algorithms/encoding.md.
//
// Owns which pairs and borders are sure. What happens between two borders is the encoder's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "core/merge_table.h"
#include "core/stop.h"
#include "core/types.h"

namespace vocabshift {

class SureBorders {
 public:
  // One byte; or a sure pair: its first byte in the higher eight bits, and kPair.
  using Known = std::uint32_t;
  static constexpr Known kPair = 1 << 16;
  static constexpr std::size_t kMost = 128;  // that are told of one part

  // Of the merges below rank `limit`. `byte_ids`: the ids of the 256 bytes, all different.
  SureBorders(const std::array<TokenId, 256>& byte_ids, const MergeTable& merges,
              std::uint32_t limit);

  // Calls `part(bytes, known, count)` for every part of `word` from left to right: its bytes, and
  // the same as bytes and sure pairs, which are valid for the call. Where these are more than kMost
  // count is 0.
  template <class F>
  void split(std::string_view word, F&& part) const;

 private:
  struct Meeting {                  // of two bytes
    std::uint32_t rank = kNoRank;   // of their merge
    std::uint32_t first = kNoRank;  // of the first merge across the place between them
  };
  static constexpr unsigned kJoinBits = 21;  // of a hash

  static std::size_t bit_of(Known left, Known right) {
    return (static_cast<std::uint64_t>(left) << 32 | right) * kSeed0 >> (64 - kJoinBits);
  }
  bool may_join(Known left, Known right) const {
    const std::size_t bit = bit_of(left, right);
    return joins_[bit / 64] >> bit % 64 & 1;
  }

  std::vector<Meeting> meetings_;     // by both bytes
  std::vector<std::uint64_t> joins_;  // bits: false where no merge joins what ends and begins so
};

template <class F>
void SureBorders::split(std::string_view word, F&& part) const {
  constexpr std::size_t kBetween = 1 << 10;
  const std::size_t size = word.size();
  const auto byte_at = [&](std::size_t at) { return static_cast<unsigned char>(word[at]); };
  const auto meeting_at = [&](std::size_t at) {  // of the bytes around that place
    if (at >= size) return Meeting();
    return meetings_[static_cast<std::size_t>(byte_at(at - 1)) << 8 | byte_at(at)];
  };
  std::array<Known, kMost> known;
  std::size_t begin = 0, count = 0, steps = 0;
  Known left = 0;
  Meeting here;
  for (std::size_t at = 0; at < size;) {
    if (++steps % kBetween == 0) may_stop(kBetween);
    const Meeting inside = meeting_at(at + 1), after = meeting_at(at + 2);
    // Subtle: of equal merges the left one comes first.
    const bool is_pair =
        inside.rank != kNoRank && inside.rank < here.first && inside.rank <= after.first;
    const Known right =
        is_pair ? kPair | static_cast<Known>(byte_at(at)) << 8 | byte_at(at + 1) : byte_at(at);
    if (at > begin && (here.first == kNoRank || !may_join(left, right))) {
      part(word.substr(begin, at - begin), known.data(), count <= kMost ? count : 0);
      begin = at;
      count = 0;
    }
    if (count < kMost) known[count] = right;
    ++count;
    left = right;
    here = is_pair ? after : inside;
    at += is_pair ? 2 : 1;
  }
  if (size > 0) part(word.substr(begin), known.data(), count <= kMost ? count : 0);
}

}  // namespace vocabshift
