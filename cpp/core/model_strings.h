// A BPE model as tokenizer.json spells it: token strings with their ids, and merges of strings.
//
// Owns the soundness of the three together: strings and ids are distinct, and both parts and the
// product of every merge are tokens. Merges become numbers here, once, in one pass over their
// strings; what is wrong with a model that is not sound is for the caller to find out. Knows
// nothing of JSON; a continuing prefix (WordPiece's "##") is none of its business either.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/encode.h"
#include "core/types.h"

namespace vocabshift {

class ModelStrings {
 public:
  using Index = std::uint32_t;  // of a token, in the order they were added
  struct Merge {
    Index left, right, product;
  };

  // All tokens come before the first merge. Strings are UTF-8 of any content and copied.
  void add_token(std::string_view token, TokenId id);
  void add_merge(std::string_view left, std::string_view right);
  // The same of a model that was just trained: bytes, which GPT-2's images spell, and their merges.
  void add_image(std::string_view bytes, TokenId id);
  void add_merge(const Merge& merge) { merges_.push_back(merge); }
  // To be called when all is added: whether the model is sound, with no id above `max_id`.
  bool finish(TokenId max_id);

  std::size_t size() const { return ids_.size(); }
  std::string_view operator[](Index i) const {
    return std::string_view(bytes_).substr(begins_[i], begins_[i + 1] - begins_[i]);
  }
  TokenId id(Index i) const { return ids_[i]; }
  const std::vector<TokenId>& ids() const { return ids_; }
  // The id of a token, of sound strings.
  std::optional<TokenId> find(std::string_view token) const;
  const std::vector<Merge>& merges() const { return merges_; }

  // Indices in the order of the ids, which may have holes.
  std::vector<Index> by_id() const;
  // The same with more tokens, at its end, and more merges, after its own or before them; not
  // finished.
  using Texts = std::vector<std::pair<std::string_view, std::string_view>>;
  ModelStrings extended(const std::vector<std::pair<std::string_view, TokenId>>& tokens,
                        const Texts& merges, bool merges_first) const;
  // Which of these pairs are merges.
  std::vector<bool> are_merges(const Texts& pairs) const;

  // Tokens and merges as the encoder takes them; the strings of a byte-level model are GPT-2's
  // images of bytes, and one that is no image becomes bytes that no text holds.
  EncoderModel encoder_model(bool byte_level) const;

 private:
  struct Waiting {  // a merge in `waiting_bytes_`: its parts lie side by side, as in its product
    std::size_t begin, border, end;
  };
  static constexpr std::size_t kBatch = 32;  // merges looked up at once
  static constexpr Index kNone = 0xFFFFFFFFu;
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};

  void index_tokens();
  void look_up_waiting();
  Index find(std::string_view token, std::uint64_t hash) const;

  std::string bytes_;
  std::vector<std::size_t> begins_{0};
  std::vector<TokenId> ids_;
  std::vector<Merge> merges_;
  std::vector<std::uint64_t> slots_;  // upper half: of the hash; lower half: an Index
  Index last_product_ = kNone;
  std::string waiting_bytes_;
  std::vector<Waiting> waiting_;
  bool sound_ = true;
};

}  // namespace vocabshift
