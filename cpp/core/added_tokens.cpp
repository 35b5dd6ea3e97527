#include "core/added_tokens.h"

#include <algorithm>

#include "core/unicode.h"
#include "core/utf8.h"

namespace vocabshift {

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens) : nodes_(1) {
  const auto is_text = [](const AddedToken& token) { return token.is_text; };
  if (std::all_of(tokens.begin(), tokens.end(), is_text)) return;
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;  // matches nowhere
    std::uint32_t node = 0;
    for (const char byte : token.content) {
      std::uint32_t child = 0;
      for (const auto& [label, to] : nodes_[node].children) {
        if (label == byte) child = to;
      }
      if (child == 0) {
        child = static_cast<std::uint32_t>(nodes_.size());
        nodes_[node].children.push_back({byte, child});
        nodes_.emplace_back();
      }
      node = child;
    }
    starts_[static_cast<unsigned char>(token.content[0])] = true;
    nodes_[node].token = static_cast<std::int32_t>(tokens_.size());
    tokens_.push_back(token);
  }
  if (std::count(starts_.begin(), starts_.end(), true) == 1) {
    only_start_ =
        static_cast<int>(std::find(starts_.begin(), starts_.end(), true) - starts_.begin());
  }
}

bool AddedTokens::found_in(std::string_view text) const {
  for (std::size_t at = 0; (at = next_start(text, at)) < text.size();) {
    const AddedToken* const found = longest_at(text, at);
    if (found && !found->is_text) return true;
    at += found ? found->content.size() : 1;
  }
  return false;
}

const AddedToken* AddedTokens::longest_at(std::string_view text, std::size_t at) const {
  const AddedToken* longest = nullptr;
  std::uint32_t node = 0;
  for (; at < text.size(); ++at) {
    std::uint32_t child = 0;
    for (const auto& [label, to] : nodes_[node].children) {
      if (label == text[at]) child = to;
    }
    if (child == 0) break;
    node = child;
    if (nodes_[node].token >= 0) longest = &tokens_[static_cast<std::size_t>(nodes_[node].token)];
  }
  return longest;
}

std::size_t AddedTokens::begin_of_space_before(std::string_view text, std::size_t at) {
  while (at > 0) {
    std::size_t lead = at - 1;
    while (lead > 0 && is_continuation_byte(text[lead])) --lead;
    if (!(char_class(decode_utf8(text.data() + lead).code_point) & kSpace)) break;
    at = lead;
  }
  return at;
}

std::size_t AddedTokens::end_of_space_after(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const Decoded next = decode_utf8(text.data() + at);
    if (!(char_class(next.code_point) & kSpace)) break;
    at += next.length;
  }
  return at;
}

}  // namespace vocabshift
