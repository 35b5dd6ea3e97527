// A step that cuts at the characters of a set: single digits, runs of Chinese characters, newlines.
// Which set it is, is handed in.
#pragma once

#include <array>
#include <bit>
#include <bitset>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/platform.h"
#include "core/scan.h"
#include "core/types.h"

namespace vocabshift {

class CharacterRuns {
 public:
  enum class Cut {
    kAround,  // the matches and what is between them are the pre-tokens
    kAfter,   // a match goes with what is before it
    kBefore,  // with what is after it
  };

  // The set: all characters with one of the class bits (unicode.h), and those of `ranges` (first
  // and last). A match is a run of at most `longest` of them; 0 is no limit.
  // std::invalid_argument for a range that is none, or beyond U+10FFFF.
  CharacterRuns(std::uint8_t bits, const std::vector<std::pair<char32_t, char32_t>>& ranges,
                std::size_t longest, Cut cut);

  template <class F>
  void split(std::string_view text, F&& pre_token) const {
    const char* const end = text.data() + text.size();
    const char* begin = text.data();  // of the pre-token under way
    for (const char* at = begin; at < end;) {
      if (!first_bytes_[static_cast<unsigned char>(*at)]) {  // most of the text
        at = skip(at + 1, end);
        continue;
      }
      const char* const stop = match(at, end);
      if (stop == at) {
        at += scan::char_length(at);
        continue;
      }
      if (cut_ != Cut::kAfter && begin < at) {
        pre_token(std::string_view(begin, at));
        begin = at;
      }
      if (cut_ != Cut::kBefore) {
        pre_token(std::string_view(begin, stop));
        begin = stop;
      }
      at = stop;
    }
    if (begin < end) pre_token(std::string_view(begin, end));
  }

 private:
  // Where, from `at` on, the next byte may stand that begins a character of the set.
  const char* skip(const char* at, const char* end) const {
#if VOCABSHIFT_SSE2
    const auto outside = [](__m128i bytes, ByteRange range) {  // as signed bytes
      return _mm_or_si128(_mm_cmplt_epi8(bytes, _mm_set1_epi8(range.first)),
                          _mm_cmpgt_epi8(bytes, _mm_set1_epi8(range.last)));
    };
    while (end - at >= 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
      __m128i none = outside(bytes, leads_);
      for (const ByteRange range : ascii_) none = _mm_and_si128(none, outside(bytes, range));
      if (const int mask = 0xFFFF & ~_mm_movemask_epi8(none); mask != 0) {
        return at + std::countr_zero(static_cast<unsigned>(mask));
      }
      at += 16;
    }
#endif
    while (at < end && !first_bytes_[static_cast<unsigned char>(*at)]) ++at;
    return at;
  }

  const char* match(const char* at, const char* end) const {
    for (std::size_t left = longest_; at < end && left > 0; --left) {
      const Decoded next = decode_utf8(at);
      if (!(*set_)[next.code_point]) break;
      at += next.length;
    }
    return at;
  }

  std::shared_ptr<const std::bitset<0x110000>> set_;
  struct ByteRange {
    signed char first, last;
  };
  std::array<bool, 256> first_bytes_{};
  std::vector<ByteRange> ascii_;  // the runs of these below 0x80
  ByteRange leads_{0, -1};        // from the first to the last of the others
  std::size_t longest_;
  Cut cut_;
};

}  // namespace vocabshift
