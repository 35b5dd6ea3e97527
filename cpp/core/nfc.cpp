#include "core/nfc.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/unicode.h"
#include "core/utf8.h"

namespace vocabshift {

namespace {

constexpr char32_t kNone = 0x110000;

bool compose(char32_t first, char32_t second) {
  const std::uint64_t pair = static_cast<std::uint64_t>(second) << 32 | first;
  return std::binary_search(tables::kCompositions,
                            tables::kCompositions + tables::kCompositionCount, pair);
}

// The end of the ASCII at `at`.
const char* skip_ascii(const char* at, const char* end) {
  for (std::uint64_t word; end - at >= 8; at += 8) {
    std::memcpy(&word, at, 8);
    if (word & 0x8080808080808080U) break;
  }
  while (at < end && !(*at & 0x80)) ++at;
  return at;
}

}  // namespace

bool is_nfc(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  char32_t starter = kNone;  // the last one
  bool is_composed = false;  // that one
  unsigned last = 0;         // combining class of the character before; 0: the starter itself
  while (at < end) {
    if (!(*at & 0x80)) {
      at = skip_ascii(at, end);
      starter = static_cast<unsigned char>(at[-1]);
      is_composed = false;
      last = 0;
      continue;
    }
    const Decoded next = decode_utf8(at);
    at += next.length;
    const unsigned value = tables::nfc_value(next.code_point);
    if (value & tables::kNfcUnsure) return false;
    const unsigned combining = value & tables::kNfcClass;
    if (combining != 0 && combining < last) return false;  // out of order
    if (value & tables::kNfcSecond && starter != kNone) {
      // A character of the same class in between, or any before a starter, blocks the pair.
      const bool is_blocked = combining == 0 ? last != 0 : last == combining;
      if (!is_blocked && compose(starter, next.code_point)) return false;
      // It may come before a mark that the starter is composed of, and compose with what is left.
      if (is_composed && combining != 0) return false;
    }
    if (combining == 0) {
      starter = next.code_point;
      is_composed = value & tables::kNfcComposed;
    }
    last = combining;
  }
  return true;
}

}  // namespace vocabshift
