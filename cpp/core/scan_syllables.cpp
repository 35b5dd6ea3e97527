#include "core/scan_syllables.h"

#include <stdexcept>
#include <utility>

namespace vocabshift {

SyllableRules::SyllableRules(const std::vector<std::string>& scripts,
                             const std::vector<char32_t>& linkers,
                             std::vector<std::string> conjuncts) {
  auto tables = std::make_shared<Tables>();
  for (const std::string& script : scripts) {
    std::size_t number = 1;  // 0 is "Unknown"
    while (number < tables::kScriptCount && script != tables::kScriptNames[number]) ++number;
    if (number == tables::kScriptCount) {
      throw std::invalid_argument("there is no script named " + script);
    }
    tables->scripts.set(number);
  }
  for (const char32_t c : linkers) {
    if (c >= 0x110000 || !(char_class(c) & kMark)) {
      throw std::invalid_argument("a sign that joins letters must be a mark");
    }
    tables->linkers.set(c);
  }
  for (const std::string& conjunct : conjuncts) {
    if (conjunct.empty() || first_invalid_utf8(conjunct) != kAllValid) {
      throw std::invalid_argument("a conjunct must be text and not empty");
    }
    const char32_t first = decode_utf8(conjunct.data()).code_point;
    if (!(char_class(first) & kLetter) || !tables->scripts[script_of(first)]) {
      throw std::invalid_argument("a conjunct must begin with a letter of the syllabic scripts");
    }
    tables->conjunct_scripts.set(script_of(first));
  }
  tables->conjuncts = std::move(conjuncts);
  tables_ = std::move(tables);
}

}  // namespace vocabshift
