// Orthographic syllables of the scripts of India, one pre-token each: a letter, its marks and
// joiners, and the letters that a virama joins to it. What is no such syllable is cut as words are.
//
// Which scripts are written in syllables, which signs join letters and which sequences join
// without one of these is policy, handed in (src/vocabshift/text/writing.py has the regex that
// this equals).
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <string>
#include <vector>

#include "core/scan.h"

namespace vocabshift {

class SyllableRules {
 public:
  // `scripts`: by their names in unicode.h. `linkers`: marks that join the letter after them to
  // the one before. `conjuncts`: sequences that count as one letter; each begins with a letter of
  // `scripts`, an earlier one wins. std::invalid_argument where that does not hold.
  SyllableRules(const std::vector<std::string>& scripts, const std::vector<char32_t>& linkers,
                std::vector<std::string> conjuncts);

  bool is_syllabic_letter(char32_t c) const {
    return (char_class(c) & kLetter) && (*tables_).scripts[script_of(c)];
  }
  bool is_linker(char32_t c) const { return tables_->linkers[c]; }

  // End of the letter or conjunct at `at`, or `at`.
  const char* match_letter(const char* at, const char* end) const {
    if (at == end || static_cast<unsigned char>(*at) < 0x80) return at;
    const Decoded first = decode_utf8(at);
    if (!is_syllabic_letter(first.code_point)) return at;
    if (tables_->conjunct_scripts[script_of(first.code_point)]) {
      const std::string_view rest(at, end);
      for (const std::string& conjunct : tables_->conjuncts) {
        if (rest.starts_with(conjunct)) return at + conjunct.size();
      }
    }
    return at + first.length;
  }

 private:
  struct Tables {
    std::bitset<256> scripts;           // by script number
    std::bitset<256> conjunct_scripts;  // those that a conjunct begins with
    std::bitset<0x110000> linkers;
    std::vector<std::string> conjuncts;
  };
  std::shared_ptr<const Tables> tables_;
};

namespace scan {

// End of the syllable whose first letter ends at `at`:
// (?:[\p{M}\u200c\u200d]*LINKER\u200d?LETTER)*[\p{M}\u200c\u200d]*
inline const char* match_syllable(const char* at, const char* end, const SyllableRules& rules) {
  enum { kNone, kLinker, kLinkerZwj } before = kNone;  // what ends at `at`
  while (at < end) {
    if (is_joiner(at, end)) {
      before = before == kLinker && at[2] == '\x8D' ? kLinkerZwj : kNone;
      at += kJoinerLength;
      continue;
    }
    if (const Classed next = class_at(at); next.bits & kMark) {
      before = rules.is_linker(decode_utf8(at).code_point) ? kLinker : kNone;
      at += next.length;
      continue;
    }
    const char* const stop = before == kNone ? at : rules.match_letter(at, end);
    if (stop == at) break;
    at = stop;
    before = kNone;
  }
  return at;
}

// OTHER[OTHER\p{M}\u200c\u200d]* with a contraction, OTHER being letters of no syllabic script;
// or `at`.
inline const char* match_other_letters(const char* at, const char* end,
                                       const SyllableRules& rules) {
  const char* p = at;
  while (p < end) {
    const Classed next = class_at(p);
    if (next.bits & kLetter) {
      if (next.length > 1 && rules.is_syllabic_letter(decode_utf8(p).code_point)) break;
    } else if (p == at || !((next.bits & kMark) || is_joiner(p, end))) {
      break;
    }
    p += next.length;
  }
  return p == at ? at : match_contraction<true>(p, end);
}

template <class F>
void syllables(std::string_view text, const SyllableRules& rules, F&& pre_token) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const char* const letter = *at == ' ' ? at + 1 : at;
    const char* stop = rules.match_letter(letter, end);
    if (stop != letter) {
      stop = match_syllable(stop, end, rules);
    } else {
      const Classed first = class_at(at);
      const char* const second = at + first.length;
      stop = at;
      if (first.bits & kLetter) {
        stop = match_other_letters(at, end, rules);
      } else if (!(first.bits & (kNewline | kNumber)) && second < end) {
        stop = match_other_letters(second, end, rules);
        if (stop == second) stop = at;
      }
      if (stop == at) stop = match_rest<O200k>(at, end, first);
    }
    pre_token(std::string_view(at, stop));
    at = stop;
  }
}

}  // namespace scan

}  // namespace vocabshift
