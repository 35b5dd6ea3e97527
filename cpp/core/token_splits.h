// Of which two tokens each token can be made.
#pragma once

#include <string_view>
#include <vector>

#include "core/types.h"

namespace vocabshift {

struct TokenSplits {
  std::vector<TokenId> products;  // ascending; of one product the shorter left part comes first
  std::vector<TokenId> lefts;
  std::vector<TokenId> rights;
};

// Every way to cut a token into two of the tokens. If tokens are equal, the first one counts.
TokenSplits split_tokens(const std::vector<std::string_view>& tokens);

}  // namespace vocabshift
