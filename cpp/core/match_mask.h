// Where a pair stands in a short run of tokens: one bit per position, found without branches.
// Most sequences are a word of a few tokens, and a loop that stops at the match costs a
// mispredicted branch for every one of them.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/platform.h"
#include "core/types.h"

namespace vocabshift {

// Tokens are looked at and moved in whole blocks. Of a run in memory, this many bytes after its
// tokens may be overwritten, and this many more may be read.
inline constexpr std::size_t kOverwrittenAfter = 14;
inline constexpr std::size_t kReadAfter = 72;

// Bit i is set where tokens[i], tokens[i + 1] is the pair; length <= 64.
template <class Token>
std::uint64_t match_mask_plain(const Token* tokens, std::uint32_t length, Pair pair) {
  std::uint64_t mask = 0;
  for (std::uint32_t i = 0; i + 1 < length; ++i) {
    const bool is_match = (tokens[i] == pair.left) & (tokens[i + 1] == pair.right);
    mask |= static_cast<std::uint64_t>(is_match) << i;
  }
  return mask;
}

#if VOCABSHIFT_SSE2

// Lanes of 16 bits, all ones where the pair is, for eight positions.
inline __m128i match_8(const std::uint16_t* tokens, __m128i left, __m128i right) {
  const auto load = [](const std::uint16_t* at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  };
  return _mm_and_si128(_mm_cmpeq_epi16(load(tokens), left),
                       _mm_cmpeq_epi16(load(tokens + 1), right));
}
inline __m128i match_8(const std::uint32_t* tokens, __m128i left, __m128i right) {
  const auto match_4 = [&](const std::uint32_t* at) {
    const auto load = [](const std::uint32_t* here) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(here));
    };
    return _mm_and_si128(_mm_cmpeq_epi32(load(at), left), _mm_cmpeq_epi32(load(at + 1), right));
  };
  return _mm_packs_epi32(match_4(tokens), match_4(tokens + 4));
}

inline __m128i broadcast(std::uint16_t, TokenId id) {
  return _mm_set1_epi16(static_cast<short>(id));
}
inline __m128i broadcast(std::uint32_t, TokenId id) { return _mm_set1_epi32(static_cast<int>(id)); }

template <class Token>
std::uint64_t match_mask(const Token* tokens, std::uint32_t length, Pair pair) {
  if (length < 2) return 0;
  const __m128i left = broadcast(Token{}, pair.left);
  const __m128i right = broadcast(Token{}, pair.right);
  std::uint64_t mask = 0;
  std::uint32_t i = 0;
  do {
    const __m128i matches =
        _mm_packs_epi16(match_8(tokens + i, left, right), match_8(tokens + i + 8, left, right));
    mask |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(matches))) << i;
    i += 16;
  } while (i + 1 < length);
  return mask &
         (~std::uint64_t{0} >> (65 - length));  // the last block may have looked past the end
}

#else

template <class Token>
std::uint64_t match_mask(const Token* tokens, std::uint32_t length, Pair pair) {
  return match_mask_plain(tokens, length, pair);
}

#endif

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
template <class Token>
void close_gap(Token* tokens, std::uint32_t at, std::uint32_t length) {
  constexpr std::uint32_t kBlock = 16 / sizeof(Token);
  for (std::uint32_t i = at; i + 1 < length; i += kBlock) {
    std::memmove(tokens + i, tokens + i + 1, 16);
  }
}

}  // namespace vocabshift
