// What may be a token, SentencePiece's rules and those of merges: the answers of a plain reading,
// character by character; and what may not join is in no piece.
#include "core/merge_rule.h"
#include "core/unicode.h"
#include "fuzz/fuzz.h"

using namespace vocabshift;

namespace {

// Characters that the rules tell apart.
constexpr char32_t kAlphabet[] =
    U" ▁▁ab1२я.、あカー漢한\u0301\u0951\u0915\u0937\u094D\u094D\u093F\u0B95\u0BCD\u1780\u17D2"
    U"\u200C\u200D\U0001F600\t▅\u0964";

std::string take_characters(fuzz::Input& input, std::size_t most) {
  if (input.ConsumeBool()) return fuzz::take_text(input, most);
  std::string text;
  for (std::size_t left = input.ConsumeIntegralInRange<std::size_t>(0, most / 2); left > 0;
       --left) {
    append_utf8(kAlphabet[input.ConsumeIntegralInRange<std::size_t>(0, std::size(kAlphabet) - 2)],
                text);
  }
  return text;
}

std::u32string characters_of(std::string_view text) {
  std::u32string characters;
  for (std::size_t at = 0; at < text.size();) {
    const Decoded decoded = decode_utf8(text.data() + at);
    characters.push_back(decoded.code_point);
    at += decoded.length;
  }
  return characters;
}

std::string_view script_name(char32_t c) { return tables::kScriptNames[script_of(c)]; }

// Which script a character asks of its neighbours: "" for any.
std::string_view script_in_piece(char32_t c, std::string_view before,
                                 const PieceRule::Options& options) {
  if (options.digits.contains(c) && !options.split_by_number) return "";
  const std::string_view script = script_name(c);
  if (c == U'ー' || script == "Hiragana" || script == "Katakana") return "Han";
  return script == "Inherited" ? before : script;
}

bool may_be_piece(const std::u32string& text, const PieceRule::Options& options) {
  if (text.empty() || text.size() > options.max_characters) return false;
  const bool is_run = text.find_first_not_of(PieceRule::kSpace) == text.npos;
  const std::size_t last = text.size() - 1;
  std::string_view before;
  for (std::size_t i = 0; i <= last; ++i) {
    if (options.never.contains(text[i])) return false;
    if (text[i] == PieceRule::kSpace) {
      if (options.space_runs && is_run) continue;
      const bool is_at_border = i == (options.space_is_suffix ? last : 0);
      const bool is_at_other = i == (options.space_is_suffix ? 0 : last);
      if (!is_at_border && (options.split_by_space || is_at_other)) return false;
      continue;
    }
    if (options.split_digits && options.digits.contains(text[i]) && last > 0) return false;
    const std::string_view script = script_in_piece(text[i], before, options);
    if (options.split_by_script && !script.empty() && !before.empty() && script != before) {
      return false;
    }
    before = script;
  }
  return true;
}

bool is_mark_or_joiner(char32_t c) {
  return char_class(c) & kMark || c == U'\u200C' || c == U'\u200D';
}
bool is_letter(char32_t c) { return char_class(c) & kLetter; }

// Syllables: a letter goes with what is before it where a conjoiner joins them.
struct Syllables {
  const std::set<char32_t>& conjoiners;

  bool is_syllabic(char32_t c) const {
    for (const char32_t sign : conjoiners) {
      if (is_letter(c) && script_name(sign) == script_name(c)) return true;
    }
    return false;
  }

  // What the last conjoiner of a text joins to a letter after it.
  std::optional<std::u32string> conjoined(std::u32string before) const {
    if (!before.empty() && before.back() == U'\u200D') before.pop_back();
    if (before.empty() || !conjoiners.contains(before.back())) return std::nullopt;
    while (!before.empty() && is_mark_or_joiner(before.back())) before.pop_back();
    return before.empty() ? before : before.substr(before.size() - 1);
  }

  bool is_open(const std::u32string& text) const {
    const auto letter = conjoined(text);
    return letter && (letter->empty() || is_letter(letter->front()));
  }

