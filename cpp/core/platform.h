// What the core asks of a compiler beyond C++20: the one file that names extensions and intrinsics.
// Each has a portable way. It is taken where the compiler has no other, and everywhere in a build
// with VOCABSHIFT_PLAIN, which tests it. What the core asks of a system is in big_memory.h (memory)
// and open_file.cpp (files).
#pragma once

#include <compare>
#include <cstdint>

#if !defined(VOCABSHIFT_PLAIN) && (defined(__SSE2__) || defined(_M_X64))
#define VOCABSHIFT_SSE2 1  // the baseline of x86-64: asked of the compiler, not of the processor
#include <emmintrin.h>
#else
#define VOCABSHIFT_SSE2 0
#endif

#if !defined(VOCABSHIFT_PLAIN) && defined(_MSC_VER) && defined(_M_X64)
#include <intrin.h>
#endif

#if !defined(VOCABSHIFT_PLAIN) && defined(__GNUC__)
#define VOCABSHIFT_GNU 1  // GCC and Clang
#else
#define VOCABSHIFT_GNU 0
#endif

namespace vocabshift {

// Asks for the cache line of `at`, which need not be readable.
inline void prefetch_to_read([[maybe_unused]] const void* at) {
#if VOCABSHIFT_GNU
  __builtin_prefetch(at);
#elif VOCABSHIFT_SSE2
  _mm_prefetch(static_cast<const char*>(at), _MM_HINT_T0);
#endif
}

// The same where it will be written.
inline void prefetch_to_write([[maybe_unused]] const void* at) {
#if VOCABSHIFT_GNU
  __builtin_prefetch(at, 1);
#else
  prefetch_to_read(at);
#endif
}

// *sum = a + b modulo 2^64; true if that is not a + b.
[[nodiscard]] inline bool add_overflows(std::uint64_t a, std::uint64_t b, std::uint64_t* sum) {
#if VOCABSHIFT_GNU
  return __builtin_add_overflow(a, b, sum);
#else
  *sum = a + b;
  return *sum < a;
#endif
}

// A number of 128 bits, in order by value.
struct Wide {
  std::uint64_t high, low;
  friend auto operator<=>(const Wide&, const Wide&) = default;
};

inline Wide multiply_portably(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kLow = 0xFFFFFFFFu;
  const std::uint64_t low = (a & kLow) * (b & kLow);
  const std::uint64_t middle = (a >> 32) * (b & kLow) + (low >> 32);  // at most 2^64 - 2^32
  const std::uint64_t other = (a & kLow) * (b >> 32) + (middle & kLow);
  return {(a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32), other << 32 | (low & kLow)};
}

inline Wide multiply(std::uint64_t a, std::uint64_t b) {
#if VOCABSHIFT_GNU && defined(__SIZEOF_INT128__)
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(a) * b;
  return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
#elif !defined(VOCABSHIFT_PLAIN) && defined(_MSC_VER) && defined(_M_X64)
  Wide product;
  product.low = _umul128(a, b, &product.high);
  return product;
#else
  return multiply_portably(a, b);
#endif
}

// *product = a * b modulo 2^64; true if that is not a * b.
[[nodiscard]] inline bool multiply_overflows(std::uint64_t a, std::uint64_t b,
                                             std::uint64_t* product) {
#if VOCABSHIFT_GNU
  return __builtin_mul_overflow(a, b, product);
#else
  *product = a * b;
  return multiply(a, b).high != 0;
#endif
}

// The eight bytes in the other order. Compilers know the portable way as one instruction.
inline std::uint64_t swap_bytes(std::uint64_t value) {
  value = value >> 32 | value << 32;
  value = (value & 0xFFFF0000FFFF0000u) >> 16 | (value & 0x0000FFFF0000FFFFu) << 16;
  return (value & 0xFF00FF00FF00FF00u) >> 8 | (value & 0x00FF00FF00FF00FFu) << 8;
}

}  // namespace vocabshift
