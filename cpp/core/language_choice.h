// Whom the next merge serves in Parity-aware BPE: the language that needs most tokens for its text.
//
// Foroutan, Meister, Paul, Niklaus, Ahmadi, Bosselut, Sennrich, "Parity-Aware Byte-Pair Encoding"
// (arXiv 2508.04796). Base variant: the language of the lowest compression rate, which on parallel
// text is the one with most tokens. Moving window: languages that have had more than alpha / n of
// the last merges are passed over (n languages). Where we differ from the authors' code: rates are
// compared as fractions of integers, without rounding; a language without pairs is passed over, as
// in `tokenizers`, instead of ending training; where the window shuts out all, nobody is passed
// over.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "core/types.h"

namespace vocabshift {

struct ParityWindow {
  std::size_t size = 0;  // merges looked back at; 0: no window
  double alpha = 2;      // what a language may have of them, in shares of 1 / n
};

class LanguageChoice {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  // By language: the tokens of its text, and what they are divided by: its length in a unit that
  // is fair, or 1 where the texts are parallel.
  LanguageChoice(std::vector<Count> tokens, std::vector<Count> lengths, ParityWindow window);

  std::size_t languages() const { return tokens_.size(); }
  const std::vector<Count>& tokens() const { return tokens_; }

  // The first of the languages with most tokens per length; kNone where none has a pair left.
  std::size_t next() const;
  // next() was served, or had no pair and is passed over from now on.
  void served(std::size_t language);
  void exhausted(std::size_t language);
  // A merge took so many tokens from the text of a language.
  void shrink(std::size_t language, Count tokens) { tokens_[language] -= tokens; }

 private:
  bool is_worse(std::size_t language, std::size_t than) const;
  bool may_be_next(std::size_t language) const;

  std::vector<Count> tokens_, lengths_;
  ParityWindow window_;
  std::vector<bool> is_exhausted_;
  std::deque<std::size_t> last_;        // languages served
  std::vector<std::size_t> in_window_;  // how often, by language
};

}  // namespace vocabshift
