// Scanners for the named patterns: text -> pre-tokens, equal to the regex text that is exported.
//
// Owns how each named pattern cuts and how steps follow one another. The regex text itself is
// src/vocabshift/text/; the property tests hold the two equal. Which characters end a sentence or
// make a syllable is policy, handed in.
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/scan.h"
#include "core/scan_syllables.h"
#include "core/scan_walls.h"
#include "core/scan_words.h"
#include "core/types.h"

namespace vocabshift {

enum class Pattern {
  kGpt2,
  kCl100k,        // Llama-3 too
  kQwen2,         // cl100k with single digits
  kO200k,         // Llama-4 too
  kTekken,        // o200k without contractions, with single digits
  kMatra,         // cl100k with marks as letters, newlines never with punctuation
  kIndic,         // o200k with joiners inside words
  kGpt2Repaired,  // gpt2, cl100k, qwen2 with marks and joiners behind letters
  kCl100kRepaired,
  kQwen2Repaired,
  kTekkenRepaired,  // tekken with joiners inside words
  kWalls,           // digits, punctuation runs, newlines and whitespace runs stand alone
  kIndicWalls,      // likewise; a joiner behind a letter is no punctuation
  kDigitTriples,    // digits in threes from the right stand alone
  kHan,             // Han characters stand alone
};

// Where a sentence ends inside a piece; an empty policy never cuts.
class SentencePolicy {
 public:
  SentencePolicy() = default;
  // `terminals`: a run of these characters ends a sentence, whatever follows; none may be a
  // letter, mark, number or space (std::invalid_argument). `period`: "." ends one where
  // whitespace or the end of the piece follows.
  SentencePolicy(const std::vector<char32_t>& terminals, bool period);

  bool is_terminal(char32_t c) const { return terminals_ && (*terminals_)[c]; }
  bool period() const { return period_; }
  bool ends_at_joiners() const { return is_terminal(U'\u200C') || is_terminal(U'\u200D'); }
  // Whether a match can begin with this byte.
  bool may_begin(char byte) const { return first_bytes_[static_cast<unsigned char>(byte)]; }

 private:
  std::shared_ptr<const std::bitset<0x110000>> terminals_;
  std::array<bool, 256> first_bytes_{};
  bool period_ = false;
};

// A word pattern without its space wall: a piece goes on over a single space where a letter (or a
// mark on one; not U+FE0F, which emoji carry) stands before it and a letter behind it. So every
// piece is one or more whole pieces of the pattern, and all its other walls stay:
// (?:R)(?:(?<=[\p{L}\p{M}&&[^\ufe0f]])(?= \p{L})(?:R))*
struct JoinedWords {
  Pattern words;
};

// A compiled pre-tokenizer: steps, each of which cuts every piece that the one before it left.
// Pieces are the matches of a pattern and the gaps between them; a sentence's terminal goes with
// the piece before it. Without steps the text is one piece.
class PreTokenizer {
 public:
  using Step = std::variant<Pattern, SentencePolicy, SyllableRules, JoinedWords>;

  explicit PreTokenizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  // Calls `piece(std::string_view)` for every piece of valid UTF-8 `text`, left to right; their
  // concatenation is the text, and none is empty.
  template <class F>
  void split(std::string_view text, F&& piece) const {
    if (text.empty()) return;
    if (steps_.empty()) return piece(text);
    split_from(0, text, piece);
  }

 private:
  // Steps `index` and later. One function per F whatever the steps are: which scanner runs is
  // asked once per piece of the step before, and only the last one calls `piece` itself.
  template <class F>
  void split_from(std::size_t index, std::string_view text, F& piece) const {
    if (index + 1 == steps_.size()) return split_step(steps_[index], text, piece);
    if (index + 2 == steps_.size()) {
      const auto* const pattern = std::get_if<Pattern>(&steps_[index]);
      const auto* const policy = std::get_if<SentencePolicy>(&steps_[index + 1]);
      if (pattern && policy && *pattern == Pattern::kWalls) {
        return split_walls_and_sentences<false>(*policy, text, piece);
      }
      if (pattern && policy && *pattern == Pattern::kIndicWalls && !policy->ends_at_joiners()) {
        return split_walls_and_sentences<true>(*policy, text, piece);
      }
    }
    split_step(steps_[index], text,
               [&](std::string_view part) { split_from(index + 1, part, piece); });
  }

