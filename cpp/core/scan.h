// One pass over UTF-8 for the words-patterns: gpt2, cl100k, qwen2, qwen35, o200k, kimi, tekken,
// matra, and those with marks or joiners in their words.
// Header-only: the loops inline into counting and encoding. Owns the primitives that the other
// scanners (scan_boundaries.h, scan_syllables.h) are made of too.
//
// The rules below are the regex alternatives, tried in their order, with what backtracking would
// find computed directly. Subtle: \p{M} is a letter to o200k's two letter classes *and* may be the
// optional prefix; "\s+(?!\S)" gives one space back to the next word; "\s*[\r\n]+" ends at the
// last newline of a whitespace run.
#pragma once

#include <cstring>
#include <string_view>

#include "core/scan_rules.h"
#include "core/unicode.h"
#include "core/utf8.h"

namespace vocabshift::scan {

struct Classed {
  std::uint8_t bits;     // CharClass bits
  std::uint32_t length;  // of the character, in bytes
};

[[gnu::always_inline]] inline Classed class_at(const char* at) {
  const auto lead = static_cast<unsigned char>(*at);
  if (lead < 0x80) return {tables::kClassBlocks[lead], 1};  // ASCII is the first block
  const Decoded decoded = decode_utf8(at);
  return {class_bits(decoded.code_point), decoded.length};
}

inline std::uint32_t char_length(const char* at) {
  const auto lead = static_cast<unsigned char>(*at);
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

// Whether a character of the script Han stands at `at`.
inline bool is_han_at(const char* at) {
  constexpr unsigned char kFirstLead = 0xE2;  // of U+2E80, the first character of the script
  return static_cast<unsigned char>(*at) >= kFirstLead && is_han(decode_utf8(at).code_point);
}

inline const char* skip_han(const char* at, const char* end) {
  while (at < end && is_han_at(at)) at += char_length(at);
  return at;
}

inline constexpr std::uint32_t kJoinerLength = 3;

// Whether ZWNJ (U+200C) or ZWJ (U+200D) stands at `at`.
inline bool is_joiner(const char* at, const char* end) {
  return end - at >= 3 && at[0] == '\xE2' && at[1] == '\x80' &&
         (at[2] == '\x8C' || at[2] == '\x8D');
}

// First position at or after `at` whose class has none of `bits`.
inline const char* skip_class(const char* at, const char* end, std::uint8_t bits) {
  while (at < end) {
    const Classed next = class_at(at);
    if (!(next.bits & bits)) break;
    at += next.length;
  }
  return at;
}

// End of 's 't 're 've 'm 'll 'd at `at`, or `at`. With kFoldCase U+017F (long s) is an s, as in
// the engine's (?i:'s).
template <bool kFoldCase>
const char* match_contraction(const char* at, const char* end) {
  if (end - at < 2 || *at != '\'') return at;
  const auto fold = [](char c) { return kFoldCase && c >= 'A' && c <= 'Z' ? char(c + 32) : c; };
  const char first = fold(at[1]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (end - at < 3) return at;
  if (kFoldCase && std::memcmp(at + 1, "\xC5\xBF", 2) == 0) return at + 3;
  const char second = fold(at[2]);
  if ((second == 'e' && (first == 'r' || first == 'v')) || (first == 'l' && second == 'l')) {
    return at + 3;
  }
  return at;
}

// [Lu Lt Lm Lo M]* [Ll Lm Lo M]+ | [Lu Lt Lm Lo M]+ [Ll Lm Lo M]*, or `at` where neither matches.
// Subtle: o200k tries its first alternative without the optional prefix before the second one with
// it. That matters where the prefix is a mark, which is a letter too: see kFirstOnly.
// With kJoiners a joiner is one more mark, but only after a letter of this word: the ZWJ of an
// emoji sequence may follow a mark too (a variation selector). With kHan neither class has a
// character of that script.
template <bool kFirstOnly, bool kJoiners, bool kHan>
const char* match_cased(const char* at, const char* end) {
  constexpr std::uint8_t kEither = kOtherLetter | kMark;
  const char* last_either = nullptr;  // end of the last character that both classes hold
  bool has_letter = false;
  const char* p = at;
  while (p < end) {
    const Classed next = class_at(p);
    if (kHan && is_han_at(p)) break;
    if (next.bits & (kUpper | kEither)) {
      p += next.length;
      if (next.bits & kEither) last_either = p;
      if (kJoiners && (next.bits & kLetter)) has_letter = true;
    } else if (kJoiners && has_letter && is_joiner(p, end)) {
      last_either = p += kJoinerLength;
    } else {
      break;
    }
  }
  const char* lower = p;  // the next character is in neither class of the loop above
  while (lower < end) {
    const Classed next = class_at(lower);
    if (kHan && is_han_at(lower)) break;
    if (next.bits & (kLower | kEither)) {
      lower += next.length;
    } else if (kJoiners && lower != p && is_joiner(lower, end)) {
      lower += kJoinerLength;
    } else {
      break;
    }
  }
  if (lower != p) return lower;
  // Nothing lower follows: the first alternative gives capitals back down to the last character
  // that may stand in its second class; without one the second alternative takes them all.
  return last_either ? last_either : kFirstOnly ? at : p;
}

// Whitespace run at `at` (not empty): newline runs, trailing whitespace, or what precedes a word.
template <bool kNewlineRuns, bool kTextEnd = false>
const char* match_space(const char* at, const char* end) {
  const char* after_newline = nullptr;
  const char* last = at;  // start of the run's last character
  const char* p = at;
  while (p < end) {
    const Classed next = class_at(p);
    if (!(next.bits & kSpace)) break;
    last = p;
    p += next.length;
    if (next.bits & kNewline) after_newline = p;
  }
  if (kTextEnd && p == end) return p;
  if (kNewlineRuns && after_newline) return after_newline;
  if (p == end || last == at) return p;
  return last;
}

template <class Rules>
const char* match_punctuation(const char* at, const char* end) {
  const char* p = at;
  while (p < end) {
    const Classed next = class_at(p);
    if (next.bits & (kSpace | kLetter | kNumber | (Rules::kMarksPunctuate ? 0 : kMark))) break;
    p += next.length;
  }
  if (p == at || Rules::kTail == 0) return p;
  while (p < end && (*p == '\r' || *p == '\n' || (Rules::kTail == 2 && *p == '/'))) ++p;
  return p;
}

// \p{L}[\p{L}\p{M}\u200c\u200d]*, or `at`.
inline const char* match_marked_word(const char* at, const char* end) {
  if (at == end || !(class_at(at).bits & kLetter)) return at;
  for (;;) {
    at = skip_class(at, end, kLetter | kMark);
    if (!is_joiner(at, end)) return at;
    at += kJoinerLength;
  }
}

template <class Rules, bool kFirstOnly = false>
const char* match_letters(const char* at, const char* end) {
  if constexpr (Rules::kMarksFollow) {
    return match_marked_word(at, end);
  } else if constexpr (Rules::kMarkedLetters && Rules::kJoiners) {
    const char* const letter = skip_class(at, end, kMark);
    return match_marked_word(letter, end);  // or the marks alone
  } else if constexpr (!Rules::kCasedLetters) {
    return skip_class(at, end, Rules::kMarkedLetters ? kLetter | kMark : kLetter);
  } else {
    const char* stop = match_cased<kFirstOnly, Rules::kJoiners, Rules::kHan>(at, end);
    if constexpr (Rules::kTrailingContraction) {
      if (stop != at) stop = match_contraction<Rules::kFoldCase>(stop, end);
    }
    return stop;
  }
}

template <class Rules>
const char* match_digits(const char* at, const char* end) {
  if (Rules::kMaxDigits == 0) return skip_class(at, end, kNumber);
  const char* p = at;
  for (int i = 0; i < Rules::kMaxDigits && p < end; ++i) {
    const Classed next = class_at(p);
    if (!(next.bits & kNumber)) break;
    p += next.length;
  }
  return p;
}

// End of the pre-token at `at` that begins with no letter, `first` being its first character:
// digits, punctuation or whitespace.
template <class Rules>
[[gnu::always_inline]] inline const char* match_rest(const char* at, const char* end,
                                                     Classed first) {
  const char* const second = at + first.length;
  if (Rules::kSpacePrefixOnly && *at == ' ' && second < end) {
    const char* stop = match_digits<Rules>(second, end);
    if (stop != second) return stop;
  }
  if (first.bits & kNumber) return match_digits<Rules>(at, end);
  if (*at == ' ' && second < end) {
    const char* stop = match_punctuation<Rules>(second, end);
    if (stop != second) return stop;
  }
  if (first.bits & kSpace) return match_space<Rules::kNewlineRuns, Rules::kTextEnd>(at, end);
  return match_punctuation<Rules>(at, end);
}

// End of the pre-token of a words-pattern that starts at `at` (at < end). Every character is
// covered by some alternative, so the result is always after `at`.
template <class Rules>
const char* next_word(const char* at, const char* end) {
  if constexpr (Rules::kLeadingContraction) {
    const char* stop = match_contraction<Rules::kFoldCase>(at, end);
    if (stop != at) return stop;
  }
  if constexpr (Rules::kHan) {
    const char* const stop = skip_han(at, end);
    if (stop != at) return stop;
  }
  const Classed first = class_at(at);
  const char* const second = at + first.length;
  const bool may_prefix =
      Rules::kSpacePrefixOnly ? *at == ' ' : !(first.bits & (kNewline | kLetter | kNumber));
  if (may_prefix && second < end) {
    const char* stop = (first.bits & kMark) ? match_letters<Rules, true>(second, end)
                                            : match_letters<Rules>(second, end);
    if (stop != second) return stop;
  }
  if (const char* stop = match_letters<Rules>(at, end); stop != at) return stop;
  return match_rest<Rules>(at, end, first);
}

// Whether a pre-token of the text from `begin` is a single space and a letter, after a letter or
// its mark: (?<=[\p{L}\p{M}&&[^\ufe0f]])(?= \p{L}).
inline bool follows_word(const char* begin, std::string_view pre_token) {
  const char* const at = pre_token.data();
  if (at == begin || pre_token.size() < 2 || *at != ' ') return false;
  if (!(class_at(at + 1).bits & kLetter)) return false;
  const char* previous = at - 1;
  while (is_continuation_byte(*previous)) --previous;
  return (class_at(previous).bits & (kLetter | kMark)) &&
         std::string_view(previous, at) != "\xEF\xB8\x8F";
}

}  // namespace vocabshift::scan
