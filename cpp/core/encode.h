// The encoder: pieces of text -> token ids, exactly as the BPE model of `tokenizers`.
//
// Owns initial symbols, merging by rank, merge skipping and the cache of words. A piece may be a
// whole sentence (superword tokenizers): then words are encoded from the cache with the ranks that
// cannot reach across a space, and the short sequence of tokens is merged with all ranks. Source:
// method.md section 5.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/big_memory.h"
#include "core/hash.h"
#include "core/merge_by_rank.h"
#include "core/types.h"
#include "core/vocabulary.h"
#include "core/word_cutter.h"

namespace vocabshift {

// What the encoder is made from. Token strings are bytes: for a byte-level model the bytes a token
// stands for, otherwise its UTF-8 text as the vocabulary spells it.
struct EncoderModel {
  struct Merge {
    TokenId left, right, product;
  };
  std::vector<std::pair<std::string, TokenId>> tokens;
  std::vector<Merge> merges;  // by rank
  bool byte_level = true;     // symbols are bytes; otherwise characters
  bool ignore_merges = false;
  bool byte_fallback = false;  // an unknown character becomes its <0xNN> tokens
  TokenId unk = kNoToken;      // without it unknown symbols are dropped, as `tokenizers` does
  bool fuse_unk = false;
  std::string space = " ";  // what stands for a space inside pieces ("▁" with metaspace)
};

class Encoder {
 public:
  // Per-thread state: the word cache and room to work. Never influences a result.
  class Scratch {
   public:
    Scratch();

   private:
    friend class Encoder;
    static constexpr std::size_t kCachedBytes = 53;
    static constexpr std::size_t kCachedTokens = 16;
    struct CacheSlot {  // two cache lines: what is compared, and what is copied
      std::uint64_t hash;
      std::uint8_t length;  // of the word in bytes; 0: empty
      std::uint8_t tokens;
      bool is_piece;  // the word was a whole piece: merge skipping applied
      char bytes[kCachedBytes];
      TokenId ids[kCachedTokens];
    };
    static_assert(sizeof(CacheSlot) == 128);
    struct Word {  // of the pieces waiting to be encoded
      std::string_view text;
      std::uint64_t hash;
      bool is_piece;  // the whole of its piece
      bool ends_piece;
    };
    static constexpr std::size_t kWaiting = 32;
    BigVector<CacheSlot> cache_;
    std::vector<Word> waiting_;
    std::vector<TokenId> ids_;
    MergeScratch merging_;
  };

  explicit Encoder(const EncoderModel& model);

  // Appends the ids of one piece (valid UTF-8) to `out`, now or at the next flush: the memory that
  // its words need in the cache is asked for first, and used when some more pieces wait. The piece
  // must live until then.
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;
  void flush(Scratch& scratch, std::vector<TokenId>& out) const;

  // Whether merges alone rebuild the token `id` from its spelling (STT: "Teaching Old Tokenizers
  // New Words", section 3): no merge skipping, no cache. `spelling` need not be whole UTF-8 for a
  // byte-level model.
  bool rebuilds(std::string_view spelling, TokenId id, Scratch& scratch) const;

  // Initial symbols of a text, before any merge.
  void symbols_of(std::string_view text, std::vector<TokenId>& out) const;

 private:
  bool may_lose_symbols(const EncoderModel& model) const;
  void split_off_late_merges(const EncoderModel& model);
  void encode_word(const Scratch::Word& word, Scratch& scratch, std::vector<TokenId>& out) const;
  void encode_word_uncached(std::string_view word, bool is_piece, Scratch& scratch,
                            std::vector<TokenId>& out) const;
  TokenId id_of(std::string_view text) const;  // kNoToken where no token is spelt so

  Vocabulary strings_;        // token strings, in the order of EncoderModel::tokens
  std::vector<TokenId> ids_;  // their ids
  MergeTable merges_;
  MergeTable late_merges_;             // all that can happen once the words of a piece are encoded
  std::array<TokenId, 256> byte_ids_;  // byte-level: ids of bytes; else of their <0xNN> pieces
  bool byte_level_, ignore_merges_, byte_fallback_, fuse_unk_;
  TokenId unk_;
  WordCutter cutter_;
};

}  // namespace vocabshift
