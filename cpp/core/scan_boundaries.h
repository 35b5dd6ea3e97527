// Scanners that cut a few characters out and leave the gaps between them whole: the boundaries
// of the superword stage, digit triples from the right, Han characters one by one.
//
// Each equals one regex of src/vocabshift/text/regexes.py, Isolated. Linear in the text, also
// where the regex engine is not.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>

#include "core/char_block.h"
#include "core/platform.h"
#include "core/scan.h"

namespace vocabshift::scan {

// Whether a joiner at `at` belongs to the word before it:
// (?<=[\p{L}\p{M}\u200c\u200d&&[^\ufe0f]]) within the text from `begin`.
inline bool joins_word(const char* begin, const char* at) {
  if (at == begin) return false;
  const char* previous = at - 1;
  while (is_continuation_byte(*previous)) --previous;
  if (is_joiner(previous, at)) return true;
  return (class_at(previous).bits & (kLetter | kMark)) &&
         std::string_view(previous, at) != "\xEF\xB8\x8F";
}

// End of a boundary at `at`, or `at`:
// \p{N}{1,3}| ?[^\s\p{L}\p{N}\p{M}]{2,}[\r\n/]*|\s*[\r\n]+|\s+(?!\S)
// With kJoiners no run of punctuation begins with a joiner that belongs to the word before it.
template <bool kJoiners>
const char* match_boundary(const char* begin, const char* at, const char* end, Classed first) {
  if (first.bits & kNumber) return match_digits<O200k>(at, end);
  if (kJoiners && is_joiner(at, end) && joins_word(begin, at)) return at;
  const char* p = *at == ' ' ? at + 1 : at;
  const char* const run = p;
  int length = 0;
  while (p < end) {
    const Classed next = class_at(p);
    if (next.bits & ~kSymbol) break;
    p += next.length;
    ++length;
  }
  if (length >= 2) {
    while (p < end && (*p == '\r' || *p == '\n' || *p == '/')) ++p;
    return p;
  }
  if (!(first.bits & kSpace)) return at;
  if (length == 1 && run != at) return at;  // one space, then one mark of punctuation
  const char* const stop = match_space<true>(at, end);
  // match_space takes a single space before a word; "\s+(?!\S)" does not.
  if (stop != end && stop == at + first.length && !(first.bits & kNewline)) {
    const bool run_goes_on = class_at(stop).bits & kSpace;
    return run_goes_on ? stop : at;
  }
  return stop;
}

#if VOCABSHIFT_SSE2
// The bytes of a block at which a boundary, or punctuation within a gap, may begin: not at letters
// and marks, nor at the one space before a word, which are most of the text.
inline std::uint64_t may_begin_boundary(const CharBlock& block) {
  const std::uint64_t word = block.upper | block.lower | block.other | block.mark;
  const std::uint64_t last = std::uint64_t{1} << (block.size - 1);  // what follows is not known
  const std::uint64_t lone_space = block.space & ~last & (word | block.number) >> 1;
  return ~(word | lone_space) & block.leads & bits_below(block.size);
}
#endif

// Calls `boundary` for every boundary, and `pre_token` for every gap. `gap_cut` may cut gaps
// further: it is asked at every character of a gap that is no letter, mark or lone space between
// words, and returns the end of that character if the gap ends there, else null.
template <bool kJoiners, class C, class W, class F>
void boundaries(std::string_view text, C&& gap_cut, W&& boundary, F&& pre_token) {
  const char* const end = text.data() + text.size();
  const char* begin = text.data();  // of the gap under way
  const auto visit = [&](const char* at) {
    const Classed first = class_at(at);
    if (first.bits & (kLetter | kMark)) return at + first.length;
    if (*at == ' ' && at + 1 < end && (class_at(at + 1).bits & (kLetter | kMark | kNumber))) {
      return at + 1;
    }
    const char* const stop = match_boundary<kJoiners>(text.data(), at, end, first);
    if (stop != at) {
      if (begin < at) pre_token(std::string_view(begin, at));
      boundary(std::string_view(at, stop));
      return begin = stop;
    }
    if (const char* const cut = gap_cut(at, end)) {
      pre_token(std::string_view(begin, cut));
      return begin = cut;
    }
    return at + first.length;
  };
  const char* at = begin;
#if VOCABSHIFT_SSE2
  while (end - at >= static_cast<std::ptrdiff_t>(CharBlock::kBytes)) {
    const CharBlock block(at);
    const char* const block_begin = at;
    const char* const block_end = at + block.size;
    for (std::uint64_t left = may_begin_boundary(block); left != 0;) {
      at = visit(block_begin + std::countr_zero(left));
      if (at >= block_end) break;
      left &= ~std::uint64_t{0} << (at - block_begin);
    }
    at = std::max(at, block_end);
  }
#endif
  while (at < end) at = visit(at);
  if (begin < end) pre_token(std::string_view(begin, end));
}

template <bool kJoiners, class F>
void boundaries(std::string_view text, F&& pre_token) {
  boundaries<kJoiners>(
      text, [](const char*, const char*) -> const char* { return nullptr; }, pre_token, pre_token);
}

// \p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$)): each run of digits in threes from its end.
template <class F>
void digit_triples(std::string_view text, F&& pre_token) {
  const char* const end = text.data() + text.size();
  const char* begin = text.data();  // of the gap under way
  for (const char* at = begin; at < end;) {
    const Classed first = class_at(at);
    if (!(first.bits & kNumber)) {
      at += first.length;
      continue;
    }
    if (begin < at) pre_token(std::string_view(begin, at));
    const char* const run = at;
    std::size_t left = 0;  // digits that no group has yet
    for (Classed next = first; next.bits & kNumber; next = class_at(at)) {
      at += next.length;
      ++left;
      if (at == end) break;
    }
    for (begin = run; left != 0;) {
      const std::size_t size = left % 3 == 0 ? 3 : left % 3;
      const char* stop = begin;
      for (std::size_t i = 0; i < size; ++i) stop += char_length(stop);
      pre_token(std::string_view(begin, stop));
      begin = stop;
      left -= size;
    }
  }
  if (begin < end) pre_token(std::string_view(begin, end));
}

// \p{Han}\p{M}*: each Han character with its marks (variation selectors) by itself.
template <class F>
void han_characters(std::string_view text, F&& pre_token) {
  constexpr unsigned char kFirstLead = 0xE2;  // of U+2E80, the first character of the script
  const char* const end = text.data() + text.size();
  const char* begin = text.data();  // of the gap under way
  for (const char* at = begin; at < end;) {
    if (static_cast<unsigned char>(*at) < kFirstLead) {  // most of the text, byte by byte
      ++at;
      continue;
    }
    const Decoded first = decode_utf8(at);
    if (!is_han(first.code_point)) {
      at += first.length;
      continue;
    }
    if (begin < at) pre_token(std::string_view(begin, at));
    begin = at;
    at = skip_class(at + first.length, end, kMark);
    pre_token(std::string_view(begin, at));
    begin = at;
  }
  if (begin < end) pre_token(std::string_view(begin, end));
}

}  // namespace vocabshift::scan
