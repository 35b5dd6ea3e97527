#include "bindings/texts.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/platform.h"

namespace vocabshift::bindings {

namespace {

constexpr std::size_t kOverwritten = 8;  // bytes that may be written after the text

#if VOCABSHIFT_SSE2

// UTF-8 of eight characters at a time, as long as there are so many; `*from` and `*to` move on.
// Each gets its bytes in a lane of four, of which one to three count: without a branch, for in
// Indian text spaces and letters take turns. True if there was a surrogate.
bool eights_to_utf8(const std::uint16_t** from, const std::uint16_t* end, char** to) {
  const auto all = [](int value) { return _mm_set1_epi16(static_cast<short>(value)); };
  const auto is_zero = [](__m128i lanes) { return _mm_cmpeq_epi16(lanes, _mm_setzero_si128()); };
  __m128i surrogates = _mm_setzero_si128();
  alignas(16) std::uint32_t bytes[8];
  alignas(16) std::uint16_t counts[8];
  for (; end - *from >= 8; *from += 8) {
    const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(*from));
    const __m128i is_ascii = is_zero(_mm_and_si128(c, all(0xFF80)));
    if (_mm_movemask_epi8(is_ascii) == 0xFFFF) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(*to), _mm_packus_epi16(c, c));
      *to += 8;
      continue;
    }
    const __m128i is_near = is_zero(_mm_and_si128(c, all(0xF800)));  // below U+0800
    surrogates =
        _mm_or_si128(surrogates, _mm_cmpeq_epi16(_mm_and_si128(c, all(0xF800)), all(0xD800)));
    const __m128i last = _mm_or_si128(_mm_and_si128(c, all(0x3F)), all(0x80));
    const __m128i middle = _mm_or_si128(_mm_and_si128(_mm_srli_epi16(c, 6), all(0x3F)), all(0x80));
    const __m128i two =
        _mm_or_si128(_mm_or_si128(_mm_srli_epi16(c, 6), all(0xC0)), _mm_slli_epi16(last, 8));
    const __m128i three =
        _mm_or_si128(_mm_or_si128(_mm_srli_epi16(c, 12), all(0xE0)), _mm_slli_epi16(middle, 8));
    const __m128i up_to_two =
        _mm_or_si128(_mm_and_si128(is_ascii, c), _mm_andnot_si128(is_ascii, two));
    const __m128i first =
        _mm_or_si128(_mm_and_si128(is_near, up_to_two), _mm_andnot_si128(is_near, three));
    const __m128i third = _mm_andnot_si128(is_near, last);
    const __m128i count = _mm_add_epi16(_mm_add_epi16(all(3), is_ascii), is_near);
    _mm_store_si128(reinterpret_cast<__m128i*>(bytes), _mm_unpacklo_epi16(first, third));
    _mm_store_si128(reinterpret_cast<__m128i*>(bytes + 4), _mm_unpackhi_epi16(first, third));
    _mm_store_si128(reinterpret_cast<__m128i*>(counts), count);
    for (int i = 0; i < 8; ++i) {
      std::memcpy(*to, &bytes[i], 4);
      *to += counts[i];
    }
  }
  return _mm_movemask_epi8(surrogates) != 0;
}

#endif

// UTF-8 of `length` characters at `to`, where there is room for 4 bytes each and kOverwritten;
// returns the end, or null for a lone surrogate.
template <class Char>
char* to_utf8(const Char* from, std::size_t length, char* to) {
  const Char* const end = from + length;
  bool has_surrogate = false;
#if VOCABSHIFT_SSE2
  if constexpr (sizeof(Char) == 2) has_surrogate = eights_to_utf8(&from, end, &to);
#endif
  for (; from < end; ++from) {
    const std::uint32_t c = *from;
    has_surrogate |= (c & 0xFFFFF800) == 0xD800;
    if (c < 0x80) {
      *to++ = static_cast<char>(c);
      continue;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;  // bytes after the first
    constexpr unsigned kFirst[] = {0, 0xC0, 0xE0, 0xF0};
    *to++ = static_cast<char>(kFirst[more] | c >> 6 * more);
    for (int i = more - 1; i >= 0; --i) *to++ = static_cast<char>(0x80 | (c >> 6 * i & 0x3F));
  }
  return has_surrogate ? nullptr : to;
}

}  // namespace

StrView StrView::of(py::handle text) {
  PyObject* const object = text.ptr();
  if (!PyUnicode_Check(object)) {
    throw py::type_error(std::string("need a str, not ") + Py_TYPE(object)->tp_name);
  }
#if VOCABSHIFT_USES_CPYTHON_INTERNALS
  const auto length = static_cast<std::size_t>(PyUnicode_GET_LENGTH(object));
  if (PyUnicode_IS_ASCII(object)) return {PyUnicode_DATA(object), length, 0};
  if (PyUnicode_IS_COMPACT(object)) {  // may have been asked for its UTF-8 before, and keep it
    const auto* const known = reinterpret_cast<const PyCompactUnicodeObject*>(object);
    if (known->utf8) return {known->utf8, static_cast<std::size_t>(known->utf8_length), 0};
  }
  return {PyUnicode_DATA(object), length, static_cast<int>(PyUnicode_KIND(object))};
#else
  const std::string_view utf8 = utf8_of(text);
  return {utf8.data(), utf8.size(), 0};
#endif
}

std::string_view utf8_in(const StrView& text, std::string& room) {
  if (text.bytes == 0) return {static_cast<const char*>(text.data), text.length};
  const std::size_t most = text.length * (text.bytes == 4 ? 4 : text.bytes + 1) + kOverwritten;
  if (room.size() < most) room.resize(most);
  char* const begin = room.data();
  const char* const end =
      text.bytes == 1   ? to_utf8(static_cast<const std::uint8_t*>(text.data), text.length, begin)
      : text.bytes == 2 ? to_utf8(static_cast<const std::uint16_t*>(text.data), text.length, begin)
                        : to_utf8(static_cast<const std::uint32_t*>(text.data), text.length, begin);
  return end ? std::string_view(begin, end) : std::string_view();
}

std::string_view utf8_in(py::handle text, std::string& room) {
  const std::string_view utf8 = utf8_in(StrView::of(text), room);
  return utf8.data() ? utf8 : utf8_of(text);  // raises
}

StrDocuments::StrDocuments(const py::list& texts) : held_(texts) {
  texts_.reserve(held_.size());
  for (const py::handle text : held_) texts_.push_back(StrView::of(text));
}

std::size_t StrDocuments::size(std::size_t i) const {
  const StrView& text = texts_[i];
  return text.bytes == 2 ? text.length * 5 / 2 : text.length;
}

std::string_view StrDocuments::get(std::size_t i, std::string& room) const {
  const std::string_view utf8 = utf8_in(texts_[i], room);
  // A borrowed reference: this thread may not count any.
  if (!utf8.data())
    throw LoneSurrogate(py::handle(PyTuple_GetItem(held_.ptr(), static_cast<Py_ssize_t>(i))));
  return utf8;
}

}  // namespace vocabshift::bindings
