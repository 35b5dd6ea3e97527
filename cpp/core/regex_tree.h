// A regex in the syntax of `tokenizers` (Oniguruma's default one), as far as an automaton can run
// it exactly: classes, alternation, repeats of any kind, groups, atomic groups, lookaheads,
// lookbehinds of one character, anchors, and ASCII letters of either case.
//
// Owns the syntax, and what is refused: all whose result may depend on more than the text before
// and after (back references, …), and what the engine does in a way of its own (loops over nothing,
// folding of ß or of what may be part of it). A refused regex is nobody's error.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/code_set.h"

namespace vocabshift {

struct RegexNode {
  enum Kind {
    kSequence,  // of `parts`; none: the empty string
    kChoice,    // the first of `parts` that leads to a match
    kSet,       // one character of sets[set]
    kRepeat,    // parts[0], which never matches the empty string
    kAtomic,    // the first match of parts[0], whatever follows
    kLook,      // whether parts[0] matches here (`negated`: does not)
    kBehind,    // whether the character before is in sets[set]; `at_start`: or there is none
    kTextEnd,
  };
  static constexpr std::uint32_t kEndless = ~std::uint32_t{0};

  Kind kind;
  std::vector<std::uint32_t> parts{};
  std::uint32_t set = 0;
  char folded = 0;  // kSet: a letter matched in either case, in lower case
  bool negated = false, at_start = false;
  bool lazy = false;
  std::uint32_t least = 1, most = 1;
  bool may_be_empty = false;
};

struct RegexTree {
  std::vector<RegexNode> nodes;  // parts come before what they are part of
  std::uint32_t root = 0;
  std::vector<CodeSet> sets;  // each once
};

// None for what is beyond the automaton, or no regex at all. `regex` is valid UTF-8.
std::optional<RegexTree> parse_regex(std::string_view regex);

}  // namespace vocabshift
