// A regex as instructions with numbered character classes, and what each instruction leads to at a
// place of the text, given what follows (Automaton runs it).
//
// A *fact* is a bit: whether matching from an instruction on succeeds. Facts at a place follow from
// those one character later, so they are computed from the end of the text to its start. A
// backtracking engine takes the first alternative that leads to a match. With the facts at hand it
// is known which one that is, for lookaheads of any length too. Inside an atomic group the first
// alternative that leads to the end of the group is taken, so its instructions have one fact per
// group around them: whether the end of that group is reached.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/char_classes.h"
#include "core/regex_tree.h"

namespace vocabshift {

class RegexProgram {
 public:
  using Facts = std::vector<std::uint64_t>;  // bits; the last one: this is the end of the text

  // None for a regex that is refused, or too large.
  static std::optional<RegexProgram> compile(std::string_view regex);

  // Number of the class of a character; `text_start` stands for the one before the first.
  std::uint8_t class_of(char32_t c) const { return classes_.of(c); }
  std::uint8_t ascii_class(unsigned char c) const { return classes_.of_ascii(c); }
  std::uint8_t text_start() const { return static_cast<std::uint8_t>(classes_.count()); }

  // Whether a match may be empty.
  bool may_be_empty() const { return may_be_empty_; }

  // Facts of the instructions that read a character, at the end of the text.
  Facts at_end() const;
  // Those of all instructions, given these and the class of the character before.
  Facts complete(const Facts& facts, std::uint8_t before) const;
  // From all of them, those one character earlier, that character being of a class.
  Facts one_earlier(const Facts& complete, std::uint8_t read) const;

  // Where a match is under way: in front of the instruction whose character was read last, from 1.
  // 0: none is. kNoMatch, kMatched: it cannot be, it is complete.
  static constexpr std::uint32_t kMatched = ~std::uint32_t{0}, kNoMatch = kMatched - 1;
  std::uint32_t place_count() const { return static_cast<std::uint32_t>(readers_.size()) + 1; }
  // The place after the next character, by the complete facts before it. `place` 0: a match begins.
  std::uint32_t next_place(const Facts& complete, std::uint32_t place) const;

 private:
  enum class Op : std::uint8_t {
    kRead,           // a character of `set`, then `next`
    kSplit,          // `next`, or else `other`
    kLook,           // `next`, if `other` succeeds
    kLookNot,        // `next`, if `other` fails
    kBehind,         // `next`, if the character before is in `set`
    kBehindOrStart,  // or there is none
    kTextEnd,        // `next`, at the end of the text
    kAtomic,         // `next`, which is in the group
    kAtomicEnd,      // `next`, which is after it
    kAccept,         // the end of the regex or of a lookahead
  };
  struct Instruction {
    Op op;
    char folded = 0;
    std::uint32_t next = 0, other = 0, set = 0;
    std::uint32_t depth = 1;  // number of facts: of the innermost group first
    std::uint32_t fact = 0;   // number of the first one
    std::uint32_t place = 0;  // kRead
  };

  class Writer;
  bool order_instructions();
  bool has_long_folds() const;

  bool fact(const Facts& facts, std::uint32_t instruction, std::uint32_t level = 0) const {
    const std::uint32_t bit = code_[instruction].fact + level;
    return facts[bit / 64] >> (bit % 64) & 1;
  }
  static void set_bit(Facts& facts, std::uint32_t bit) {
    facts[bit / 64] |= std::uint64_t{1} << (bit % 64);
  }

  std::vector<Instruction> code_;
  std::uint32_t start_ = 0;
  std::uint32_t fact_count_ = 0;
  std::vector<std::uint32_t> readers_;  // kRead instructions
  std::vector<std::uint32_t> order_;    // all others, each after those that it asks at its place
  CharClasses classes_;
  bool may_be_empty_ = false;
};

}  // namespace vocabshift
