// Sets of code points, as sorted ranges: the character classes of a regex.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace vocabshift {

class CodeSet {
 public:
  struct Range {
    char32_t first, last;  // both in it
    bool operator==(const Range&) const = default;
  };
  static constexpr char32_t kLast = 0x10FFFF;

  CodeSet() = default;
  CodeSet(char32_t first, char32_t last) : ranges_{{first, last}} {}
  explicit CodeSet(char32_t only) : CodeSet(only, only) {}

  const std::vector<Range>& ranges() const { return ranges_; }  // ascending, none adjacent
  bool empty() const { return ranges_.empty(); }
  bool operator==(const CodeSet&) const = default;

  CodeSet& operator|=(const CodeSet& other);
  CodeSet operator~() const;
  CodeSet& operator&=(const CodeSet& other) { return *this = ~(~*this |= ~other); }
  // For code points at or after all that are in it.
  void append(char32_t first, char32_t last);

 private:
  std::vector<Range> ranges_;
};

// Unicode property `name` (lower case, without spaces, hyphens and underscores) as `tokenizers`
// has it: a general category, a script, or a POSIX class. None for a name that is not known here.
std::optional<CodeSet> property_set(std::string_view name);

// [[:name:]], which is another set than the property for "punct".
std::optional<CodeSet> posix_set(std::string_view name);

// Members have no other case, nor are part of any: matched alike whether case counts or not.
bool is_caseless(const CodeSet& set);

}  // namespace vocabshift
