// Byte-pair encoding in linear time, for models whose merges form trees.
//
// A token that merges can make at all is made in one way only: by what encoding its own bytes does
// last (no merge inside a token can see what stands around it). Of several merges with one product
// the others never happen. Where every such last merge joins tokens that are made by earlier
// merges, text t1 t2 … tn is encoded so exactly if every neighbouring pair t1 t2 is: and whether a
// pair is follows from undoing its merges from the last one back, looking for one that would
// have joined the two sides first. So the encoding is found by trying the longest token at each
// place, then shorter ones, going back where none fits. Source: "So many tokens, so little time"
// (github/rust-gems, crate bpe); tests hold it equal to merge_by_rank.
//
// Owns whether a model is of this kind, and encoding with it. What is not is left to merge_by_rank:
// models with too many merges that come before a part of theirs is made (`usable` is false), and,
// where there are few (Llama-3 has 125), the texts that spell such a merge (`fits` is false).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/big_memory.h"
#include "core/hash.h"
#include "core/merge_table.h"
#include "core/sure_borders.h"
#include "core/types.h"

namespace vocabshift {

class MergeTree {
 public:
  // Room to work, kept between calls.
  struct Scratch {
    std::vector<std::uint32_t> tokens;
    std::vector<std::uint64_t> closed;  // bits: no encoding goes on from here
    std::vector<std::uint64_t> pairs;   // by hash: two tokens, and whether they may be neighbours
  };

  MergeTree() = default;  // not usable
  // Of the first `limit` merges. `byte_ids`: the ids of the 256 bytes; `table`: all merges, which
  // says which rank counts of a pair that is listed twice: the later.
  MergeTree(const std::array<TokenId, 256>& byte_ids, const std::vector<ModelMerge>& merges,
            std::size_t limit, const MergeTable& table);

  bool usable() const { return usable_; }
  // Whether `text` may be encoded here.
  bool fits(std::string_view text) const;
  // Whether merges make the token.
  bool makes(TokenId id) const { return id < made_.size() && made_[id]; }

  // Appends the ids of `text` (any bytes), which fits.
  void encode(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const;
  // The same for one that is given as its bytes and sure pairs, at most SureBorders::kMost.
  void encode(const SureBorders::Known* known, std::size_t count, std::vector<TokenId>& out) const;

 private:
  // Tokens are numbered in the order they are made: bytes first, then merges by rank.
  using Number = std::uint32_t;
  static constexpr Number kNone = 0xFFFFFFFFu;
  static constexpr unsigned kBits = 21;  // of a number; three and a mark fill a slot of pairs_

  // Of the trie of all tokens. Children lie side by side, by byte, and the first child's children
  // follow: what has no branches is read from one cache line.
  struct Node {
    Number longest;  // token on the way to this node, or kNone
    std::uint32_t first_child;
    std::uint16_t children;
    std::uint8_t byte;
  };

  Number product_of(Number left, Number right) const {
    const std::uint64_t key = static_cast<std::uint64_t>(left) << kBits | right;
    const std::uint64_t hash = hash_pair(key);
    const std::size_t bit = hash >> 32 & filter_mask_;
    if (!(filter_[bit / 64] >> bit % 64 & 1)) return kNone;
    for (std::size_t at = hash & pair_mask_;; at = (at + 1) & pair_mask_) {
      const std::uint64_t slot = pairs_[at];
      if (slot >> kBits == key) return static_cast<Number>(slot & ((1u << kBits) - 1));
      if (slot == kFree) return kNone;
    }
  }
  void merge_short(std::string_view text, std::vector<TokenId>& out) const;
  template <std::size_t kMost>
  void merge_few(std::array<Number, kMost>& tokens, std::size_t count,
                 std::array<Number, kMost>& products, std::vector<TokenId>& out) const;
  void encode_windows(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const;
  std::span<const Number> search(std::string_view text, Scratch& scratch) const;
  std::size_t length(Number token) const { return begins_[token + 1] - begins_[token]; }
  bool stand_side_by_side(Number left, Number right) const;
  const Node* child_of(const Node& node, unsigned char byte) const;
  Number longest_at(std::string_view text, std::size_t at) const;

  bool accept_merges(const std::vector<ModelMerge>& merges, std::size_t limit,
                     const MergeTable& table);
  void accept(Number left, Number right, TokenId product);
  std::string_view bytes_of(Number token) const {
    return std::string_view(bytes_).substr(begins_[token], length(token));
  }
  static std::size_t begin_hash(std::uint64_t begin) {
    return mix(begin ^ kSeed0, kSeed1) % kMisfitBits;
  }
  bool begins_misfit(std::string_view text, std::uint64_t begin) const;
  bool spells(Number token, Number left, Number right) const;
  void note_misfit(Number left, Number right);
  void build_trie();
  std::vector<Number> by_bytes() const;

  static constexpr std::size_t kShort = 14;  // bytes of a text that is merged step by step
  static constexpr std::size_t kPairs = std::size_t{1} << 15;  // that are remembered
  // Bytes of a text from which on pairs of neighbours are remembered; of a window of a longer one;
  // and at a window's end, where more text may change the tokens.
  static constexpr std::size_t kRemembering = 64, kWindow = 4096, kUnsure = 256;
  static constexpr std::size_t kMostMisfits = 1024;
  static constexpr std::size_t kMisfitBits = std::size_t{1} << 14;
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  bool usable_ = false;
  std::vector<bool> made_;           // by id
  BigVector<std::uint64_t> pairs_;   // left, right, product
  BigVector<std::uint64_t> filter_;  // bits: false where pairs_ cannot hold the pair
  std::size_t pair_mask_ = 0, filter_mask_ = 0;
  std::vector<TokenId> ids_;                  // by number, as the next three
  std::vector<std::array<Number, 2>> parts_;  // of bytes: themselves
  std::vector<std::uint32_t> begins_{0};      // in bytes_, and the end of the last
  std::vector<Number> shorter_;               // the longest token that it begins with, or kNone
  std::vector<std::string> misfits_;          // spellings of merges that are out of order
  std::size_t misfit_begin_ = 8;              // bytes of them that the next tells apart
  std::uint64_t misfit_mask_ = 0;             // … as a mask of a loaded word
  std::vector<bool> misfit_begins_;           // by hash
  std::string bytes_;                         // of all tokens, while the trie is built
  BigVector<Node> nodes_;                     // the first 256 are those of the bytes
  std::vector<std::uint8_t> labels_;          // by node: its byte once more, to be searched
  std::vector<std::uint32_t> by_two_bytes_;   // the node of two bytes, or 0
  std::vector<Number> byte_pairs_;            // the product of two bytes, or kNone
};

}  // namespace vocabshift
