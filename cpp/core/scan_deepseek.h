// The third step of DeepSeek-V3's pattern, which differs from the other words-patterns in that it
// leaves characters out and in that ASCII letters go with a mark of punctuation before them:
//
// [!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+
//
// "Other" characters here are those that only the optional prefix takes: digits (the first step has
// cut them out), controls, format characters and unassigned ones. Runs of them are gaps.
#pragma once

#include "core/char_block.h"
#include "core/platform.h"
#include "core/scan.h"

namespace vocabshift::scan {

struct Deepseek {};  // in place of Rules (scan_rules.h)

inline bool is_ascii_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

// End of the pre-token, or of the gap, at `at` (at < end).
template <>
inline const char* next_word<Deepseek>(const char* at, const char* end) {
  constexpr std::uint8_t kWord = kLetter | kMark;
  const Classed first = class_at(at);
  const char* const second = at + first.length;
  if ((first.bits & kSymbol) && first.length == 1 && second < end && is_ascii_letter(*second)) {
    at = second;
    while (at < end && is_ascii_letter(*at)) ++at;
    return at;
  }
  if (first.bits & kWord) return skip_class(second, end, kWord);
  if (!(first.bits & (kNewline | kSymbol)) && second < end) {
    const char* const stop = skip_class(second, end, kWord);
    if (stop != second) return stop;
  }
  const char* const run = *at == ' ' ? second : at;
  const char* p = skip_class(run, end, kSymbol);
  if (p != run) {
    while (p < end && (*p == '\r' || *p == '\n')) ++p;
    return p;
  }
  if (first.bits & kSpace) return match_space<true>(at, end);
  const char* last = at;  // the last of a run of others is the prefix of a word after it
  for (p = second; p < end;) {
    const Classed next = class_at(p);
    if (next.bits & (kSpace | kSymbol)) return p;
    if (next.bits & kWord) return last;
    last = p;
    p += next.length;
  }
  return p;
}

#if VOCABSHIFT_SSE2

// See scan_words.h.
inline std::uint64_t deepseek_starts(const CharBlock& block, unsigned* first_hard) {
  const std::uint64_t word = block.upper | block.lower | block.other | block.mark;
  const std::uint64_t white = block.white, newline = block.newline, symbol = block.symbol;
  const std::uint64_t blank = white & ~newline;
  const std::uint64_t hard =
      ~(word | symbol | white) | (white & block.above) | (blank & newline >> 1);
  const std::uint64_t symbol_runs = symbol & ~(symbol << 1) & ~(block.space << 1);
  // ASCII letters go with a single symbol before them, what follows them in the word does not.
  const std::uint64_t ascii = word & ~block.above;
  const std::uint64_t joined = (symbol_runs & ~block.above) << 1 & ascii;
  const std::uint64_t after_joined = (ascii + joined) & ~ascii & word;
  const std::uint64_t tail = newline & ~(newline + (newline & symbol << 1));
  std::uint64_t starts = symbol_runs | after_joined;
  starts |= newline & ~tail & ~(newline << 1);
  starts |= (blank & ~(blank << 1)) | (blank & ~(blank >> 1));
  starts |= word & ~(word << 1) & ~(blank << 1) & ~joined;
  *first_hard = static_cast<unsigned>(std::countr_zero(hard));
  return starts;
}

#endif

}  // namespace vocabshift::scan
