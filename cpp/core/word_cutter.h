// Where a piece may be cut so that early merges cannot tell: words for the encoder's cache.
//
// Let C be a set of places between two characters, given by the class of the first and the ASCII
// character (or metaspace) that follows, and R the first rank whose product holds such a place.
// Below R no merge reaches across a cut in C, so the parts between cuts can be encoded one by one
// with the ranks below R, and all ranks applied to what comes out. R is the first rank that joins a
// letter and a space after it (the first superword); C is every kind of place that no rank below
// R holds. See docs/algorithms/encoding.md.
//
// Subtle: a product of bytes may begin inside a character. Then only the last byte before the
// place is known, and no cut is made after characters that end in it.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace vocabshift {

class WordCutter {
 public:
  WordCutter() = default;  // never cuts
  // `products` by rank, as bytes; `space` is what stands for a space in them.
  WordCutter(const std::vector<std::string_view>& products, std::string_view space);

  std::uint32_t crossing_rank() const { return crossing_rank_; }

  // The part of `rest` (not empty) up to the next cut.
  std::string_view next_word(std::string_view rest) const;

 private:
  static constexpr std::size_t kTargets = 129;  // ASCII, and the metaspace as the last
  static constexpr std::size_t kMetaspace = 128;
  enum Before : std::uint8_t { kWordBefore, kNumberBefore, kOtherBefore, kSpaceBefore };

  // Where a character that may follow a cut begins at `at`: its number, else kTargets.
  std::size_t target_at(std::string_view text, std::size_t at) const;
  // Class of the character that ends at `at`; false where `text` begins inside it.
  bool class_before(std::string_view text, std::size_t at, Before* before) const;

  std::string metaspace_;  // "" where a space is a space
  std::uint32_t crossing_rank_ = 0xFFFFFFFFu;
  std::array<std::array<bool, kTargets>, 4> may_cut_{};  // [Before][target]
  std::array<std::bitset<256>, kTargets> not_after_{};   // [target][last byte]
  std::array<bool, 256> is_target_{};                    // by first byte, for speed; and, of ASCII
  std::array<std::bitset<128>, 128> ascii_cuts_{};       // [byte before][target], both at one look
};

}  // namespace vocabshift
