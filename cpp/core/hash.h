// Hashing of short byte strings and of pairs. Not cryptographic; equality is always verified.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/platform.h"
#include "core/types.h"

namespace vocabshift {

inline std::uint64_t load8(const char* at) {
  std::uint64_t value;
  std::memcpy(&value, at, 8);
  return value;
}

// Folded 64x64 -> 128 bit product: every output bit depends on every input bit.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const Wide product = multiply(a, b);
  return product.low ^ product.high;
}

inline constexpr std::uint64_t kSeed0 = 0x9E3779B97F4A7C15ull;
inline constexpr std::uint64_t kSeed1 = 0xD6E8FEB86659FD93ull;

inline std::uint64_t hash_pair(std::uint64_t key) { return mix(key ^ kSeed0, kSeed1); }

// A word of up to 16 bytes is its own key: its bytes, zeros after them, and its length determine
// it. A longer one is known by its hash, and its bytes must be compared.
struct WordKey {
  static constexpr std::size_t kInline = 16;
  std::uint64_t low;   // bytes 0 to 7, or the hash of a long word
  std::uint64_t high;  // bytes 8 to 15; 0 for a long word
  std::uint32_t length;

  bool is_inline() const { return length <= kInline; }
  std::uint64_t hash() const { return mix(low ^ kSeed0, high ^ kSeed1 ^ length); }
};

inline std::uint64_t hash_bytes(std::string_view bytes) {
  std::uint64_t state = kSeed0 ^ bytes.size();
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 16; at += 16, left -= 16) state = mix(state ^ load8(at), kSeed1 ^ load8(at + 8));
  if (left > 0) {
    char tail[16] = {};
    std::memcpy(tail, at, left);
    state = mix(state ^ load8(tail), kSeed1 ^ load8(tail + 8));
  }
  return mix(state, kSeed1);
}

// The lowest `n` bytes of eight, n <= 8.
inline std::uint64_t lowest_bytes(std::uint64_t eight, std::size_t n) {
  return n == 0 ? 0 : eight & ~std::uint64_t{0} >> (64 - 8 * n);
}

// `readable` bytes may be loaded from the word's address, though they are not all its own: then no
// branch depends on the length of a short word, which is as good as random.
inline WordKey word_key(std::string_view word, std::size_t readable) {
  static_assert(std::endian::native == std::endian::little, "a word's first byte is the lowest");
  const std::size_t size = word.size();
  const char* const bytes = word.data();
  const auto length = static_cast<std::uint32_t>(size);
  if (size > WordKey::kInline) return {hash_bytes(word), 0, length};
  if (readable >= WordKey::kInline) {
    return {lowest_bytes(load8(bytes), std::min<std::size_t>(size, 8)),
            lowest_bytes(load8(bytes + 8), std::max<std::size_t>(size, 8) - 8), length};
  }
  if (size > 8) return {load8(bytes), load8(bytes + size - 8) >> (128 - 8 * size), length};
  if (size == 8) return {load8(bytes), 0, length};
  std::uint64_t low = 0;
  if (size >= 4) {  // two loads that overlap
    std::uint32_t first, last;
    std::memcpy(&first, bytes, 4);
    std::memcpy(&last, bytes + size - 4, 4);
    low = first | std::uint64_t{last} >> (64 - 8 * size) << 32;
  } else {
    for (std::size_t i = 0; i < size; ++i) {
      low |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
    }
  }
  return {low, 0, length};
}

}  // namespace vocabshift
