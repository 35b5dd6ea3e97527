// The superword stage, exactly and in little memory (IST section 3;
// docs/algorithms/superwords.md).
//
// Pieces of text (sentences, say) are encoded with the merges of the first stage, as the exported
// tokenizer will encode them. Pieces hardly repeat, so counting them compresses nothing; but let
// c(x, y) be the count of neighbouring tokens x y before this stage. Every later merge that joins
// across that border has a count of at most c(x, y). If T is the count of the last merge that is
// accepted, no border with c(x, y) < T is ever merged across: the text may be cut there. What is
// left are short runs between frequent borders, and these repeat: runs are counted, not sentences.
// T is guessed, then checked: a guess that was too high is noticed (Stopped::kFloor) and lowered.
// c comes from a sketch with one hash, which only overestimates: it cuts too rarely, never wrongly.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/big_memory.h"
#include "core/encode.h"
#include "core/pre_tokenize.h"
#include "core/target_scripts.h"
#include "core/threads.h"
#include "core/token_store.h"
#include "core/train.h"

namespace vocabshift {

class SuperwordStage {
 public:
  struct Options {
    std::size_t threads = 1;
    std::string file;  // where the encoded text is kept; "": in memory
    // Sentences weigh by their script (Matra); none: documents weigh by their group alone.
    std::optional<SentenceWeights> sentences;
    bool counted = false;  // documents come with counts (add_counted)
  };

  // `encoder` and `vocabulary` are the first stage's: the same ids.
  SuperwordStage(const Encoder& encoder, Vocabulary vocabulary, PreTokenizer pre_tokenizer,
                 Options options);
  // Goes on from the file of a finished stage with the same options.
  SuperwordStage(const Encoder& encoder, Vocabulary vocabulary, PreTokenizer pre_tokenizer,
                 Options options, TokenStore finished);

  // Encodes documents; `group` numbers what is weighted alike, as in WordCounter.
  void add(const Documents& documents, std::size_t group);
  // The same for documents that stand for `counts[i]` equal ones each.
  void add_counted(const Documents& documents, const Count* counts, std::size_t group);
  // Nothing may be added afterwards.
  void finish() {
    scratches_.clear();
    blocks_.clear();
    store_.finish(tokens_);
  }

  std::size_t threads() const { return options_.threads; }
  // Tokens of all documents before the first superword merge.
  Count tokens() const { return tokens_; }

  // Continues the vocabulary up to limits.vocab_size; the merges returned are the new ones. Where
  // sentences have weights, a product may hold no terminal (rule.terminals) and no part of a
  // character (rule.whole_characters), so that no merge reaches from one sentence into another.
  // `memory_bytes` (0: any) bounds the runs; where they do not fit, training stops early with
  // Stopped::kMemory, exact as far as it got.
  Trained train(const std::vector<Count>& weights, const Limits& limits, const MergeRule& rule,
                std::size_t memory_bytes, const Tick& tick);

 private:
  // A block holds pieces: the token ids, kNoToken, and where pieces have factors (counts, or
  // weights of sentences) the factor. Pieces of one token are only counted.
  using Block = std::vector<TokenId>;
  class Runs;

  void encode_block(const Documents& documents, std::size_t begin, std::size_t end,
                    const Count* counts, Encoder::Scratch& scratch, Block& block,
                    Count& tokens) const;
  void add_piece(std::span<const TokenId> piece, Count times, Block& block) const;
  void add_sentences(std::span<const TokenId> piece, std::size_t offset,
                     const std::vector<SentenceWeights::Sentence>& sentences, Block& block) const;
  bool has_factors() const { return options_.sentences || options_.counted; }
  template <class F>
  void for_each_piece(std::size_t block, Block& buffer, F&& visit) const;
  BigVector<Count> sketch_borders(const std::vector<Count>& weights, std::size_t memory_bytes,
                                  const Tick& tick) const;
  std::optional<Sequences> count_runs(const BigVector<Count>& sketch, Count bound,
                                      const std::vector<Count>& weights, const MergeRule& rule,
                                      std::size_t vocab_size, std::size_t memory_bytes,
                                      const Tick& tick) const;

  const Encoder& encoder_;
  Vocabulary vocabulary_;
  PreTokenizer pre_tokenizer_;
  Options options_;
  std::vector<std::unique_ptr<Encoder::Scratch>> scratches_;  // one per thread
  std::vector<Block> blocks_;                                 // one per thread, being filled
  TokenStore store_;
  Count tokens_ = 0;
};

}  // namespace vocabshift
