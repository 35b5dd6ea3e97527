// Where a pair stands in a short run of tokens: one bit per position, found without branches.
// Most chunks are a word of a few tokens, and a loop that stops at the match costs a mispredicted
// branch for every one of them.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/types.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace vocabshift {

// What these functions may read or overwrite behind the tokens they are given.
inline constexpr std::uint32_t kTokensBehind = 3;

// Bit i is set where tokens[i], tokens[i + 1] is the pair; length <= 64.
inline std::uint64_t match_mask(const TokenId* tokens, std::uint32_t length, Pair pair) {
  std::uint64_t mask = 0;
#if defined(__SSE2__)
  const __m128i left = _mm_set1_epi32(static_cast<int>(pair.left));
  const __m128i right = _mm_set1_epi32(static_cast<int>(pair.right));
  for (std::uint32_t i = 0; i + 1 < length; i += 4) {
    const __m128i here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tokens + i));
    const __m128i next = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tokens + i + 1));
    const __m128i match = _mm_and_si128(_mm_cmpeq_epi32(here, left), _mm_cmpeq_epi32(next, right));
    mask |= static_cast<std::uint64_t>(_mm_movemask_ps(_mm_castsi128_ps(match))) << i;
  }
  // The last block may have looked behind the tokens.
  return length < 2 ? 0 : mask & (~std::uint64_t{0} >> (65 - length));
#else
  for (std::uint32_t i = 0; i + 1 < length; ++i) {
    const bool is_match = (tokens[i] == pair.left) & (tokens[i + 1] == pair.right);
    mask |= static_cast<std::uint64_t>(is_match) << i;
  }
  return mask;
#endif
}

// The matches that a scan from left to right merges: of a run like aaa only every other.
inline std::uint64_t without_overlaps(std::uint64_t mask) {
  std::uint64_t kept = 0;
  while (mask != 0) {
    const std::uint64_t lowest = mask & (~mask + 1);
    kept |= lowest;
    mask &= ~(lowest | lowest << 1);
  }
  return kept;
}

// Moves tokens[at + 1 .. length) one place to the front.
inline void close_gap(TokenId* tokens, std::uint32_t at, std::uint32_t length) {
  for (std::uint32_t i = at; i + 1 < length; i += 4) std::memmove(tokens + i, tokens + i + 1, 16);
}

}  // namespace vocabshift
