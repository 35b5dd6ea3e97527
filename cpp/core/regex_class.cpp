#include "core/regex_class.h"

#include <algorithm>

#include "core/utf8.h"

namespace vocabshift {

ClassReader::ClassReader(std::string_view regex) {
  if (regex.size() > kLongest) throw BeyondAutomaton();
  for (const char* at = regex.data(); at < regex.data() + regex.size();) {
    const Decoded decoded = decode_utf8(at);
    text_.push_back(decoded.code_point);
    at += decoded.length;
  }
}

char32_t ClassReader::next() {
  if (at_end() || text_[at_] == 0) throw BeyondAutomaton();
  return text_[at_++];
}

bool ClassReader::take(std::u32string_view expected) {
  if (std::u32string_view(text_).substr(at_, expected.size()) != expected) return false;
  at_ += expected.size();
  return true;
}

CodeSet ClassReader::both_cases(const CodeSet& set) {
  CodeSet both = set, beyond = set;
  if (!is_caseless(beyond &= CodeSet(0x80, CodeSet::kLast))) throw BeyondAutomaton();
  for (const CodeSet::Range& range : set.ranges()) {
    for (char32_t c = range.first; c <= std::min<char32_t>(range.last, 0x7F); ++c) {
      if (!is_letter(c)) continue;
      both |= CodeSet(c ^ 0x20);
      if (lower(c) == 's') both |= CodeSet(0x17F);   // long s
      if (lower(c) == 'k') both |= CodeSet(0x212A);  // Kelvin sign
    }
  }
  return both;
}

std::optional<CodeSet> ClassReader::named_set(const std::string& name, bool is_posix) {
  const auto [known, is_new] = named_.try_emplace({name, is_posix});
  if (is_new) known->second = is_posix ? posix_set(name) : property_set(name);
  return known->second;
}

CodeSet ClassReader::bare_word() {
  CodeSet word = *named_set("word", true);
  return ((word |= CodeSet(0xB2, 0xB3)) |= CodeSet(0xB9)) |= CodeSet(0xBC, 0xBE);
}

std::optional<CodeSet> ClassReader::escaped_set(bool in_class) {
  const char32_t kind = peek();
  std::optional<CodeSet> members;
  bool negated = false;
  switch (kind) {
    case 'w':
    case 'W':
      members = in_class ? named_set("word", true) : bare_word();
      break;
    case 'd':
    case 'D':
      members = named_set("digit", true);
      break;
    case 's':
    case 'S':
      members = named_set("space", true);
      break;
    case 'h':
    case 'H':
      members = named_set("xdigit", true);
      break;
    case 'p':
    case 'P': {
      if (peek(1) != '{') throw BeyondAutomaton();
      at_ += 2;
      negated = take(U"^");
      const std::string name = name_until(U"}", false);
      members = name == "word" && !in_class ? bare_word() : named_set(name, false);
      if (!members) throw BeyondAutomaton();
      --at_;
      break;
    }
    default:
      return std::nullopt;
  }
  ++at_;
  if (kind < 'a') negated = !negated;
  return negated ? ~*members : *members;
}

std::string ClassReader::name_until(std::u32string_view end, bool is_exact) {
  std::string name;
  while (!take(end)) {
    const char32_t c = next();
    if (!is_exact && (c == ' ' || c == '-' || c == '_')) continue;
    if (is_exact && c < 'a') throw BeyondAutomaton();
    if (!is_letter(c) && !is_digit(c)) throw BeyondAutomaton();
    name.push_back(static_cast<char>(lower(c)));
  }
  return name;
}

char32_t ClassReader::hexadecimal(std::size_t least, std::size_t most) {
  char32_t value = 0;
  std::size_t digits = 0;
  for (; digits < most && (is_digit(peek()) || (lower(peek()) >= 'a' && lower(peek()) <= 'f'));
       ++digits) {
    const char32_t c = lower(next());
    value = value * 16 + (is_digit(c) ? c - '0' : c - 'a' + 10);
  }
  if (digits < least || value > CodeSet::kLast || (value >= 0xD800 && value < 0xE000)) {
    throw BeyondAutomaton();
  }
  return value;
}

char32_t ClassReader::escaped_character(bool in_class) {
  const char32_t c = next();
  constexpr std::pair<char, char> kControls[] = {{'t', '\t'}, {'n', '\n'}, {'r', '\r'}, {'f', '\f'},
                                                 {'v', '\v'}, {'a', '\a'}, {'e', 27}};
  for (const auto& [letter, control] : kControls) {
    if (c == static_cast<char32_t>(letter)) return static_cast<char32_t>(control);
  }
  if (in_class && c == 'b') return '\b';
  char32_t code = 0;
  if (c == 'u') {
    code = hexadecimal(4, 4);
  } else if (c == 'x' && take(U"{")) {
    code = hexadecimal(1, 8);
    if (next() != '}') throw BeyondAutomaton();
  } else if (c == 'x') {
    code = hexadecimal(1, 2);
    if (code >= 0x80) throw BeyondAutomaton();  // a byte
  } else if (c >= 0x80 || is_letter(c) || is_digit(c)) {
    throw BeyondAutomaton();
  } else {
    return c;
  }
  if (folds_ && !is_caseless(CodeSet(code))) throw BeyondAutomaton();
  return code;
}

CodeSet ClassReader::char_class() {
  if (++depth_ > kDeepest) throw BeyondAutomaton();
  const bool negated = take(U"^");
  std::optional<CodeSet> before_and;
  CodeSet members;
  bool is_first = true;
  for (;; is_first = false) {
    const char32_t c = next();
    if (c == ']' && !is_first) break;
    if (c == '[' && peek() == ':') {
      ++at_;
      const bool is_not = take(U"^");
      const auto named = named_set(name_until(U":]", true), true);
      if (!named) throw BeyondAutomaton();
      members |= is_not ? ~*named : *named;
    } else if (c == '[') {
      if (folds_) throw BeyondAutomaton();
      members |= char_class();
    } else if (c == '&' && peek() == '&') {
      ++at_;
      if (is_first || folds_ || peek() == ']' || peek() == '&') throw BeyondAutomaton();
      before_and = before_and ? * before_and &= members : members;
      members = CodeSet();
    } else if (c == '-' && !is_first && peek() != ']') {
      throw BeyondAutomaton();  // [a-z-_], [\w-_], [a&&-b]
    } else {
      member(c, members);
    }
  }
  if (before_and) members &= *before_and;
  if (folds_) members = both_cases(members);
  --depth_;
  return negated ? ~members : members;
}

// A character `c`, the first one of a range, or an escape.
void ClassReader::member(char32_t c, CodeSet& members) {
  if (c == '\\') {
    if (const auto escaped = escaped_set(true)) {
      members |= *escaped;
      return;
    }
    c = escaped_character(true);
  }
  char32_t last = c;
  if (peek() == '-' && peek(1) != ']') {
    ++at_;
    last = next();
    if (last == '[' || last == '-' || last == '&') throw BeyondAutomaton();
    if (last == '\\') last = escaped_character(true);
    if (last < c) throw BeyondAutomaton();
  }
  members |= CodeSet(c, last);
}

}  // namespace vocabshift
