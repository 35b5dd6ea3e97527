// Text as the superword stage sees it: documents become pieces of stage-1 tokens, cut at the ends
// of sentences where these have weights. Owns the form of a block of pieces; knows nothing of where
// blocks are kept, or of what is counted in them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/encode.h"
#include "core/pre_tokenize.h"
#include "core/stop.h"
#include "core/target_scripts.h"
#include "core/threads.h"
#include "core/vocabulary.h"

namespace vocabshift {

class SuperwordText {
 public:
  struct Options {
    std::size_t threads = 1;
    // Sentences weigh by their script (Matra); none: documents weigh by their group alone.
    std::optional<SentenceWeights> sentences;
    bool counted = false;  // documents come with counts
  };

  // A block holds pieces: the token ids, kNoToken, and where pieces have factors (counts, or
  // weights of sentences) the factor. Pieces of one token are only counted.
  using Block = std::vector<TokenId>;

  // `encoder` and `vocabulary` are the first stage's: the same ids.
  SuperwordText(const Encoder& encoder, Vocabulary vocabulary, PreTokenizer pre_tokenizer,
                Options options);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const Options& options() const { return options_; }

  // Encodes documents on all threads, a block each, in the order of the documents; the blocks are
  // valid until the next call. `counts`: of the documents, null unless they are counted. Adds the
  // tokens of all pieces to `tokens`.
  const std::vector<Block>& encode(const Documents& documents, const Count* counts, Count& tokens);
  // Frees what encode works with.
  void finish() {
    scratches_.clear();
    blocks_.clear();
  }

  // Calls visit(tokens of a piece, its factor) for every piece of a block; 1 where it has no
  // factor. std::invalid_argument for ids that are no block.
  template <class F>
  void for_each_piece(std::span<const TokenId> block, F&& visit) const {
    const auto damaged = [] {
      return std::invalid_argument("the encoded text on disk is damaged");
    };
    const TokenId vocab_size = vocabulary_.size();
    for (std::size_t begin = 0; begin < block.size();) {
      std::size_t end = begin;
      while (end < block.size() && block[end] < vocab_size) ++end;
      if (end < block.size() && block[end] != kNoToken) throw damaged();
      const std::size_t next = end + (has_factors() ? 2 : 1);
      if (next > block.size()) throw damaged();
      may_stop(4);
      visit(block.subspan(begin, end - begin), has_factors() ? block[end + 1] : 1);
      begin = next;
    }
  }

 private:
  void encode_block(const Documents& documents, std::size_t begin, std::size_t end,
                    const Count* counts, Encoder::Scratch& scratch, Block& block,
                    Count& tokens) const;
  void add_piece(std::span<const TokenId> piece, Count times, Block& block) const;
  void add_sentences(std::span<const TokenId> piece, std::size_t offset,
                     const std::vector<SentenceWeights::Sentence>& sentences, Block& block) const;
  bool has_factors() const { return options_.sentences || options_.counted; }

  const Encoder& encoder_;
  Vocabulary vocabulary_;
  PreTokenizer pre_tokenizer_;
  Options options_;
  std::vector<std::unique_ptr<Encoder::Scratch>> scratches_;  // one per thread
  std::vector<Block> blocks_;                                 // one per thread
};

}  // namespace vocabshift
