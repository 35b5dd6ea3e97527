#include "core/pre_tokenize.h"

#include <stdexcept>

namespace vocabshift {

SentencePolicy::SentencePolicy(const std::vector<char32_t>& terminals, bool period)
    : period_(period) {
  if (terminals.empty()) return;
  auto set = std::make_shared<std::bitset<0x110000>>();
  for (const char32_t c : terminals) {
    if (c <= 0x20 || c >= 0x110000 || char_class(c) != 0) {
      throw std::invalid_argument(
          "a sentence terminal may not be a letter, mark, number, space or control character");
    }
    set->set(c);
  }
  terminals_ = std::move(set);
}

}  // namespace vocabshift
