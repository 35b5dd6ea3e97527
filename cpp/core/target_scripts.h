// Which text counts more: words with a character of the target scripts, and sentences by their
// share of such words (Matra, section 3.3). Which scripts and how much more is policy, handed in.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/types.h"

namespace vocabshift {

class TargetScripts {
 public:
  using Range = std::pair<char32_t, char32_t>;  // both ends included

  TargetScripts() = default;  // no character is in any target script
  explicit TargetScripts(std::vector<Range> ranges);

  bool empty() const { return ranges_.empty(); }
  bool contains(char32_t c) const;
  bool in_word(std::string_view word) const;  // valid UTF-8, or a part of it

 private:
  std::vector<Range> ranges_;  // ascending
};

// Cuts documents into sentences and weighs each: `unit` times 1 without target words, `target`
// where every word is one, a blend by the share of words otherwise. Words are what whitespace
// divides; a sentence goes up to and including a terminal, or to the end of the document.
class SentenceWeights {
 public:
  struct Sentence {
    std::size_t end;       // exclusive, in bytes
    std::uint32_t factor;  // unit … target
  };

  SentenceWeights(TargetScripts scripts, std::set<char32_t> terminals, std::uint32_t unit,
                  std::uint32_t target);

  std::uint32_t unit() const { return unit_; }
  const std::set<char32_t>& terminals() const { return terminals_; }
  void split(std::string_view document, std::vector<Sentence>& sentences) const;

 private:
  TargetScripts scripts_;
  std::set<char32_t> terminals_;
  std::uint32_t unit_, target_;
};

}  // namespace vocabshift
