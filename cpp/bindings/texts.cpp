#include "bindings/texts.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace vocabshift::bindings {

namespace {

constexpr std::size_t kBehind = 8;  // bytes that may be written behind the text

// Copies the ASCII characters that come next, several at a time; returns how many.
template <class Char>
std::size_t copy_ascii(const Char* from, std::size_t left, char* to) {
  std::size_t done = 0;
#if defined(__SSE2__)
  if constexpr (sizeof(Char) == 2) {
    for (; done + 8 <= left; done += 8) {
      const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done));
      const __m128i above = _mm_and_si128(eight, _mm_set1_epi16(static_cast<short>(0xFF80)));
      if (_mm_movemask_epi8(_mm_cmpeq_epi16(above, _mm_setzero_si128())) != 0xFFFF) break;
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to + done), _mm_packus_epi16(eight, eight));
    }
  }
#endif
  (void)from, (void)left, (void)to;
  return done;
}

// UTF-8 of `length` characters at `to`, where there is room for 4 bytes each and kBehind; returns
// the end, or null for a lone surrogate. One to three bytes are written without a branch: in Indian
// text spaces and letters take turns.
template <class Char>
char* to_utf8(const Char* from, std::size_t length, char* to) {
  bool has_surrogate = false;
  for (std::size_t i = 0; i < length;) {
    if (from[i] < 0x80) {
      const std::size_t ascii = copy_ascii(from + i, length - i, to);
      i += ascii;
      to += ascii;
      if (ascii > 0) continue;
    }
    // A few at a time, before ASCII is looked for again.
    for (const std::size_t end = std::min(length, i + 16); i < end; ++i) {
      const std::uint32_t c = from[i];
      if (sizeof(Char) == 4 && c >= 0x10000) {
        const std::uint32_t word = 0x808080F0u | c >> 18 | (c >> 12 & 0x3F) << 8 |
                                   (c >> 6 & 0x3F) << 16 | (c & 0x3F) << 24;
        std::memcpy(to, &word, 4);
        to += 4;
        continue;
      }
      has_surrogate |= (c & 0xF800) == 0xD800;
      const std::uint32_t two = 0x80C0u | c >> 6 | (c & 0x3F) << 8;
      const std::uint32_t three = 0x8080E0u | c >> 12 | (c >> 6 & 0x3F) << 8 | (c & 0x3F) << 16;
      const std::uint32_t is_above = 0u - (c >= 0x80), is_far = 0u - (c >= 0x800);
      const std::uint32_t word = (c & ~is_above) | (two & is_above & ~is_far) | (three & is_far);
      std::memcpy(to, &word, 4);
      to += 1 - static_cast<std::int32_t>(is_above) - static_cast<std::int32_t>(is_far);
    }
  }
  return has_surrogate ? nullptr : to;
}

}  // namespace

StrDocuments::Text StrDocuments::text_of(PyObject* text) {
  const auto length = static_cast<std::size_t>(PyUnicode_GET_LENGTH(text));
  if (PyUnicode_IS_ASCII(text)) return {PyUnicode_DATA(text), length, 0};
#if !defined(PYPY_VERSION)
  if (PyUnicode_IS_COMPACT(text)) {  // may have been asked for its UTF-8 before, and keep it
    const auto* const known = reinterpret_cast<const PyCompactUnicodeObject*>(text);
    if (known->utf8) return {known->utf8, static_cast<std::size_t>(known->utf8_length), 0};
  }
#endif
  return {PyUnicode_DATA(text), length, static_cast<int>(PyUnicode_KIND(text))};
}

StrDocuments::StrDocuments(const py::list& texts) : held_(texts) {
  texts_.reserve(held_.size());
  for (const py::handle text : held_) {
    if (!PyUnicode_Check(text.ptr())) {
      utf8_of(text);  // raises the interpreter's TypeError
    }
    texts_.push_back(text_of(text.ptr()));
  }
}

std::size_t StrDocuments::size(std::size_t i) const {
  const Text& text = texts_[i];
  return text.bytes == 2 ? text.length * 5 / 2 : text.length;
}

std::string_view StrDocuments::get(std::size_t i, std::string& room) const {
  const Text& text = texts_[i];
  if (text.bytes == 0) return {static_cast<const char*>(text.data), text.length};
  const std::size_t most = text.length * (text.bytes == 4 ? 4 : text.bytes + 1) + kBehind;
  if (room.size() < most) room.resize(most);
  char* const begin = room.data();
  const char* const end =
      text.bytes == 1   ? to_utf8(static_cast<const std::uint8_t*>(text.data), text.length, begin)
      : text.bytes == 2 ? to_utf8(static_cast<const std::uint16_t*>(text.data), text.length, begin)
                        : to_utf8(static_cast<const std::uint32_t*>(text.data), text.length, begin);
  // A borrowed reference: this thread may not count any.
  if (!end) throw LoneSurrogate(PyTuple_GET_ITEM(held_.ptr(), static_cast<Py_ssize_t>(i)));
  return {begin, end};
}

}  // namespace vocabshift::bindings
