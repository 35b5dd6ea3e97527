// Which texts may be a SentencePiece piece: the rules that its trainer holds every piece to, so
// that what is added to a vocabulary looks like what is there. Source: IsValidSentencePiece in
// sentencepiece's trainer_interface.cc; see docs/algorithms/continued.md. Which options a model was
// trained with, and which characters are digits, is policy, handed in.
//
// All but one of these rules forbid for good: what is wrong in a text is wrong in every longer one.
// So a text is folded, character by character or token by token, into a shape, and two neighbours
// whose shapes do not join can never be parts of one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

namespace vocabshift {

// What the rules need to know of a text.
struct PieceShape {
  static constexpr std::uint8_t kSeeThrough = 255;  // no character with a script of its own
  static constexpr std::uint8_t kAny = 254;         // goes with every script

  std::uint32_t characters = 0;
  std::uint8_t first_script = kSeeThrough;  // that the text before must have
  std::uint8_t last_script = kSeeThrough;   // that the text after must have
  bool is_possible = true;                  // may be (a part of) a piece
  bool is_alone = false;                    // may be a piece, never a part of one
  bool is_space = true;                     // holds nothing but spaces
  bool has_space = false;
  bool begins_with_space = false;
  bool ends_with_space = false;
};

class PieceRule {
 public:
  static constexpr char32_t kSpace = 0x2581;  // SentencePiece's visible space

  struct Options {
    std::size_t max_characters = 16;
    bool split_by_script = true;
    bool split_by_number = true;  // otherwise a digit goes with every script
    bool split_digits = true;     // every digit is a piece by itself
    bool split_by_space = true;   // otherwise spaces may stand inside
    bool space_is_suffix = false;
    bool space_runs = true;  // pieces of nothing but spaces
    std::set<char32_t> digits = {};
    std::set<char32_t> never = {};  // characters of no piece
  };

  explicit PieceRule(Options options);

  // Whether a text may be a piece; one that is not UTF-8 may not.
  bool allows(std::string_view text) const;

  PieceShape shape_of(std::string_view text) const;
  // Of the text that follows `left`.
  PieceShape join(const PieceShape& left, const PieceShape& right) const;

 private:
  PieceShape shape_of(char32_t c) const;
  bool spaces_fit(const PieceShape& left, const PieceShape& right) const;

  Options options_;
  std::uint8_t hiragana_, katakana_, inherited_;
};

}  // namespace vocabshift
