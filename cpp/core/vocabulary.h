// Tokens as byte strings, numbered from 0 in the order they were added.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "core/types.h"

namespace vocabshift {

class Vocabulary {
 public:
  Vocabulary() = default;
  // Of all tokens' bytes, one after the other, and where each begins, with the end of the last.
  Vocabulary(std::string bytes, std::vector<std::size_t> begins);

  TokenId add(std::string_view bytes);
  std::string_view operator[](TokenId id) const {
    return std::string_view(bytes_).substr(begins_[id], begins_[id + 1] - begins_[id]);
  }
  // The first token with these bytes, or kNoToken.
  TokenId find(std::string_view bytes) const;
  TokenId size() const { return static_cast<TokenId>(begins_.size() - 1); }

 private:
  void index(std::size_t slots);

  std::string bytes_;
  std::vector<std::size_t> begins_{0};  // size() + 1 offsets into bytes_
  std::vector<TokenId> slots_;          // open addressing over the bytes' hash
};

// The 256 single bytes in the order in which `tokenizers` numbers them: by the code point of
// their byte-level image (printable bytes first; the space comes after 0xFF).
Vocabulary byte_vocabulary();

}  // namespace vocabshift
