// The classes of 64 bytes of text at a time, as bits: what scan_words.h and
// scan_boundaries.h find words and boundaries with.
//
// Only where the compiler's baseline has SSE2 (every x86-64): elsewhere scanners go character by
// character (scan.h). Owns no rule of any pattern.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/platform.h"
#include "core/scan.h"

#if VOCABSHIFT_SSE2

namespace vocabshift::scan {

// Bits from the lowest up to, not including, `end` (at most 64).
inline std::uint64_t bits_below(unsigned end) {
  return end == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << end) - 1;
}

// Bit i of each mask tells of the character that byte i is part of; bits from `size` on say
// nothing.
struct CharBlock {
  static constexpr std::size_t kBytes = 64;  // that are read

  std::uint64_t upper, lower, other, mark;  // letters: \p{Lu} or \p{Lt}; \p{Ll}; \p{Lm} or \p{Lo}
  std::uint64_t number, white, newline;     // newlines are white too
  std::uint64_t space, apostrophe, slash;   // these very characters
  std::uint64_t symbol;                     // \p{P} or \p{S}
  std::uint64_t joiner = 0;                 // ZWJ and ZWNJ: their first bytes
  std::uint64_t han = 0;                    // of that script: their first bytes
  std::uint64_t above = 0;                  // all that is not ASCII
  std::uint64_t leads = ~std::uint64_t{0};  // first bytes
  unsigned size = kBytes;                   // of the whole characters, at least 1

  // `at`: kBytes readable bytes of valid UTF-8 that begin with a whole character.
  explicit CharBlock(const char* at) {
    __m128i parts[4];
    std::memcpy(parts, at, kBytes);
    for (int i = 0; i < 4; ++i) above |= bits_of(parts[i]) << 16 * i;
    classify_ascii(parts);
    if (above != 0) classify_others(at, parts);
  }

 private:
  static std::uint64_t bits_of(__m128i bytes) {  // the top bit of each
    return static_cast<std::uint32_t>(_mm_movemask_epi8(bytes));
  }
  static __m128i equal(__m128i bytes, char value) {
    return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(value));
  }
  static __m128i between(__m128i bytes, char first, char last) {  // of ASCII
    return _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8(static_cast<char>(first - 1))),
                         _mm_cmplt_epi8(bytes, _mm_set1_epi8(static_cast<char>(last + 1))));
  }

  void classify_ascii(const __m128i* parts) {
    upper = lower = other = mark = number = white = newline = space = apostrophe = slash = 0;
    symbol = 0;
    for (int i = 0; i < 4; ++i) {
      const __m128i part = parts[i];
      const int shift = 16 * i;
      const auto letters = bits_of(between(_mm_or_si128(part, _mm_set1_epi8(0x20)), 'a', 'z'));
      const auto small = bits_of(_mm_slli_epi16(part, 2));  // the bit 0x20
      const __m128i blanks = equal(part, ' ');
      const __m128i controls = between(part, '\t', '\r');
      const __m128i digits = between(part, '0', '9');
      lower |= (letters & small) << shift;
      upper |= (letters & ~small) << shift;
      number |= bits_of(digits) << shift;
      symbol |= (bits_of(_mm_andnot_si128(digits, between(part, '!', '~'))) & ~letters) << shift;
      white |= bits_of(_mm_or_si128(blanks, controls)) << shift;
      space |= bits_of(blanks) << shift;
      newline |= bits_of(_mm_or_si128(equal(part, '\n'), equal(part, '\r'))) << shift;
      apostrophe |= bits_of(equal(part, '\'')) << shift;
      slash |= bits_of(equal(part, '/')) << shift;
    }
  }

  // Classes of the code points below U+1000, which are nearly all of the text of India: one look
  // where the whole range takes two.
  static constexpr std::size_t kLowEnd = 0x1000;
  static constexpr char32_t kFirstHan = 0x2E80;
  static const std::array<std::uint8_t, kLowEnd>& low_classes() {
    static const auto classes = [] {
      std::array<std::uint8_t, kLowEnd> made{};
      for (char32_t c = 0; c < kLowEnd; ++c) made[c] = class_bits(c);
      return made;
    }();
    return classes;
  }

  void classify_others(const char* at, const __m128i* parts) {
    leads = 0;
    for (int i = 0; i < 4; ++i) {  // as signed numbers, continuation bytes are -128 to -65
      leads |= bits_of(_mm_cmpgt_epi8(parts[i], _mm_set1_epi8(-65))) << 16 * i;
    }
    const auto& low = low_classes();
    alignas(16) std::uint8_t classes[kBytes] = {};
    constexpr std::uint64_t kMayBeCut = std::uint64_t{7} << (kBytes - 3);
    std::uint64_t left = leads & above;
    if (left & kMayBeCut) {
      size = static_cast<unsigned>(std::countr_zero(left & kMayBeCut));
      left &= ~kMayBeCut;
    }
    for (; left != 0; left &= left - 1) {
      const auto offset = static_cast<unsigned>(std::countr_zero(left));
      std::uint32_t word;
      std::memcpy(&word, at + offset, 4);
      std::uint32_t bits;
      if ((word & 0xFF) == 0xE0) [[likely]] {  // U+0800 to U+0FFF
        bits = low[(word >> 2 & 0xFC0) | (word >> 16 & 0x3F)];
      } else {
        const char32_t c = decode_utf8(at + offset).code_point;
        bits = class_bits(c);
        joiner |= std::uint64_t{c == U'\u200C' || c == U'\u200D'} << offset;
        if (c >= kFirstHan) han |= std::uint64_t{is_han(c)} << offset;
      }
      bits *= 0x01010101u;  // for all its bytes; the next character's follow over the rest
      std::memcpy(classes + offset, &bits, 4);
    }
    gather(classes);
  }

  // From a byte for each to a bit.
  void gather(const std::uint8_t* classes) {
    std::uint64_t bits[7] = {};
    for (int i = 0; i < 4; ++i) {
      const __m128i part = _mm_load_si128(reinterpret_cast<const __m128i*>(classes) + i);
      const int shift = 16 * i;
      bits[0] |= bits_of(_mm_slli_epi16(part, shift_of(kUpper))) << shift;
      bits[1] |= bits_of(_mm_slli_epi16(part, shift_of(kLower))) << shift;
      bits[2] |= bits_of(_mm_slli_epi16(part, shift_of(kOtherLetter))) << shift;
      bits[3] |= bits_of(_mm_slli_epi16(part, shift_of(kMark))) << shift;
      bits[4] |= bits_of(_mm_slli_epi16(part, shift_of(kNumber))) << shift;
      bits[5] |= bits_of(_mm_slli_epi16(part, shift_of(kSpace))) << shift;
      bits[6] |= bits_of(part) << shift;  // kSymbol
    }
    upper |= bits[0] & above;
    lower |= bits[1] & above;
    other |= bits[2] & above;
    mark |= bits[3] & above;
    number |= bits[4] & above;
    white |= bits[5] & above;
    symbol |= bits[6] & above;
  }
  static constexpr int shift_of(CharClass bit) { return 7 - std::countr_zero(unsigned{bit}); }
};

}  // namespace vocabshift::scan

#endif
