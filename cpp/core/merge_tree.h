// Byte-pair encoding in linear time, for models whose merges form trees.
//
// A token that merges can make at all is made in one way only: by what encoding its own bytes does
// last (no merge inside a token can see what stands around it). Of several merges with one product
// the others never happen. Where every such last merge joins tokens that are made by earlier
// merges, text t1 t2 … tn is encoded so exactly if every neighbouring pair t1 t2 is: and whether a
// pair is can be told by undoing its merges from the last one back, looking for one that would
// have joined the two sides first. So the encoding is found by trying the longest token at each
// place, then shorter ones, going back where none fits. Source: "So many tokens, so little time"
// (github/rust-gems, crate bpe); tests hold it equal to merge_by_rank.
//
// Owns whether a model is of this kind, and encoding with it. A model that is not (`usable` false)
// is left to merge_by_rank.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/big_memory.h"
#include "core/hash.h"
#include "core/merge_table.h"
#include "core/types.h"

namespace vocabshift {

class MergeTree {
 public:
  // Room to work, kept between calls.
  struct Scratch {
    std::vector<std::uint32_t> tokens;
    std::vector<std::uint64_t> closed;  // bits: no encoding goes on from here
  };

  MergeTree() = default;  // not usable
  // Of the first `limit` merges. `byte_ids`: the ids of the 256 bytes; `table`: all merges, which
  // tells of a pair that is listed twice that its later rank counts.
  MergeTree(const std::array<TokenId, 256>& byte_ids, const std::vector<ModelMerge>& merges,
            std::size_t limit, const MergeTable& table);

  bool usable() const { return usable_; }

  // Appends the ids of `text` (any bytes).
  void encode(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const;

 private:
  // Tokens are numbered in the order they are made: bytes first, then merges by rank.
  using Number = std::uint32_t;
  static constexpr Number kNone = 0xFFFFFFFFu;
  static constexpr unsigned kBits = 21;  // of a number; three and a mark fill a slot of pairs_

  struct Edge {
    std::uint32_t key;  // node << 8 | byte
    std::uint32_t child;
  };

  Number product_of(Number left, Number right) const {
    const std::uint64_t key = static_cast<std::uint64_t>(left) << kBits | right;
    for (std::size_t at = hash_pair(key) & pair_mask_;; at = (at + 1) & pair_mask_) {
      const std::uint64_t slot = pairs_[at];
      if (slot >> kBits == key) return static_cast<Number>(slot & ((1u << kBits) - 1));
      if (slot == kFree) return kNone;
    }
  }
  std::size_t length(Number token) const { return begins_[token + 1] - begins_[token]; }
  bool stand_side_by_side(Number left, Number right) const;
  std::size_t edge_slot(std::uint32_t key) const;
  Number longest_at(std::string_view text, std::size_t at) const;

  std::vector<Number> accept_merges(const std::vector<ModelMerge>& merges, std::size_t limit,
                                    const MergeTable& table);
  void accept(Number left, Number right, TokenId product);
  std::uint32_t child_made(std::uint32_t node, unsigned char byte);
  std::string_view bytes_of(Number token) const {
    return std::string_view(bytes_).substr(begins_[token], length(token));
  }
  bool spells(Number token, Number left, Number right) const;
  void find_shorter();

  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  static constexpr std::uint32_t kNoKey = 0xFFFFFFFFu;
  bool usable_ = false;
  BigVector<std::uint64_t> pairs_;  // left, right, product
  std::size_t pair_mask_ = 0;
  std::vector<TokenId> ids_;                  // by number, as the next four
  std::vector<std::array<Number, 2>> parts_;  // of bytes: themselves
  std::vector<std::uint32_t> begins_{0};      // into bytes_, and the end of the last
  std::vector<Number> shorter_;               // the longest token that it begins with, or kNone
  std::vector<std::uint32_t> nodes_;          // in the trie of all tokens, while it is built
  std::vector<Number> longest_;               // by node: the longest token on the way to it
  std::vector<std::uint32_t> parents_;        // by node, while the trie is built
  std::string bytes_;                         // likewise
  BigVector<Edge> edges_;                     // of the trie, by hash
  std::size_t edge_mask_ = 0;
};

}  // namespace vocabshift
