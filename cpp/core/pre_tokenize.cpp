#include "core/pre_tokenize.h"

#include <stdexcept>

namespace vocabshift {

namespace {

unsigned char first_byte_of(char32_t c) {
  return static_cast<unsigned char>(c < 0x80      ? c
                                    : c < 0x800   ? 0xC0 | c >> 6
                                    : c < 0x10000 ? 0xE0 | c >> 12
                                                  : 0xF0 | c >> 18);
}

}  // namespace

SentencePolicy::SentencePolicy(const std::vector<char32_t>& terminals, bool period)
    : period_(period) {
  if (period) first_bytes_['.'] = true;
  if (terminals.empty()) return;
  auto set = std::make_shared<std::bitset<0x110000>>();
  for (const char32_t c : terminals) {
    if (c <= 0x20 || c >= 0x110000 || char_class(c) != 0) {
      throw std::invalid_argument(
          "a sentence terminal may not be a letter, mark, number, space or control character");
    }
    set->set(c);
    first_bytes_[first_byte_of(c)] = true;
  }
  terminals_ = std::move(set);
}

CharacterRuns::CharacterRuns(std::uint8_t bits,
                             const std::vector<std::pair<char32_t, char32_t>>& ranges,
                             std::size_t longest, Cut cut)
    : longest_(longest == 0 ? static_cast<std::size_t>(-1) : longest), cut_(cut) {
  auto set = std::make_shared<std::bitset<0x110000>>();
  const auto add = [&](char32_t c) {
    set->set(c);
    first_bytes_[first_byte_of(c)] = true;
  };
  for (char32_t c = 0; bits != 0 && c < 0x110000; ++c) {
    if (class_bits(c) & bits) add(c);
  }
  for (const auto& [first, last] : ranges) {
    if (first > last || last >= 0x110000) throw std::invalid_argument("not a range of characters");
    for (char32_t c = first; c <= last; ++c) add(c);
  }
  for (int byte = 0; byte < 0x80; ++byte) {
    if (!first_bytes_[byte]) continue;
    if (byte == 0 || !first_bytes_[byte - 1]) ascii_.push_back({static_cast<signed char>(byte), 0});
    ascii_.back().last = static_cast<signed char>(byte);
  }
  for (int byte = 0xFF; byte >= 0x80; --byte) {
    if (!first_bytes_[byte]) continue;
    if (leads_.first == 0) leads_.last = static_cast<signed char>(byte);
    leads_.first = static_cast<signed char>(byte);
  }
  set_ = std::move(set);
}

}  // namespace vocabshift
