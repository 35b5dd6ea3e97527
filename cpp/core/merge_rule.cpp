#include "core/merge_rule.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/unicode.h"
#include "core/utf8.h"

namespace vocabshift {

namespace {

constexpr char32_t kZeroWidthNonJoiner = 0x200C;
constexpr char32_t kZeroWidthJoiner = 0x200D;
constexpr char32_t kNone = 0x110000;  // after the last code point

// The whole characters of a part of UTF-8 text, and whether it begins or ends inside one.
struct Characters {
  std::vector<char32_t> whole;
  bool begins_inside = false;
  bool ends_inside = false;

  explicit Characters(std::string_view bytes) {
    std::size_t at = 0;
    while (at < bytes.size() && is_continuation_byte(bytes[at])) ++at;
    begins_inside = at > 0;
    while (at < bytes.size()) {
      const auto lead = static_cast<unsigned char>(bytes[at]);
      const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
      std::size_t end = at + 1;
      while (end < bytes.size() && is_continuation_byte(bytes[end])) ++end;
      const char32_t c = end - at == length ? decode_utf8(bytes.data() + at).code_point : kNone;
      if (c < kNone) {
        whole.push_back(c);
      } else {
        ends_inside = true;
      }
      at = end;
    }
  }
};

std::size_t words_in(std::string_view product) {
  std::size_t words = 0;
  char before = ' ';
  for (const char c : product) {
    words += before == ' ' && c != ' ';
    before = c;
  }
  return words;
}

bool is_joiner(char32_t c) { return c == kZeroWidthJoiner || c == kZeroWidthNonJoiner; }

bool is_inside_only(char32_t c) { return char_class(c) & kMark || is_joiner(c); }

class SyllableCheck {
 public:
  SyllableCheck(const std::set<char32_t>& conjoiners, const Characters& characters)
      : conjoiners_(conjoiners), characters_(characters), whole_(characters.whole) {}

  bool allows() const {
    if (!holds_a_border()) return true;
    return !characters_.begins_inside && !characters_.ends_inside &&
           !is_inside_only(whole_.front()) && !is_open();
  }

 private:
  // What stands before the marks of which a conjoiner is the last of the first `count` characters:
  // kNone where it stands before the text. Nothing where no conjoiner ends them.
  std::optional<char32_t> conjoined(std::size_t count) const {
    if (count > 0 && whole_[count - 1] == kZeroWidthJoiner) --count;  // the other one parts
    if (count == 0 || !conjoiners_.contains(whole_[count - 1])) return std::nullopt;
    while (count > 0 && is_inside_only(whole_[count - 1])) --count;
    return count == 0 ? kNone : whole_[count - 1];
  }

  // Whether a letter after all of them may belong to their last syllable.
  bool is_open() const {
    const std::optional<char32_t> letter = conjoined(whole_.size());
    return letter && (*letter == kNone || char_class(*letter) & kLetter);
  }

  // Whether the letter after the first `count` characters is known to belong to their last one.
  bool joins(std::size_t count) const {
    const std::optional<char32_t> letter = conjoined(count);
    return letter && (*letter == kNone || is_syllabic(*letter)) && is_syllabic(whole_[count]);
  }

  bool is_syllabic(char32_t c) const {
    return char_class(c) & kLetter &&
           std::any_of(conjoiners_.begin(), conjoiners_.end(),
                       [&](char32_t sign) { return script_of(sign) == script_of(c); });
  }

  bool holds_a_border() const {
    for (std::size_t i = 1; i < whole_.size(); ++i) {
      if (is_inside_only(whole_[i])) continue;
      const bool is_letter = char_class(whole_[i]) & kLetter;
      // A space goes with the word after it.
      if (joins(i) || (is_letter && i == 1 && whole_[0] == ' ')) {
        continue;
      }
      return true;
    }
    // Bytes of a further character, which is at best in the same syllable as its neighbour.
    return (characters_.begins_inside || characters_.ends_inside) && whole_.size() > 1;
  }

  const std::set<char32_t>& conjoiners_;
  const Characters& characters_;
  const std::vector<char32_t>& whole_;
};

}  // namespace

bool MergeRule::allows(std::string_view product) const {
  if (max_token_bytes != 0 && product.size() > max_token_bytes) return false;
  if (!forbidden.empty() && forbidden.contains(product)) return false;
  if (pieces && !pieces->allows(product)) return false;
  if (max_words != 0 && words_in(product) > max_words) return false;
  if (terminals.empty() && !whole_characters && !whole_first && conjoiners.empty()) {
    return true;
  }
  const Characters characters(product);
  if (whole_characters && (characters.begins_inside || characters.ends_inside)) return false;
  if (whole_first && characters.begins_inside &&
      (characters.ends_inside || !characters.whole.empty())) {
    return false;
  }
  if (!terminals.empty() && std::any_of(characters.whole.begin(), characters.whole.end(),
                                        [&](char32_t c) { return terminals.contains(c); })) {
    return false;
  }
  return conjoiners.empty() || SyllableCheck(conjoiners, characters).allows();
}

}  // namespace vocabshift
