// May this pair ever merge? Permanent per pair and decided on the bytes of the product, so that
// every uncrossed occurrence of a string is segmented alike. Source: SuperBPE's filters; method.md
// section 2.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace vocabshift {

struct MergeRule {
  std::size_t max_token_bytes = 0;  // 0: any length
  std::size_t max_words = 0;        // words between spaces in a product; 0: any number
  std::set<std::string, std::less<>> forbidden = {};  // special tokens: text may not make them

  bool allows(std::string_view product) const {
    if (max_token_bytes != 0 && product.size() > max_token_bytes) return false;
    if (!forbidden.empty() && forbidden.contains(product)) return false;
    if (max_words == 0) return true;
    std::size_t words = 0;
    char before = ' ';
    for (const char c : product) {
      words += before == ' ' && c != ' ';
      before = c;
    }
    return words <= max_words;
  }
};

}  // namespace vocabshift
