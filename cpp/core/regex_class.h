// What stands for one character of a regex, or for a set of them: literals, escapes and "[]".
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/code_set.h"

namespace vocabshift {

struct BeyondAutomaton {};  // thrown where a regex is refused

// A place in a regex.
class ClassReader {
 public:
  explicit ClassReader(std::string_view regex);  // valid UTF-8; may throw BeyondAutomaton

 protected:
  static constexpr unsigned kDeepest = 64;  // nested groups or classes: bounds the recursion

  static bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
  static bool is_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
  static char32_t lower(char32_t c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }

  bool at_end() const { return at_ == text_.size(); }
  char32_t peek(std::size_t ahead = 0) const {  // 0 at the end; a NUL is refused
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : 0;
  }
  char32_t next();
  bool take(std::u32string_view expected);

  // The set with both cases of its ASCII letters, and the two others that fold to one of them.
  static CodeSet both_cases(const CodeSet& set);
  // \w outside of "[]", where the engine has a table of its own for the first 256 characters:
  // ²³¹¼½¾ are part of words.
  CodeSet bare_word();
  // After a backslash: what \w, \p{L} and the like stand for; none where a character is escaped.
  std::optional<CodeSet> escaped_set(bool in_class);
  char32_t escaped_character(bool in_class);
  CodeSet char_class();  // after its "["

  std::u32string text_;
  std::size_t at_ = 0;
  unsigned depth_ = 0;
  bool folds_ = false;  // (?i)

 private:
  static constexpr std::size_t kLongest = 1 << 16;  // bytes of a regex

  std::optional<CodeSet> named_set(const std::string& name, bool is_posix);
  std::string name_until(std::u32string_view end, bool is_exact);
  char32_t hexadecimal(std::size_t least, std::size_t most);
  void member(char32_t c, CodeSet& members);

  std::map<std::pair<std::string, bool>, std::optional<CodeSet>> named_;
};

}  // namespace vocabshift