  std::size_t count(const std::u32string& text) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto other = conjoined(text.substr(0, i));
      const bool joins =
          is_syllabic(text[i]) && other && (other->empty() || is_syllabic(other->front()));
      const bool follows_space = i == 1 && text[0] == U' ' && is_letter(text[i]);
      found += i == 0 || !(is_mark_or_joiner(text[i]) || joins || follows_space);
    }
    return found;
  }
};

std::size_t words_in(std::string_view text) {
  std::size_t words = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    words += text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
  }
  return words;
}

bool may_be_made(std::string_view product, const MergeRule& rule) {
  std::size_t begin = 0, end = product.size();
  while (begin < end && is_continuation_byte(product[begin])) ++begin;
  while (first_invalid_utf8(product.substr(begin, end - begin)) != kAllValid) --end;
  const bool begins_inside = begin > 0, ends_inside = end < product.size();
  const std::u32string text = characters_of(product.substr(begin, end - begin));
  if (rule.max_token_bytes && product.size() > rule.max_token_bytes) return false;
  if (rule.max_words && words_in(product) > rule.max_words) return false;
  if (rule.forbidden.contains(std::string(product))) return false;
  for (const char32_t c : text) {
    if (rule.terminals.contains(c)) return false;
  }
  if (rule.whole_characters && (begins_inside || ends_inside)) return false;
  if (rule.whole_first && begins_inside && (ends_inside || !text.empty())) return false;
  const Syllables syllables{rule.conjoiners};
  const bool has_more = text.size() > 1 && (begins_inside || ends_inside);
  if (rule.conjoiners.empty() || syllables.count(text) + has_more < 2) return true;
  return !begins_inside && !ends_inside && !is_mark_or_joiner(text[0]) && !syllables.is_open(text);
}

void check_pieces(fuzz::Input& input) {
  PieceRule::Options options;
  options.max_characters = input.ConsumeIntegralInRange<std::size_t>(0, 16);
  for (bool* flag : {&options.split_by_script, &options.split_by_number, &options.split_digits,
                     &options.split_by_space, &options.space_is_suffix, &options.space_runs}) {
    *flag = input.ConsumeBool();
  }
  if (input.ConsumeBool()) options.digits = {U'1', U'२', U'3'};
  if (input.ConsumeBool()) options.never = {U'\t', U'▅'};
  const PieceRule rule(options);
  MergeRule merging;
  merging.pieces = rule;
  std::string parts[4];  // the two in the middle are looked at
  for (std::string& part : parts) part = take_characters(input, 20);
  const std::string& left = parts[1];
  const std::string& right = parts[2];
  for (const std::string& text : {left, right, left + right}) {
    const fuzz::Exact own(text);
    const bool expected = may_be_piece(characters_of(text), options);
    fuzz::require(rule.allows(own) == expected, "a piece is what a plain reading allows");
    fuzz::require(merging.allows(own) == expected, "and so is a product");
  }
  if (left.empty() || right.empty()) return;
  const PieceShape both = rule.join(rule.shape_of(left), rule.shape_of(right));
  fuzz::require(both.is_possible == rule.shape_of(left + right).is_possible,
                "shapes join as their texts do");
  const bool is_whole = rule.allows(parts[0] + left + right + parts[3]);
  fuzz::require(both.is_possible || !is_whole, "what may not join is in no piece");
  const std::string broken = input.ConsumeRandomLengthString(8);
  if (first_invalid_utf8(broken) != kAllValid) {
    fuzz::require(!rule.allows(broken), "a piece is UTF-8");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  if (input.ConsumeBool()) {
    check_pieces(input);
    return 0;
  }
  const MergeRule rule = fuzz::take_rule(input);
  const std::string text = take_characters(input, 40);
  if (text.empty()) return 0;
  const std::size_t begin = input.ConsumeIntegralInRange<std::size_t>(0, text.size() - 1);
  const std::size_t end = input.ConsumeIntegralInRange(begin + 1, text.size());
  const fuzz::Exact product(std::string_view(text).substr(begin, end - begin));
  fuzz::require(rule.allows(product) == may_be_made(product, rule),
                "a product is what a plain reading allows");
  return 0;
}
