// Hashing of short byte strings and of pairs. Not cryptographic; equality is always verified.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/types.h"

namespace vocabshift {

inline std::uint64_t load8(const char* at) {
  std::uint64_t value;
  std::memcpy(&value, at, 8);
  return value;
}

// Folded 64x64 -> 128 bit product: every output bit depends on every input bit.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline constexpr std::uint64_t kSeed0 = 0x9E3779B97F4A7C15ull;
inline constexpr std::uint64_t kSeed1 = 0xD6E8FEB86659FD93ull;

inline std::uint64_t hash_pair(std::uint64_t key) { return mix(key ^ kSeed0, kSeed1); }

// A word of up to 16 bytes is its own key: two (overlapping) words of memory and the length
// determine it. A longer one is known by its hash, and its bytes must be compared.
struct WordKey {
  static constexpr std::size_t kInline = 16;
  std::uint64_t low;   // first 8 bytes, or the hash of a long word
  std::uint64_t high;  // last 8 bytes; 0 for a word under 8 bytes and for a long word
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

inline WordKey word_key(std::string_view word) {
  const std::size_t size = word.size();
  const auto length = static_cast<std::uint32_t>(size);
  if (size >= 8) {
    if (size <= WordKey::kInline)
      return {load8(word.data()), load8(word.data() + size - 8), length};
    return {hash_bytes(word), 0, length};
  }
  std::uint64_t low = 0;
  if (size >= 4) {
    std::uint32_t first, last;
    std::memcpy(&first, word.data(), 4);
    std::memcpy(&last, word.data() + size - 4, 4);
    low = first | static_cast<std::uint64_t>(last) << 32;
  } else if (size > 0) {
    const auto byte = [&](std::size_t i) {
      return static_cast<std::uint64_t>(static_cast<unsigned char>(word[i]));
    };
    low = byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16;
  }
  return {low, 0, length};
}

}  // namespace vocabshift
