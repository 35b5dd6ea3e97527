#include "core/regex_tree.h"

#include <algorithm>
#include <utility>

#include "core/regex_class.h"

namespace vocabshift {

namespace {

constexpr std::size_t kMostSets = 256;
constexpr unsigned kMostSuffixes = 4;  // a repeat of a repeat …
constexpr std::uint32_t kMostRepeats = 1000;

class Parser : private ClassReader {
 public:
  using ClassReader::ClassReader;

  RegexTree parse() {
    if (take(U"(?i)")) folds_ = true;
    tree_.root = choice();
    if (!at_end()) throw BeyondAutomaton();  // a ")" too many
    return std::move(tree_);
  }

 private:
  using Node = RegexNode;

  std::uint32_t add(Node node) {
    tree_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(tree_.nodes.size() - 1);
  }
  std::uint32_t set_number(const CodeSet& set) {
    const auto found = std::find(tree_.sets.begin(), tree_.sets.end(), set);
    if (found != tree_.sets.end()) return static_cast<std::uint32_t>(found - tree_.sets.begin());
    if (tree_.sets.size() == kMostSets) throw BeyondAutomaton();
    tree_.sets.push_back(set);
    return static_cast<std::uint32_t>(tree_.sets.size() - 1);
  }
  std::uint32_t set(const CodeSet& members) {
    return add({.kind = Node::kSet, .set = set_number(members)});
  }
  std::uint32_t sequence(std::vector<std::uint32_t> parts) {
    if (parts.size() == 1) return parts[0];
    bool empty = true;
    for (const std::uint32_t part : parts) empty &= tree_.nodes[part].may_be_empty;
    return add({.kind = Node::kSequence, .parts = std::move(parts), .may_be_empty = empty});
  }
  std::uint32_t choice(std::vector<std::uint32_t> parts) {
    if (parts.size() == 1) return parts[0];
    bool empty = false;
    for (const std::uint32_t part : parts) empty |= tree_.nodes[part].may_be_empty;
    return add({.kind = Node::kChoice, .parts = std::move(parts), .may_be_empty = empty});
  }
  std::uint32_t atomic(std::uint32_t part) {
    const bool empty = tree_.nodes[part].may_be_empty;
    return add({.kind = Node::kAtomic, .parts = {part}, .may_be_empty = empty});
  }
  std::uint32_t look(std::uint32_t part, bool negated) {
    return add({.kind = Node::kLook, .parts = {part}, .negated = negated, .may_be_empty = true});
  }
  std::uint32_t behind(const CodeSet& members, bool at_start) {
    return add({.kind = Node::kBehind,
                .set = set_number(members),
                .at_start = at_start,
                .may_be_empty = true});
  }
  std::uint32_t text_end() { return add({.kind = Node::kTextEnd, .may_be_empty = true}); }

  std::uint32_t choice() {
    if (++depth_ > kDeepest) throw BeyondAutomaton();
    std::vector<std::uint32_t> parts;
    do parts.push_back(sequence());
    while (take(U"|"));
    --depth_;
    return choice(std::move(parts));
  }

  std::uint32_t sequence() {
    std::vector<std::uint32_t> parts;
    while (!at_end() && peek() != '|' && peek() != ')') parts.push_back(repeats(atom()));
    return sequence(std::move(parts));
  }

  std::uint32_t repeats(std::uint32_t part) {
    for (unsigned count = 0; count < kMostSuffixes; ++count) {
      Node repeat{.kind = Node::kRepeat, .parts = {part}};
      bool is_exact = false, is_interval = false;
      if (take(U"?")) {
        repeat.least = 0;
      } else if (take(U"*")) {
        repeat.least = 0;
        repeat.most = Node::kEndless;
      } else if (take(U"+")) {
        repeat.most = Node::kEndless;
      } else if (take(U"{")) {
        is_interval = true;
        is_exact = interval(repeat);
      } else {
        return part;
      }
      // {n}? is an optional {n}, and {n,m}+ is a repeat of {n,m}: no suffixes here.
      repeat.lazy = !is_exact && take(U"?");
      if (tree_.nodes[part].may_be_empty) throw BeyondAutomaton();
      repeat.may_be_empty = repeat.least == 0;
      const bool is_possessive = !repeat.lazy && !is_interval && take(U"+");
      part = add(std::move(repeat));
      if (is_possessive) part = atomic(part);
    }
    throw BeyondAutomaton();
  }

  std::uint32_t number() {
    std::uint32_t value = 0;
    if (!is_digit(peek())) throw BeyondAutomaton();
    while (is_digit(peek())) {
      value = value * 10 + (next() - '0');
      if (value > kMostRepeats) throw BeyondAutomaton();
    }
    return value;
  }
  bool interval(Node& repeat) {  // whether it is {n}
    const bool is_upper = peek() == ',';
    repeat.least = is_upper ? 0 : number();
    repeat.most = repeat.least;
    const bool is_exact = !take(U",");
    if (!is_exact) repeat.most = !is_upper && peek() == '}' ? Node::kEndless : number();
    if (next() != '}' || repeat.most == 0 || repeat.most < repeat.least) throw BeyondAutomaton();
    return is_exact;
  }

