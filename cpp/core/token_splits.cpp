#include "core/token_splits.h"

#include <unordered_map>

#include "core/stop.h"

namespace vocabshift {

TokenSplits split_tokens(const std::vector<std::string_view>& tokens) {
  std::unordered_map<std::string_view, TokenId> ids;
  ids.reserve(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    may_stop(tokens[id].size() + 16);
    ids.emplace(tokens[id], static_cast<TokenId>(id));
  }
  TokenSplits found;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      may_stop(token.size() + 16);
      const auto left = ids.find(token.substr(0, cut));
      if (left == ids.end()) continue;
      const auto right = ids.find(token.substr(cut));
      if (right == ids.end()) continue;
      found.products.push_back(static_cast<TokenId>(id));
      found.lefts.push_back(left->second);
      found.rights.push_back(right->second);
    }
  }
  return found;
}

}  // namespace vocabshift
