// The tokens that a counted word begins with, before training's own merges: its bytes, what an
// encoder makes of it, or the ids that it is (token_groups.h).
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/encode.h"
#include "core/stop.h"
#include "core/token_groups.h"
#include "core/types.h"
#include "core/vocabulary.h"

namespace vocabshift {

class Segmenter {
 public:
  // With an encoder its ids are taken as they are; without one `bytes` begins with the 256 bytes.
  Segmenter(const Vocabulary& bytes, const Encoder* encoder) : encoder_(encoder) {
    if (encoder) {
      scratch_ = std::make_unique<Encoder::Scratch>(*encoder);
    } else {
      for (TokenId id = 0; id < 256; ++id) ids_[static_cast<unsigned char>(bytes[id][0])] = id;
    }
  }

  // Words are groups of ids below `vocab_size`; std::invalid_argument for others.
  explicit Segmenter(std::size_t vocab_size)
      : encoder_(nullptr), are_groups_(true), vocab_size_(vocab_size) {}

  // Valid until the next call.
  std::span<const TokenId> operator()(std::string_view word) {
    tokens_.clear();
    if (encoder_) {
      encoder_->encode_piece(word, *scratch_, tokens_);
      encoder_->flush(*scratch_, tokens_);
    } else if (are_groups_) {
      read_group(word, vocab_size_, tokens_);
    } else {
      tokens_.reserve(word.size());
      while (tokens_.size() < word.size()) {
        const std::string_view part = word.substr(tokens_.size(), kPart);
        const std::size_t begin = tokens_.size();
        tokens_.resize(begin + part.size());
        std::transform(part.begin(), part.end(), tokens_.data() + begin,
                       [&](char byte) { return ids_[static_cast<unsigned char>(byte)]; });
        may_stop(part.size());
      }
    }
    return tokens_;
  }

  // How many they are.
  std::size_t count(std::string_view word) {
    return encoder_ || are_groups_ ? (*this)(word).size() : word.size();
  }

 private:
  static constexpr std::size_t kPart = 1 << 14;  // bytes, after which it may be stopped

  const Encoder* encoder_;
  bool are_groups_ = false;
  std::size_t vocab_size_ = 0;  // of the ids in groups
  std::unique_ptr<Encoder::Scratch> scratch_;
  std::array<TokenId, 256> ids_{};
  std::vector<TokenId> tokens_;
};

}  // namespace vocabshift
