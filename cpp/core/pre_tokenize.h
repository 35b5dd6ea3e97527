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

#include "core/automaton.h"
#include "core/scan.h"
#include "core/scan_boundaries.h"
#include "core/scan_bytes.h"
#include "core/scan_characters.h"
#include "core/scan_syllables.h"
#include "core/scan_words.h"
#include "core/types.h"

namespace vocabshift {

enum class Pattern {
  kGpt2,
  kCl100k,            // Llama-3 too
  kCl100kTiktoken,    // as tiktoken has it: white space at the end of the text is never cut
  kCl100kPossessive,  // as `tokenizers` reads tiktoken's regex: and digits are never
  kQwen2,             // cl100k with single digits
  kQwen35,            // qwen2 with marks inside words, and not inside punctuation
  kO200k,             // Llama-4 too
  kKimi,              // o200k with runs of Han characters apart
  kTekken,            // o200k without contractions, with single digits
  kDeepseek,          // the third step of DeepSeek-V3
  kMatra,             // cl100k with marks as letters, newlines never with punctuation
  kIndic,             // o200k with joiners inside words
  kGpt2Repaired,      // gpt2, cl100k, qwen2 with marks and joiners after letters
  kCl100kRepaired,
  kQwen2Repaired,
  kQwen35Repaired,
  kTekkenRepaired,   // tekken with joiners inside words
  kBoundaries,       // digits, punctuation runs, newlines and whitespace runs stand alone
  kIndicBoundaries,  // likewise; a joiner after a letter is no punctuation
  kDigitTriples,     // digits in threes from the right stand alone
  kHan,              // Han characters stand alone
};

// Where a sentence ends inside a pre-token; an empty policy never cuts.
class SentencePolicy {
 public:
  SentencePolicy() = default;
  // `terminals`: a run of these characters ends a sentence, whatever follows; none may be a
  // letter, mark, number or space (std::invalid_argument). `period`: "." ends one where
  // whitespace or the end of the pre-token follows.
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

// A word pattern without its space boundary: a pre-token goes on over a single space where a letter
// (or a mark on one; not U+FE0F, which emoji carry) stands before it and a letter after it. So
// every pre-token is one or more whole pre-tokens of the pattern, and all its other boundaries
// stay:
// (?:R)(?:(?<=[\p{L}\p{M}&&[^\ufe0f]])(?= \p{L})(?:R))*
struct JoinedWords {
  Pattern words;
};

// A compiled pre-tokenizer: steps, each of which cuts every pre-token that the one before it left.
// Pre-tokens are the matches of a pattern and the gaps between them; a sentence's terminal goes
// with the pre-token before it. Without steps the text is one pre-token.
class PreTokenizer {
 public:
  // Subtle: what follows ByteRuns may be given text that is not UTF-8; only others of them may.
  using Step = std::variant<Pattern, SentencePolicy, SyllableRules, JoinedWords, CharacterRuns,
                            Automaton, ByteRuns>;

  explicit PreTokenizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  // Calls `pre_token(std::string_view)` for every pre-token of valid UTF-8 `text`, left to right;
  // their concatenation is the text, and none is empty.
  template <class F>
  void split(std::string_view text, F&& pre_token) const {
    if (text.empty()) return;
    if (steps_.empty()) return pre_token(text);
    split_from(0, text, pre_token);
  }

 private:
  // Steps `index` and later. One function per F whatever the steps are: which scanner runs is
  // asked once per pre-token of the step before, and only the last one calls `pre_token` itself.
  template <class F>
  void split_from(std::size_t index, std::string_view text, F& pre_token) const {
    if (index + 1 == steps_.size()) return split_step(steps_[index], text, pre_token);
    if (index + 2 == steps_.size()) {
      const auto* const pattern = std::get_if<Pattern>(&steps_[index]);
      const auto* const policy = std::get_if<SentencePolicy>(&steps_[index + 1]);
      if (pattern && policy && *pattern == Pattern::kBoundaries) {
        return split_boundaries_and_sentences<false>(*policy, text, pre_token);
      }
      if (pattern && policy && *pattern == Pattern::kIndicBoundaries &&
          !policy->ends_at_joiners()) {
        return split_boundaries_and_sentences<true>(*policy, text, pre_token);
      }
    }
    split_step(steps_[index], text,
               [&](std::string_view part) { split_from(index + 1, part, pre_token); });
  }

