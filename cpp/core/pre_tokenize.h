// Scanners for the named patterns: text -> pre-tokens, equal to the regex text that is exported.
//
// Owns how each named pattern cuts. The regex text itself is src/vocabshift/text/patterns.py; the
// property tests hold the two equal. Which characters end a sentence is policy, handed in.
#pragma once

#include <bitset>
#include <memory>
#include <string_view>
#include <vector>

#include "core/scan.h"
#include "core/types.h"

namespace vocabshift {

enum class Pattern {
  kGpt2,
  kCl100k,  // Llama-3 too
  kQwen2,   // cl100k with single digits
  kO200k,   // Llama-4 too
  kTekken,  // o200k without contractions, with single digits
  kWalls,   // superbpe-stage2: digits, punctuation runs, newlines and whitespace runs stand alone
  kWhole,   // no cut
};

// Where a sentence ends inside a piece; an empty policy never cuts.
class SentencePolicy {
 public:
  SentencePolicy() = default;
  // `terminals`: a run of these characters ends a sentence, whatever follows; none may be a
  // letter, mark, number or space (std::invalid_argument). `period`: "." ends one where
  // whitespace or the end of the piece follows.
  SentencePolicy(const std::vector<char32_t>& terminals, bool period);

  bool empty() const { return !terminals_ && !period_; }
  bool is_terminal(char32_t c) const { return terminals_ && (*terminals_)[c]; }
  bool period() const { return period_; }

 private:
  std::shared_ptr<const std::bitset<0x110000>> terminals_;
  bool period_ = false;
};

// A compiled pre-tokenizer: a pattern (its matches and the gaps between them are pieces), then
// the sentence cut inside each piece (a terminal goes with the piece before it), then a second
// pattern inside each of these.
class PreTokenizer {
 public:
  explicit PreTokenizer(Pattern pattern, SentencePolicy policy = {},
                        Pattern inner = Pattern::kWhole)
      : pattern_(pattern), policy_(std::move(policy)), inner_(inner) {}

  // Calls `piece(std::string_view)` for every piece of valid UTF-8 `text`, left to right; their
  // concatenation is the text.
  template <class F>
  void split(std::string_view text, F&& piece) const {
    if (inner_ == Pattern::kWhole) return split_outer(text, piece);
    split_outer(text, [&](std::string_view part) { split_pattern(inner_, part, piece); });
  }

 private:
  template <class F>
  void split_outer(std::string_view text, F&& piece) const {
    if (policy_.empty()) return split_pattern(pattern_, text, piece);
    split_pattern(pattern_, text, [&](std::string_view part) { split_sentences(part, piece); });
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
      case Pattern::kWalls:
        return scan::walls(text, piece);
      case Pattern::kWhole:
        if (!text.empty()) piece(text);
        return;
    }
  }

  // Split(terminals, MergedWithPrevious): a match joins the gap before it; a match right after
  // another match, or at the start, is a piece of its own.
  template <class F>
  void split_sentences(std::string_view text, F&& piece) const {
    const char* const end = text.data() + text.size();
    const char* begin = text.data();  // of the piece under way; == at right behind a match
    for (const char* at = begin; at < end;) {
      const char* const stop = match_terminal(at, end);
      if (stop == at) {
        at += scan::char_length(at);
        continue;
      }
      piece(std::string_view(begin, stop));
      begin = at = stop;
    }
    if (begin < end) piece(std::string_view(begin, end));
  }

  // End of the terminal match that starts at `at`, or `at`.
  const char* match_terminal(const char* at, const char* end) const {
    const char* stop = at;
    while (stop < end) {
      const auto lead = static_cast<unsigned char>(*stop);
      if (lead < 0x80 && !scan::is_ascii_punctuation(lead)) break;
      const Decoded next = decode_utf8(stop);
      if (!policy_.is_terminal(next.code_point)) break;
      stop += next.length;
    }
    if (stop == at && policy_.period() && *at == '.') {
      if (at + 1 == end || (scan::class_at(at + 1).bits & kSpace)) return at + 1;
    }
    return stop;
  }

  Pattern pattern_;
  SentencePolicy policy_;
  Pattern inner_;
};

}  // namespace vocabshift