  std::uint32_t atom() {
    const char32_t c = next();
    switch (c) {
      case '(':
        return group();
      case '[':
        return folded_set(char_class());
      case '.':
        return set(any_char());
      case '\\':
        return escape();
      case '^': {  // at the start, or after a newline that does not end the text
        const std::uint32_t newline = behind(CodeSet('\n'), false);
        const std::uint32_t after = sequence({newline, look(text_end(), true)});
        return choice({behind({}, true), after});
      }
      case '$':
        return look(choice({text_end(), set(CodeSet('\n'))}), false);
      case '*':
      case '+':
      case '?':
      case '{':
        throw BeyondAutomaton();
      default:
        return literal(c);
    }
  }

  CodeSet any_char() const { return dot_is_newline_ ? CodeSet(0, CodeSet::kLast) : ~CodeSet('\n'); }

  std::uint32_t literal(char32_t c) {
    return folds_ ? folded_set(both_cases(CodeSet(c))) : set(CodeSet(c));
  }

  // Notes which letter it is: [s] is no other than s to the engine.
  std::uint32_t folded_set(const CodeSet& members) {
    const std::uint32_t node = set(members);
    for (char letter = 'a'; folds_ && letter <= 'z'; ++letter) {
      if (members == both_cases(CodeSet(static_cast<char32_t>(letter)))) {
        tree_.nodes[node].folded = letter;
      }
    }
    return node;
  }

  std::uint32_t group() {
    const bool folds = folds_, dot_is_newline = dot_is_newline_;
    std::uint32_t inner;
    if (take(U"?:")) {
      inner = choice();
    } else if (take(U"?>")) {
      inner = atomic(choice());
    } else if (take(U"?=")) {
      inner = look(choice(), false);
    } else if (take(U"?!")) {
      inner = look(choice(), true);
    } else if (take(U"?<=")) {
      inner = behind(one_character(choice()), false);
    } else if (take(U"?<!")) {
      inner = behind(~one_character(choice()), true);
    } else if (take(U"?<")) {
      if (!is_letter(peek())) throw BeyondAutomaton();
      while (is_letter(peek()) || is_digit(peek()) || peek() == '_') next();
      if (next() != '>') throw BeyondAutomaton();
      inner = choice();
    } else if (take(U"?")) {
      bool on = true;
      for (char32_t c = next(); c != ':'; c = next()) {
        if (c == '-' && on) {
          on = false;
        } else if (c == 'i') {
          folds_ = on;
        } else if (c == 'm') {
          dot_is_newline_ = on;
        } else {
          throw BeyondAutomaton();
        }
      }
      inner = choice();
    } else if (peek() == '*') {
      throw BeyondAutomaton();
    } else {
      inner = choice();
    }
    if (next() != ')') throw BeyondAutomaton();
    folds_ = folds;
    dot_is_newline_ = dot_is_newline;
    return inner;
  }

  CodeSet one_character(std::uint32_t number) const {
    const Node& node = tree_.nodes[number];
    if (node.kind == Node::kSet) return tree_.sets[node.set];
    if (node.kind != Node::kChoice) throw BeyondAutomaton();
    CodeSet members;
    for (const std::uint32_t part : node.parts) {
      if (tree_.nodes[part].kind != Node::kSet) throw BeyondAutomaton();
      members |= tree_.sets[tree_.nodes[part].set];
    }
    return members;
  }

  std::uint32_t word_boundary(bool is_boundary) {
    const CodeSet word = bare_word();
    const std::uint32_t after_word = behind(word, false), after_none = behind(~word, true);
    const std::uint32_t is_word = look(set(word), false), is_none = look(set(word), true);
    return choice({sequence({after_word, is_boundary ? is_none : is_word}),
                   sequence({after_none, is_boundary ? is_word : is_none})});
  }

  std::uint32_t escape() {
    switch (peek()) {
      case 'A':
        return ++at_, behind({}, true);
      case 'z':
        return ++at_, text_end();
      case 'Z': {
        ++at_;
        const std::uint32_t newline = sequence({set(CodeSet('\n')), text_end()});
        return look(choice({text_end(), newline}), false);
      }
      case 'b':
        return ++at_, word_boundary(true);
      case 'B':
        return ++at_, word_boundary(false);
      case 'N':
        return ++at_, set(~CodeSet('\n'));
      case 'O':
        return ++at_, set(CodeSet(0, CodeSet::kLast));
      case 'R': {
        ++at_;
        const std::uint32_t both = sequence({set(CodeSet('\r')), set(CodeSet('\n'))});
        const CodeSet newlines = (CodeSet('\n', '\r') |= CodeSet(0x85)) |= CodeSet(0x2028, 0x2029);
        return atomic(choice({both, set(newlines)}));
      }
    }
    if (const auto members = escaped_set(false)) return set(*members);
    return literal(escaped_character(false));
  }

  RegexTree tree_;
  bool dot_is_newline_ = false;  // (?m)
};

}  // namespace

std::optional<RegexTree> parse_regex(std::string_view regex) {
  try {
    return Parser(regex).parse();
  } catch (const BeyondAutomaton&) {
    return std::nullopt;
  }
}

}  // namespace vocabshift
