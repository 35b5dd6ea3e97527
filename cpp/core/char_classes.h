// Classes of characters that a regex does not tell apart: those in the same of its sets.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

#include "core/code_set.h"

namespace vocabshift {

class CharClasses {
 public:
  // False for too many sets or classes.
  bool number(const std::vector<CodeSet>& sets);

  std::size_t count() const { return count_; }
  std::uint8_t of(char32_t c) const {
    return blocks_[std::size_t{index_[c / kBlock]} * kBlock + c % kBlock];
  }
  std::uint8_t of_ascii(unsigned char c) const { return ascii_[c]; }
  // Whether a class (or one too many: false) is part of a set.
  bool has(std::size_t set, std::uint8_t number) const { return sets_[set][number]; }

 private:
  static constexpr std::size_t kBlock = 128, kMost = 250;
  using Bits = std::bitset<256>;

  std::size_t count_ = 0;
  std::vector<Bits> sets_;  // by set, its classes
  std::array<std::uint8_t, 128> ascii_{};
  std::vector<std::uint16_t> index_;
  std::vector<std::uint8_t> blocks_;
};

}  // namespace vocabshift
