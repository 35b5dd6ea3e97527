// Bytes <-> code points. What happens to bad bytes is decided here: they are found and reported,
// never replaced; everything past this door may assume valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace vocabshift {

inline constexpr std::int64_t kAllValid = -1;

// Byte offset of the first byte that is not part of well-formed UTF-8 (Unicode 3.9, table 3-7:
// no overlong forms, no surrogates, nothing above U+10FFFF), or kAllValid.
std::int64_t first_invalid_utf8(std::string_view text);
// The same by several threads.
std::int64_t first_invalid_utf8(std::string_view text, std::size_t threads);

// One code point of valid UTF-8 and its length in bytes.
struct Decoded {
  char32_t code_point;
  std::uint32_t length;  // 1-4 bytes
};

inline Decoded decode_utf8(const char* at) {
  const auto* p = reinterpret_cast<const unsigned char*>(at);
  if (p[0] < 0x80) return {p[0], 1};
  if (p[0] < 0xE0) return {static_cast<char32_t>((p[0] & 0x1F) << 6 | (p[1] & 0x3F)), 2};
  if (p[0] < 0xF0) {
    return {static_cast<char32_t>((p[0] & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F)), 3};
  }
  return {static_cast<char32_t>((p[0] & 0x07) << 18 | (p[1] & 0x3F) << 12 | (p[2] & 0x3F) << 6 |
                                (p[3] & 0x3F)),
          4};
}

inline void append_utf8(char32_t code_point, std::string& out) {
  const auto tail = [&](unsigned shift) {
    out.push_back(static_cast<char>(0x80 | (code_point >> shift & 0x3F)));
  };
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
    return;
  }
  if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xC0 | code_point >> 6));
  } else {
    if (code_point < 0x10000) {
      out.push_back(static_cast<char>(0xE0 | code_point >> 12));
    } else {
      out.push_back(static_cast<char>(0xF0 | code_point >> 18));
      tail(12);
    }
    tail(6);
  }
  tail(0);
}

inline bool is_continuation_byte(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// The lines of a text as byte spans, without their "\n" or "\r\n"; a last line without an ending
// counts, an empty text has no line.
std::vector<Span> line_spans(std::string_view text);
// The same by several threads: a list for each, one after the other.
std::vector<std::vector<Span>> line_spans(std::string_view text, std::size_t threads);

}  // namespace vocabshift
