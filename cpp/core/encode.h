// The encoder: pieces of text -> token ids, exactly as the BPE model of `tokenizers`.
//
// Owns initial symbols, merge skipping, and which of the ways to the same ids is taken: the cache
// of words, the linear-time way where the merges are trees, merging by rank otherwise. A piece may
// be a whole sentence (superword tokenizers): then words are encoded with the ranks that cannot
// reach across a space, and the short sequence of tokens is merged with all ranks: see
// docs/algorithms/encoding.md.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/late_merges.h"
#include "core/merge_by_rank.h"
#include "core/merge_tree.h"
#include "core/sure_borders.h"
#include "core/types.h"
#include "core/vocabulary.h"
#include "core/word_cache.h"
#include "core/word_cutter.h"

namespace vocabshift {

// What the encoder is made from. Token strings are bytes: for a byte-level model the bytes a token
// stands for, otherwise its UTF-8 text as the vocabulary spells it.
struct EncoderModel {
  Vocabulary tokens;
  std::vector<TokenId> ids;        // of each token
  std::vector<ModelMerge> merges;  // by rank
  bool byte_level = true;          // symbols are bytes; otherwise characters
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
    explicit Scratch(const Encoder& encoder) : cache_(encoder.short_tokens_) {}

    // Where pieces end in the output, one entry each, from now on; null: nobody asks.
    void note_piece_ends(std::vector<std::size_t>* ends) { piece_ends_ = ends; }

   private:
    friend class Encoder;
    struct Word {  // of the pieces waiting to be encoded
      std::string_view text;
      CacheKey key;  // of a word that may be in the cache
      bool is_piece;
      bool ends_piece;
    };
    static constexpr std::size_t kWaiting = 64;
    WordCache cache_;
    std::array<Word, kWaiting> waiting_;
    std::size_t waiting_count_ = 0;
    static constexpr std::size_t kNoPiece = ~std::size_t{0};
    std::size_t piece_begin_ = kNoPiece;  // in the output, of a piece that is only begun
    std::vector<TokenId> ids_;
    MergeScratch merging_;
    MergeTree::Scratch tree_;
    std::vector<std::size_t>* piece_ends_ = nullptr;
  };

  explicit Encoder(EncoderModel model);

  // Appends the ids of one piece (valid UTF-8) to `out`, now or at the next flush: the memory that
  // its words need in the cache is asked for first, and used when some more pieces wait. The piece
  // must live until then. Up to `readable_end` memory may be read, though it is not of the piece.
  void encode_piece(std::string_view piece, const char* readable_end, Scratch& scratch,
                    std::vector<TokenId>& out) const {
    if (cutter_.crossing_rank() == kNoRank && piece.size() <= WordCache::kMaxWord) {
      wait(piece, readable_end, true, true, scratch, out);
    } else {
      encode_cut_piece(piece, readable_end, scratch, out);
    }
  }
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
    encode_piece(piece, piece.data() + piece.size(), scratch, out);
  }
  void flush(Scratch& scratch, std::vector<TokenId>& out) const;

  // By token, in the order of EncoderModel::tokens: the rank of the last merge that makes it when
  // merges alone run on its own string (STT: "Teaching Old Tokenizers New Words", section 3; no
  // merge skipping, no cache; a byte-level token need not be whole UTF-8); kNoMerge for one that is
  // a symbol already, kNotRebuilt for one that they do not make.
  static constexpr std::int64_t kNoMerge = -1, kNotRebuilt = -2;
  std::vector<std::int64_t> last_merges() const;

  // Initial symbols of a text, before any merge.
  void symbols_of(std::string_view text, std::vector<TokenId>& out) const;

 private:
  void wait(std::string_view word, const char* readable_end, bool is_piece, bool ends_piece,
            Scratch& scratch, std::vector<TokenId>& out) const {
    Scratch::Word& waiting = scratch.waiting_[scratch.waiting_count_++];
    waiting.text = word;
    waiting.is_piece = is_piece;
    waiting.ends_piece = ends_piece;
    if (word.size() <= WordCache::kMaxWord) {
      // Only merge skipping tells a piece from a word that is spelt alike.
      waiting.key = CacheKey::of(word, static_cast<std::size_t>(readable_end - word.data()),
                                 is_piece && ignore_merges_);
      scratch.cache_.prefetch(waiting.key);
    }
    if (scratch.waiting_count_ == Scratch::kWaiting) encode_waiting(scratch, out);
  }
  void encode_cut_piece(std::string_view piece, const char* readable_end, Scratch& scratch,
                        std::vector<TokenId>& out) const;
  void encode_waiting(Scratch& scratch, std::vector<TokenId>& out) const;
  void encode_uncached(const Scratch::Word& word, Scratch& scratch,
                       std::vector<TokenId>& out) const;

  void encode_long(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;
  void merge_all(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;
  const SureBorders& borders() const;

  bool may_lose_symbols(const EncoderModel& model) const;
  void prepare_words(const EncoderModel& model);
  void prepare_short_tokens();
  std::size_t first_late_rank(const EncoderModel& model) const;
  TokenId id_of(std::string_view text) const;  // kNoToken where no token is spelt so

  Vocabulary strings_;        // token strings, in the order of EncoderModel::tokens
  std::vector<TokenId> ids_;  // their ids
  MergeTable merges_;
  MergeTree tree_;                     // of the merges that may be inside words
  WordCache short_tokens_;             // what every cache begins with
  Vocabulary skipped_to_;              // longer pieces that are one by merge skipping alone
  std::vector<TokenId> skipped_ids_;   // their ids
  LateMerges late_merges_;             // all that can happen once the words of a piece are encoded
  std::array<TokenId, 256> byte_ids_;  // byte-level: ids of bytes; else of their <0xNN> pieces
  bool byte_level_, ignore_merges_, byte_fallback_, fuse_unk_;
  TokenId unk_;
  WordCutter cutter_;
  static constexpr std::size_t kLong = 64;  // bytes of a word that is looked through for borders
  bool has_borders_ = false;
  mutable std::once_flag borders_once_;  // most texts have no long words
  mutable std::optional<SureBorders> borders_;
};

}  // namespace vocabshift
