// The core's vocabulary of plain values. Knows nothing of Python, JSON or models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace vocabshift {

using TokenId = std::uint32_t;  // index into the vocabulary; kNoToken where there is none
using Count = std::uint64_t;    // occurrences, or fixed-point weighted occurrences (unit: 1/4096)

inline constexpr TokenId kNoToken = 0xFFFFFFFFu;

// Half-open range of bytes.
struct Span {
  std::size_t begin;  // inclusive, in bytes
  std::size_t end;    // exclusive, in bytes
};

// Two neighbouring tokens, in order: (a, b) is another pair than (b, a).
struct Pair {
  TokenId left;
  TokenId right;
  friend bool operator==(const Pair&, const Pair&) = default;
  // Numeric order equals the order of (left, right): the tie-break compares keys.
  std::uint64_t key() const { return (static_cast<std::uint64_t>(left) << 32) | right; }
  // To be added to a key where pairs count apart in sections: ids stay below 2^24, which leaves the
  // highest byte of both halves. 0 for section 0.
  static constexpr std::uint64_t section_key(std::uint32_t section) {
    return static_cast<std::uint64_t>(section & 255) << 56 |
           static_cast<std::uint64_t>(section >> 8) << 24;
  }
  static constexpr std::uint64_t kSectionMask = 0xFF000000FF000000u;
};

// Called now and then from long loops with work done so far and in all; throws to stop the work.
using Tick = std::function<void(std::uint64_t done, std::uint64_t total)>;

}  // namespace vocabshift
