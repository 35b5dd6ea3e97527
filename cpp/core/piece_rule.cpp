#include "core/piece_rule.h"

#include <utility>

#include "core/unicode.h"
#include "core/utf8.h"

namespace vocabshift {

namespace {

constexpr char32_t kProlongedSoundMark = 0x30FC;  // of both kana; Unicode gives it to no script

std::uint8_t script_number(std::string_view name) {
  std::size_t number = 0;
  while (number < tables::kScriptCount && name != tables::kScriptNames[number]) ++number;
  return static_cast<std::uint8_t>(number);
}

}  // namespace

PieceRule::PieceRule(Options options)
    : options_(std::move(options)),
      hiragana_(script_number("Hiragana")),
      katakana_(script_number("Katakana")),
      inherited_(script_number("Inherited")) {}

PieceShape PieceRule::shape_of(char32_t c) const {
  PieceShape shape;
  shape.characters = 1;
  shape.is_possible = !options_.never.contains(c);
  shape.is_space = shape.has_space = c == kSpace;
  shape.begins_with_space = shape.ends_with_space = shape.is_space;
  if (shape.is_space) return shape;
  const bool is_digit = options_.digits.contains(c);
  shape.is_alone = options_.split_digits && is_digit;
  if (!options_.split_by_script) return shape;
  std::uint8_t script = script_of(c);
  // Japanese mixes its scripts inside words.
  if (script == hiragana_ || script == katakana_ || c == kProlongedSoundMark) {
    script = tables::kScriptHan;
  } else if (script == inherited_) {
    script = PieceShape::kSeeThrough;  // a mark is of the script of what it stands on
  }
  if (!options_.split_by_number && is_digit) script = PieceShape::kAny;
  shape.first_script = shape.last_script = script;
  return shape;
}

bool PieceRule::spaces_fit(const PieceShape& left, const PieceShape& right) const {
  if (options_.space_runs && left.is_space && right.is_space) return true;
  if (!options_.split_by_space) return true;  // the ends are looked at when all is there
  const PieceShape& inner = options_.space_is_suffix ? left : right;
  const PieceShape& outer = options_.space_is_suffix ? right : left;
  return !inner.has_space && !(outer.is_space && outer.characters > 1);
}

PieceShape PieceRule::join(const PieceShape& left, const PieceShape& right) const {
  if (left.characters == 0 && left.is_possible) return right;
  if (right.characters == 0 && right.is_possible) return left;
  constexpr std::uint8_t kNone = PieceShape::kAny;  // and above: no script that could differ
  PieceShape joined;
  joined.characters = left.characters + right.characters;
  joined.first_script =
      left.first_script == PieceShape::kSeeThrough ? right.first_script : left.first_script;
  joined.last_script =
      right.last_script == PieceShape::kSeeThrough ? left.last_script : right.last_script;
  joined.is_space = left.is_space && right.is_space;
  joined.has_space = left.has_space || right.has_space;
  joined.begins_with_space = left.begins_with_space;
  joined.ends_with_space = right.ends_with_space;
  const bool scripts_differ = left.last_script < kNone && right.first_script < kNone &&
                              left.last_script != right.first_script;
  joined.is_possible = left.is_possible && right.is_possible && !left.is_alone && !right.is_alone &&
                       joined.characters <= options_.max_characters && !scripts_differ &&
                       spaces_fit(left, right);
  return joined;
}

PieceShape PieceRule::shape_of(std::string_view text) const {
  PieceShape shape;
  if (first_invalid_utf8(text) != kAllValid) {
    shape.is_possible = false;
    return shape;
  }
  for (std::size_t at = 0; at < text.size();) {
    const Decoded decoded = decode_utf8(text.data() + at);
    shape = join(shape, shape_of(decoded.code_point));
    at += decoded.length;
  }
  return shape;
}

bool PieceRule::allows(std::string_view text) const {
  const PieceShape shape = shape_of(text);
  if (!shape.is_possible || shape.characters == 0 || shape.characters > options_.max_characters) {
    return false;
  }
  if (options_.split_by_space || shape.characters == 1) return true;
  if (options_.space_runs && shape.is_space) return true;
  return options_.space_is_suffix ? !shape.begins_with_space : !shape.ends_with_space;
}

}  // namespace vocabshift
