// The classes of up to 64 characters at a time, as bits: what scan_blocks.h finds words with.
//
// Only where the compiler's baseline has SSE2 (every x86-64): elsewhere scanners go character by
// character (scan.h). Owns no rule of any pattern.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/scan.h"

#if defined(__SSE2__)
#include <emmintrin.h>

namespace vocabshift::scan {

// Bit i of each mask tells of character i; bits from `count` on are 0.
struct CharBlock {
  static constexpr std::size_t kBytes = 64;  // that are read

  std::uint64_t upper, lower, other, mark;  // letters: \p{Lu} or \p{Lt}; \p{Ll}; \p{Lm} or \p{Lo}
  std::uint64_t number, white, newline;     // newlines are white too
  std::uint64_t space, apostrophe, slash;   // these very characters
  std::uint64_t joiner;                     // ZWJ and ZWNJ
  unsigned count;                           // of whole characters, at least 1
  bool is_ascii;
  std::array<std::uint8_t, kBytes> begins;  // in bytes, by character; not filled where is_ascii

  std::size_t begin(unsigned character) const { return is_ascii ? character : begins[character]; }

  // `at`: kBytes readable bytes of valid UTF-8 that begin with a whole character.
  explicit CharBlock(const char* at) {
    __m128i parts[4];
    std::memcpy(parts, at, kBytes);
    std::uint64_t above = 0;
    for (int i = 0; i < 4; ++i) above |= bits_of(parts[i]) << 16 * i;
    is_ascii = above == 0;
    if (is_ascii) {
      classify_ascii(parts);
    } else {
      classify(at, parts);
    }
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
    count = kBytes;
    upper = lower = other = mark = number = white = newline = space = apostrophe = slash = 0;
    joiner = 0;
    for (int i = 0; i < 4; ++i) {
      const __m128i part = parts[i];
      const int shift = 16 * i;
      const auto letters = bits_of(between(_mm_or_si128(part, _mm_set1_epi8(0x20)), 'a', 'z'));
      const auto small = bits_of(_mm_slli_epi16(part, 2));  // the bit 0x20
      const __m128i blanks = equal(part, ' ');
      const __m128i controls = between(part, '\t', '\r');
      lower |= (letters & small) << shift;
      upper |= (letters & ~small) << shift;
      number |= bits_of(between(part, '0', '9')) << shift;
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
  static const std::array<std::uint8_t, kLowEnd>& low_classes() {
    static const auto classes = [] {
      std::array<std::uint8_t, kLowEnd> made{};
      for (char32_t c = 0; c < kLowEnd; ++c) made[c] = char_class(c);
      return made;
    }();
    return classes;
  }

  void classify(const char* at, const __m128i* parts) {
    std::uint64_t leads = 0;
    for (int i = 0; i < 4; ++i) {  // as signed numbers, continuation bytes are -128 to -65
      leads |= bits_of(_mm_cmpgt_epi8(parts[i], _mm_set1_epi8(-65))) << 16 * i;
    }
    leads &= ~std::uint64_t{0} >> 3;  // a later one may not be whole
    const auto& low = low_classes();
    alignas(16) std::uint8_t classes[kBytes], first_bytes[kBytes];
    count = 0;
    joiner = 0;
    for (; leads != 0; leads &= leads - 1) {
      const auto offset = static_cast<unsigned>(std::countr_zero(leads));
      std::uint32_t word;
      std::memcpy(&word, at + offset, 4);
      const std::uint32_t lead = word & 0xFF;
      const std::uint32_t above = 0 - (lead >> 7);  // all ones where it is not ASCII
      // Without a branch for the two that take turns in Indian text: ASCII, and three bytes of
      // U+0800 to U+0FFF.
      const std::uint32_t of_three = (word >> 2 & 0xFC0) | (word >> 16 & 0x3F);
      classes[count] = low[(lead & ~above) | (of_three & above)];
      if ((lead ^ 0xE0) & above) {
        classes[count] = class_at(at + offset).bits;
        joiner |= std::uint64_t{is_joiner(at + offset, at + kBytes)} << count;
      }
      first_bytes[count] = static_cast<std::uint8_t>(lead);
      begins[count++] = static_cast<std::uint8_t>(offset);
    }
    gather(classes, first_bytes);
  }

  // From a byte for each character to a bit.
  void gather(const std::uint8_t* classes, const std::uint8_t* first_bytes) {
    upper = lower = other = mark = number = white = newline = space = apostrophe = slash = 0;
    for (unsigned i = 0; i < count; i += 16) {
      const auto* const from = reinterpret_cast<const __m128i*>(classes + i);
      const __m128i part = _mm_load_si128(from);
      upper |= bits_of(_mm_slli_epi16(part, shift_of(kUpper))) << i;
      lower |= bits_of(_mm_slli_epi16(part, shift_of(kLower))) << i;
      other |= bits_of(_mm_slli_epi16(part, shift_of(kOtherLetter))) << i;
      mark |= bits_of(_mm_slli_epi16(part, shift_of(kMark))) << i;
      number |= bits_of(_mm_slli_epi16(part, shift_of(kNumber))) << i;
      white |= bits_of(_mm_slli_epi16(part, shift_of(kSpace))) << i;
      newline |= bits_of(_mm_slli_epi16(part, shift_of(kNewline))) << i;
      const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(first_bytes + i));
      space |= bits_of(equal(bytes, ' ')) << i;
      apostrophe |= bits_of(equal(bytes, '\'')) << i;
      slash |= bits_of(equal(bytes, '/')) << i;
    }
    const std::uint64_t valid = (std::uint64_t{1} << count) - 1;  // count < 64
    for (auto* mask :
         {&upper, &lower, &other, &mark, &number, &white, &newline, &space, &apostrophe, &slash}) {
      *mask &= valid;
    }
  }
  static constexpr int shift_of(CharClass bit) { return 7 - std::countr_zero(unsigned{bit}); }
};

}  // namespace vocabshift::scan

#endif