  template <class F>
  static void split_step(const Step& step, std::string_view text, F&& pre_token) {
    if (const auto* pattern = std::get_if<Pattern>(&step)) {
      split_pattern(*pattern, text, pre_token);
    } else if (const auto* policy = std::get_if<SentencePolicy>(&step)) {
      split_sentences(*policy, text, pre_token);
    } else if (const auto* joined = std::get_if<JoinedWords>(&step)) {
      split_joined(joined->words, text, pre_token);
    } else if (const auto* runs = std::get_if<CharacterRuns>(&step)) {
      runs->split(text, pre_token);
    } else if (const auto* bytes = std::get_if<ByteRuns>(&step)) {
      bytes->split(text, pre_token);
    } else if (const auto* automaton = std::get_if<Automaton>(&step)) {
      automaton->split(text, pre_token);
    } else {
      scan::syllables(text, *std::get_if<SyllableRules>(&step), pre_token);
    }
  }

  template <class F>
  static void split_pattern(Pattern pattern, std::string_view text, F&& pre_token) {
    switch (pattern) {
      case Pattern::kGpt2:
        return scan::words<scan::Gpt2>(text, pre_token);
      case Pattern::kCl100k:
        return scan::words<scan::Cl100k>(text, pre_token);
      case Pattern::kCl100kTiktoken:
        return scan::words<scan::Cl100kTiktoken>(text, pre_token);
      case Pattern::kCl100kPossessive:
        return scan::words<scan::Cl100kPossessive>(text, pre_token);
      case Pattern::kQwen35:
        return scan::words<scan::Qwen35>(text, pre_token);
      case Pattern::kKimi:
        return scan::words<scan::Kimi>(text, pre_token);
      case Pattern::kDeepseek:
        return scan::words<scan::Deepseek>(text, pre_token);
      case Pattern::kQwen35Repaired:
        return scan::words<scan::Qwen35Repaired>(text, pre_token);
      case Pattern::kQwen2:
        return scan::words<scan::Qwen2>(text, pre_token);
      case Pattern::kO200k:
        return scan::words<scan::O200k>(text, pre_token);
      case Pattern::kTekken:
        return scan::words<scan::Tekken>(text, pre_token);
      case Pattern::kMatra:
        return scan::words<scan::Matra>(text, pre_token);
      case Pattern::kIndic:
        return scan::words<scan::Indic>(text, pre_token);
      case Pattern::kGpt2Repaired:
        return scan::words<scan::Gpt2Repaired>(text, pre_token);
      case Pattern::kCl100kRepaired:
        return scan::words<scan::Cl100kRepaired>(text, pre_token);
      case Pattern::kQwen2Repaired:
        return scan::words<scan::Qwen2Repaired>(text, pre_token);
      case Pattern::kTekkenRepaired:
        return scan::words<scan::TekkenRepaired>(text, pre_token);
      case Pattern::kBoundaries:
        return scan::boundaries<false>(text, pre_token);
      case Pattern::kIndicBoundaries:
        return scan::boundaries<true>(text, pre_token);
      case Pattern::kDigitTriples:
        return scan::digit_triples(text, pre_token);
      case Pattern::kHan:
        return scan::han_characters(text, pre_token);
    }
  }

  template <class F>
  static void split_joined(Pattern words, std::string_view text, F&& pre_token) {
    std::string_view waiting;
    split_pattern(words, text, [&](std::string_view word) {
      if (!waiting.empty() && scan::follows_word(text.data(), word)) {
        waiting = {waiting.data(), waiting.size() + word.size()};
        return;
      }
      if (!waiting.empty()) pre_token(waiting);
      waiting = word;
    });
    if (!waiting.empty()) pre_token(waiting);
  }

  // Split(terminals, MergedWithPrevious): a match joins the gap before it; a match right after
  // another match, or at the start, is a pre-token of its own.
  template <class F>
  static void split_sentences(const SentencePolicy& policy, std::string_view text, F&& pre_token) {
    const char* const end = text.data() + text.size();
    const char* begin = text.data();  // of the pre-token under way; == at right after a match
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
      pre_token(std::string_view(begin, stop));
      begin = at = stop;
    }
    if (begin < end) pre_token(std::string_view(begin, end));
  }

  // Both steps at once, the last two of most superword stages. Between boundaries no two characters
  // of punctuation stand side by side (but for joiners). So a terminal there is one character, and
  // whether a period ends a sentence can be read off the text, without the end of the gap.
  template <bool kJoiners, class F>
  static void split_boundaries_and_sentences(const SentencePolicy& policy, std::string_view text,
                                             F&& pre_token) {
    const auto gap_cut = [&](const char* at, const char* end) -> const char* {
      if (!policy.may_begin(*at)) return nullptr;
      const char* const stop = match_terminal(policy, at, end);
      return stop == at ? nullptr : stop;
    };
    const auto boundary = [&](std::string_view part) { split_sentences(policy, part, pre_token); };
    scan::boundaries<kJoiners>(text, gap_cut, boundary, pre_token);
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
