// Checks UTF-8 by blocks of 64 bytes, without a branch per character. Owns what is quick to check:
// everything of up to three bytes. What it does not take is left to utf8.cpp.
//
// Only where the compiler's baseline has SSE2 (every x86-64); elsewhere no block is taken.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/platform.h"

namespace vocabshift {

inline constexpr std::size_t kUtf8Block = 64;

#if VOCABSHIFT_SSE2

// Whether the bytes from `at` on, kUtf8Block and one more, which begin with a whole character, are
// well-formed so far; `whole` is then where the last character begins that may go on after the
// block, or kUtf8Block.
inline bool is_valid_block(const unsigned char* at, std::size_t* whole) {
  const auto is_less = [](__m128i bytes, int than) {  // as signed bytes: 0x80 … 0xFF are below 0
    return _mm_cmplt_epi8(bytes, _mm_set1_epi8(static_cast<char>(than)));
  };
  const auto is_equal = [](__m128i bytes, int to) {
    return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(static_cast<char>(to)));
  };
  const auto bits = [](__m128i bytes, int part) {  // the top bit of each
    return std::uint64_t{static_cast<std::uint32_t>(_mm_movemask_epi8(bytes))} << 16 * part;
  };
  std::uint64_t above = 0, continues = 0, below_three = 0;
  __m128i wrong = _mm_setzero_si128();
  for (int part = 0; part < 4; ++part) {
    const __m128i here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at) + part);
    const __m128i next = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 1) + part);
    const __m128i is_continuation = is_less(here, 0xC0);
    above |= bits(here, part);
    continues |= bits(is_continuation, part);
    below_three |= bits(is_less(here, 0xE0), part);
    // Overlong two (C0, C1), four bytes and what is never in UTF-8 (F0 … FF).
    const __m128i rare = _mm_or_si128(_mm_andnot_si128(is_continuation, is_less(here, 0xC2)),
                                      _mm_andnot_si128(is_less(here, 0xF0), here));
    // Overlong three (E0 80 … 9F), surrogates (ED A0 … BF).
    const __m128i is_low = is_less(next, 0xA0);
    const __m128i second = _mm_or_si128(_mm_and_si128(is_equal(here, 0xE0), is_low),
                                        _mm_andnot_si128(is_low, is_equal(here, 0xED)));
    wrong = _mm_or_si128(wrong, _mm_or_si128(rare, second));
  }
  *whole = kUtf8Block;
  if (above == 0) return true;
  const std::uint64_t leads = above & ~continues;
  const std::uint64_t threes = above & ~below_three;
  if (_mm_movemask_epi8(wrong) != 0 || (leads << 1 | threes << 2) != continues) return false;
  *whole -= threes >> 62 & 1 ? 2 : leads >> 63;
  return true;
}

// Where blocks end that are well-formed, from `at`, where a character begins, on: at the beginning
// of a character.
inline std::size_t skip_valid_blocks(const unsigned char* bytes, std::size_t at, std::size_t size) {
  for (std::size_t whole; at + kUtf8Block < size && is_valid_block(bytes + at, &whole);) {
    at += whole;
  }
  return at;
}

#else

inline std::size_t skip_valid_blocks(const unsigned char*, std::size_t at, std::size_t) {
  return at;
}

#endif

}  // namespace vocabshift
