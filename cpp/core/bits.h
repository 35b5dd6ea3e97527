// One bit per cell of a table, or per token: small enough to stay near where the table is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vocabshift {

class Bits {
 public:
  explicit Bits(std::size_t size) : words_((size + 63) / 64) {}
  // Bit i is set where is_set(i).
  template <class IsSet>
  Bits(std::size_t size, IsSet&& is_set) : Bits(size) {
    for (std::size_t i = 0; i < size; ++i) {
      words_[i / 64] |= static_cast<std::uint64_t>(is_set(i)) << i % 64;
    }
  }
  void set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << i % 64; }
  std::uint64_t operator[](std::size_t i) const { return words_[i / 64] >> i % 64 & 1; }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace vocabshift
