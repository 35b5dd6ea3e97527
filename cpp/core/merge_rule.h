// May this pair ever merge? Permanent per pair and decided on the bytes of the product, so that
// every uncrossed occurrence of a string is segmented alike. Sources: SuperBPE's filters
// (docs/algorithms/superwords.md); the terminal prohibition of Matra, section 3.4
// (docs/algorithms/matra.md).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/piece_rule.h"

namespace vocabshift {

struct MergeRule {
  std::size_t max_token_bytes = 0;  // 0: any length
  std::size_t max_words = 0;        // words between spaces in a product; 0: any number
  std::set<std::string, std::less<>> forbidden = {};  // special tokens: text may not make them
  // No product may contain one of these characters. A character whose bytes a merge would complete
  // is contained in the product, so that no merge completes one either.
  std::set<char32_t> terminals = {};
  // A product begins and ends between characters.
  bool whole_characters = false;
  // A product that begins inside a character holds nothing after it: the last bytes of a terminal
  // never join what follows.
  bool whole_first = false;
  // Not empty: grapheme-safe. A product that holds more than (a part of) one orthographic syllable
  // begins and ends between syllables. These are the signs that join the letter after them, if it
  // is of a script that has such a sign, to the syllable before (virama, coeng); what is a mark is
  // the core's knowledge.
  std::set<char32_t> conjoiners = {};

  // Set: the product is a text that may be a SentencePiece piece.
  std::optional<PieceRule> pieces = {};

  bool allows(std::string_view product) const;
};

}  // namespace vocabshift
