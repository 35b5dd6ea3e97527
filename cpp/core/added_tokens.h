// Added tokens (special tokens and others): cut out of the text before the model sees it, the
// leftmost first and the longest of those. Source: AddedVocabulary of `tokenizers`.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace vocabshift {

struct AddedToken {
  std::string content;
  TokenId id;
  bool lstrip;           // takes the whitespace before it too
  bool rstrip;           // and after it
  bool is_text = false;  // found like the others, so that none begins inside it, but left as it is
};

class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(const std::vector<AddedToken>& tokens);

  bool empty() const { return tokens_.empty(); }

  // Whether some token stands in the text.
  bool found_in(std::string_view text) const;

  // Calls text_part(std::string_view) and token(TokenId, std::string_view) in text order; empty
  // parts are not reported.
  template <class TextPart, class Token>
  void split(std::string_view text, TextPart&& text_part, Token&& token) const {
    std::size_t done = 0;
    for (std::size_t at = 0; (at = next_start(text, at)) < text.size();) {
      const AddedToken* const found = longest_at(text, at);
      if (!found) {
        ++at;
        continue;
      }
      std::size_t begin = at;
      std::size_t end = at + found->content.size();
      at = end;
      if (found->is_text) continue;
      if (found->lstrip) begin = std::max(done, begin_of_space_before(text, begin));
      if (found->rstrip) end = end_of_space_after(text, end);
      if (begin >= end) continue;  // the token before it took all of it as whitespace
      if (done < begin) text_part(text.substr(done, begin - done));
      token(found->id, text.substr(begin, end - begin));
      done = end;
    }
    if (done < text.size()) text_part(text.substr(done));
  }

 private:
  struct Node {
    std::vector<std::pair<char, std::uint32_t>> children;
    std::int32_t token = -1;  // index into tokens_ of the token that ends here
  };

  // Where a token may begin next, at or after `at`; the end of the text, if nowhere.
  std::size_t next_start(std::string_view text, std::size_t at) const {
    if (only_start_ >= 0) {  // "<" nearly always
      const void* const found =
          at < text.size() ? std::memchr(text.data() + at, only_start_, text.size() - at) : nullptr;
      return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data())
                   : text.size();
    }
    while (at < text.size() && !starts_[static_cast<unsigned char>(text[at])]) ++at;
    return at;
  }
  const AddedToken* longest_at(std::string_view text, std::size_t at) const;
  static std::size_t begin_of_space_before(std::string_view text, std::size_t at);
  static std::size_t end_of_space_after(std::string_view text, std::size_t at);

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;         // a trie; node 0 is its root
  std::array<bool, 256> starts_{};  // bytes that begin some token
  int only_start_ = -1;             // the one such byte, if there are no others
};

}  // namespace vocabshift