  template <class F>
  static void split_step(const Step& step, std::string_view text, F&& piece) {
    if (const auto* pattern = std::get_if<Pattern>(&step)) {
      split_pattern(*pattern, text, piece);
    } else if (const auto* policy = std::get_if<SentencePolicy>(&step)) {
      split_sentences(*policy, text, piece);
    } else if (const auto* joined = std::get_if<JoinedWords>(&step)) {
      split_joined(joined->words, text, piece);
    } else {
      scan::syllables(text, *std::get_if<SyllableRules>(&step), piece);
    }
  }

  template <class F>
  static void split_pattern(Pattern pattern, std::string_view text, F&& piece) {
    switch (pattern) {
      case Pattern::kGpt2:
        return scan::words<scan::Gpt2>(text, piece);
      case Pattern::kCl100k:
        return scan::words<scan::Cl100k>(text, piece);
      case Pattern::kQwen2:
        return scan::words<scan::Qwen2>(text, piece);
      case Pattern::kO200k:
        return scan::words<scan::O200k>(text, piece);
      case Pattern::kTekken:
        return scan::words<scan::Tekken>(text, piece);
      case Pattern::kMatra:
        return scan::words<scan::Matra>(text, piece);
      case Pattern::kIndic:
        return scan::words<scan::Indic>(text, piece);
      case Pattern::kGpt2Repaired:
        return scan::words<scan::Gpt2Repaired>(text, piece);
      case Pattern::kCl100kRepaired:
        return scan::words<scan::Cl100kRepaired>(text, piece);
      case Pattern::kQwen2Repaired:
        return scan::words<scan::Qwen2Repaired>(text, piece);
      case Pattern::kTekkenRepaired:
        return scan::words<scan::TekkenRepaired>(text, piece);
      case Pattern::kWalls:
        return scan::walls<false>(text, piece);
      case Pattern::kIndicWalls:
        return scan::walls<true>(text, piece);
      case Pattern::kDigitTriples:
        return scan::digit_triples(text, piece);
      case Pattern::kHan:
        return scan::han_characters(text, piece);
    }
  }

  template <class F>
  static void split_joined(Pattern words, std::string_view text, F&& piece) {
    std::string_view waiting;
    split_pattern(words, text, [&](std::string_view word) {
      if (!waiting.empty() && scan::follows_word(text.data(), word)) {
        waiting = {waiting.data(), waiting.size() + word.size()};
        return;
      }
      if (!waiting.empty()) piece(waiting);
      waiting = word;
    });
    if (!waiting.empty()) piece(waiting);
  }

  // Split(terminals, MergedWithPrevious): a match joins the gap before it; a match right after
  // another match, or at the start, is a piece of its own.
  template <class F>
  static void split_sentences(const SentencePolicy& policy, std::string_view text, F&& piece) {
    const char* const end = text.data() + text.size();
    const char* begin = text.data();  // of the piece under way; == at right behind a match
    for (const char* at = begin; at < end;) {
      if (!policy.may_begin(*at)) {  // most of the text, byte by byte
        ++at;
        continue;
      }
      const char* const stop = match_terminal(policy, at, end);
      if (stop == at) {
        at += scan::char_length(at);
        continue;
      }
      piece(std::string_view(begin, stop));
      begin = at = stop;
    }
    if (begin < end) piece(std::string_view(begin, end));
  }

  // Both steps at once, the last two of most superword stages. Between walls no two characters of
  // punctuation stand side by side (but for joiners): a terminal there is one character, and what
  // follows it in the text tells of a period what the end of the gap would.
  template <bool kJoiners, class F>
  static void split_walls_and_sentences(const SentencePolicy& policy, std::string_view text,
                                        F&& piece) {
    const auto gap_cut = [&](const char* at, const char* end) -> const char* {
      if (!policy.may_begin(*at)) return nullptr;
      const char* const stop = match_terminal(policy, at, end);
      return stop == at ? nullptr : stop;
    };
    const auto wall = [&](std::string_view part) { split_sentences(policy, part, piece); };
    scan::walls<kJoiners>(text, gap_cut, wall, piece);
  }

  // End of the terminal match that starts at `at`, or `at`.
  static const char* match_terminal(const SentencePolicy& policy, const char* at, const char* end) {
    const char* stop = at;
    while (stop < end && policy.may_begin(*stop)) {
      const Decoded next = decode_utf8(stop);
      if (!policy.is_terminal(next.code_point)) break;
      stop += next.length;
    }
    if (stop == at && policy.period() && *at == '.') {
      if (at + 1 == end || (scan::class_at(at + 1).bits & kSpace)) return at + 1;
    }
    return stop;
  }

  std::vector<Step> steps_;
};

}  // namespace vocabshift
