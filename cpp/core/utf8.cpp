#include "core/utf8.h"

#include <algorithm>
#include <cstring>

#include "core/threads.h"
#include "core/utf8_blocks.h"

namespace vocabshift {

namespace {

// Length of the well-formed sequence at p (at most `left` bytes), or 0.
std::size_t well_formed_length(const unsigned char* p, std::size_t left) {
  const unsigned char lead = p[0];
  if (lead < 0x80) return 1;
  const auto continues = [&](std::size_t i) { return (p[i] & 0xC0) == 0x80; };
  if (lead >= 0xC2 && lead <= 0xDF) return left >= 2 && continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (left < 3 || !continues(1) || !continues(2)) return 0;
    if (lead == 0xE0 && p[1] < 0xA0) return 0;   // overlong
    if (lead == 0xED && p[1] >= 0xA0) return 0;  // surrogate
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (left < 4 || !continues(1) || !continues(2) || !continues(3)) return 0;
    if (lead == 0xF0 && p[1] < 0x90) return 0;   // overlong
    if (lead == 0xF4 && p[1] >= 0x90) return 0;  // above U+10FFFF
    return 4;
  }
  return 0;
}

// Skips well-formed sequences of three bytes, which is what most scripts are written in, with one
// look at each; stops at whatever else there is.
std::size_t skip_three_bytes(const unsigned char* bytes, std::size_t at, std::size_t size) {
  while (at + 4 <= size) {
    std::uint32_t four;
    std::memcpy(&four, bytes + at, 4);
    if ((four & 0x00C0C0F0) != 0x008080E0) break;       // lead, two continuation bytes
    const std::uint32_t checked = four & 0x20FF;        // the lead, and which half the second is in
    if (checked == 0x00E0 || checked == 0x20ED) break;  // overlong; surrogate
    at += 3;
  }
  return at;
}

}  // namespace

std::int64_t first_invalid_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t size = text.size();
  std::size_t at = 0;
  for (std::size_t next_block = 0; at < size;) {
    if (at >= next_block) {
      at = skip_valid_blocks(bytes, at, size);
      next_block = at + kUtf8Block;  // what stopped it is inside this one
    }
    std::uint64_t eight;
    while (at + 8 <= size) {
      std::memcpy(&eight, bytes + at, 8);
      if (eight & 0x8080808080808080ull) break;
      at += 8;
    }
    at = skip_three_bytes(bytes, at, size);
    if (at >= size) break;
    const std::size_t length = well_formed_length(bytes + at, size - at);
    if (length == 0) return static_cast<std::int64_t>(at);
    at += length;
  }
  return kAllValid;
}

namespace {

// The lines of text[begin, size): part of a longer text, in whose bytes their spans are.
void append_lines(std::string_view text, std::size_t begin, std::vector<Span>& spans) {
  spans.reserve(std::min<std::size_t>((text.size() - begin) / 64, 1 << 16));
  while (begin < text.size()) {
    const void* found = std::memchr(text.data() + begin, '\n', text.size() - begin);
    const std::size_t newline =
        found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data())
              : text.size();
    std::size_t end = newline;
    if (found && end > begin && text[end - 1] == '\r') --end;
    spans.push_back({begin, end});
    begin = newline + 1;
  }
}

// Borders 0 = b[0] <= … <= b[threads] = size that cut a text into about equal parts, each moved on
// by next_border(at) to where the text may be cut.
template <class NextBorder>
std::vector<std::size_t> borders_of(std::string_view text, std::size_t threads,
                                    NextBorder&& next_border) {
  std::vector<std::size_t> borders{0};
  for (std::size_t i = 1; i < threads; ++i) {
    borders.push_back(next_border(std::max(borders.back(), text.size() / threads * i)));
  }
  borders.push_back(text.size());
  return borders;
}

}  // namespace

std::int64_t first_invalid_utf8(std::string_view text, std::size_t threads) {
  // A part that begins at no continuation byte is judged as within the whole: a character that is
  // cut off before it is as wrong there.
  const auto borders = borders_of(text, threads, [&](std::size_t at) {
    while (at < text.size() && is_continuation_byte(text[at])) ++at;
    return at;
  });
  std::vector<std::int64_t> bad(threads);
  parallel_for(threads, [&](std::size_t i) {
    bad[i] = first_invalid_utf8(text.substr(borders[i], borders[i + 1] - borders[i]));
  });
  for (std::size_t i = 0; i < threads; ++i) {
    if (bad[i] != kAllValid) return static_cast<std::int64_t>(borders[i]) + bad[i];
  }
  return kAllValid;
}

std::vector<Span> line_spans(std::string_view text) {
  std::vector<Span> spans;
  append_lines(text, 0, spans);
  return spans;
}

std::vector<std::vector<Span>> line_spans(std::string_view text, std::size_t threads) {
  const auto borders = borders_of(text, threads, [&](std::size_t at) {
    const std::size_t newline = text.find('\n', at);
    return newline == std::string_view::npos ? text.size() : newline + 1;
  });
  std::vector<std::vector<Span>> spans(threads);
  parallel_for(threads, [&](std::size_t i) {
    append_lines(text.substr(0, borders[i + 1]), borders[i], spans[i]);
  });
  return spans;
}

}  // namespace vocabshift
