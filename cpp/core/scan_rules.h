// What each words-pattern allows: the constants that the scanners (scan.h, scan_words.h) are
// compiled for. The regex text of each stands in src/vocabshift/text/regexes.py.
#pragma once

namespace vocabshift::scan {

// What a words-pattern allows.
struct Gpt2 {
  static constexpr bool kCasedLetters = false;   // letters as cased runs with marks (o200k)
  static constexpr bool kMarkedLetters = false;  // [\p{L}\p{M}]+ instead of \p{L}+
  static constexpr bool kMarksFollow = false;    // \p{L}[\p{L}\p{M}\u200c\u200d]* instead of \p{L}+
  static constexpr bool kJoiners = false;  // ZWJ and ZWNJ after a letter of the word stay in it
  static constexpr bool kSpacePrefixOnly = true;  // " ?" instead of "[^\r\n\p{L}\p{N}]?"
  static constexpr bool kLeadingContraction = true;
  static constexpr bool kTrailingContraction = false;
  static constexpr bool kFoldCase = false;  // (?i:…) in contractions
  static constexpr int kMaxDigits = 0;      // 0: "\p{N}+", after " ?" with kSpacePrefixOnly
  static constexpr int kTail = 0;           // after punctuation: 0 nothing, 1 [\r\n]*, 2 [\r\n/]*
  static constexpr bool kNewlineRuns = false;  // has "\s*[\r\n]+"
  static constexpr bool kTextEnd = false;      // before it "\s+$"
  static constexpr bool kMarksPunctuate =
      true;                            // "[^\s\p{L}\p{N}]+": a run of punctuation takes marks in
  static constexpr bool kHan = false;  // first "\p{Han}+"; no word of cased letters has any
};
struct Cl100k {
  static constexpr bool kCasedLetters = false;
  static constexpr bool kMarkedLetters = false;
  static constexpr bool kMarksFollow = false;
  static constexpr bool kJoiners = false;
  static constexpr bool kSpacePrefixOnly = false;
  static constexpr bool kLeadingContraction = true;
  static constexpr bool kTrailingContraction = false;
  static constexpr bool kFoldCase = true;
  static constexpr int kMaxDigits = 3;
  static constexpr int kTail = 1;
  static constexpr bool kNewlineRuns = true;
  static constexpr bool kTextEnd = false;
  static constexpr bool kMarksPunctuate = true;
  static constexpr bool kHan = false;
};
struct Cl100kTiktoken : Cl100k {
  static constexpr bool kTextEnd = true;
};
struct Cl100kPossessive : Cl100kTiktoken {
  static constexpr int kMaxDigits = 0;
};
struct Qwen2 : Cl100k {
  static constexpr int kMaxDigits = 1;
};
struct Qwen35 : Qwen2 {
  static constexpr bool kMarkedLetters = true;
  static constexpr bool kMarksPunctuate = false;
};
struct Qwen35Repaired : Qwen35 {
  static constexpr bool kJoiners = true;
};
struct Gpt2Repaired : Gpt2 {
  static constexpr bool kMarksFollow = true;
};
struct Cl100kRepaired : Cl100k {
  static constexpr bool kMarksFollow = true;
};
struct Qwen2Repaired : Qwen2 {
  static constexpr bool kMarksFollow = true;
};
struct Matra : Cl100k {
  static constexpr bool kMarkedLetters = true;
  static constexpr int kTail = 0;
};
struct O200k {
  static constexpr bool kCasedLetters = true;
  static constexpr bool kMarkedLetters = false;
  static constexpr bool kMarksFollow = false;
  static constexpr bool kJoiners = false;
  static constexpr bool kSpacePrefixOnly = false;
  static constexpr bool kLeadingContraction = false;
  static constexpr bool kTrailingContraction = true;
  static constexpr bool kFoldCase = true;
  static constexpr int kMaxDigits = 3;
  static constexpr int kTail = 2;
  static constexpr bool kNewlineRuns = true;
  static constexpr bool kTextEnd = false;
  static constexpr bool kMarksPunctuate = true;
  static constexpr bool kHan = false;
};
struct Tekken : O200k {
  static constexpr bool kTrailingContraction = false;
  static constexpr int kMaxDigits = 1;
};
struct Indic : O200k {
  static constexpr bool kJoiners = true;
};
struct TekkenRepaired : Tekken {
  static constexpr bool kJoiners = true;
};
struct Kimi : O200k {
  static constexpr int kTail = 1;
  static constexpr bool kHan = true;
};

}  // namespace vocabshift::scan
