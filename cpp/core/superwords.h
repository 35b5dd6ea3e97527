// The superword stage, exactly and in little memory (IST section 3; method.md sections 2 and 4).
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
#include <vector>

#include "core/encode.h"
#include "core/pre_tokenize.h"
#include "core/threads.h"
#include "core/train.h"

namespace vocabshift {

class SuperwordStage {
 public:
  SuperwordStage(const Encoder& encoder, PreTokenizer pre_tokenizer, std::size_t threads);

  // Encodes documents; `group` numbers what is weighted alike, as in WordCounter.
  void add(const Documents& documents, std::size_t group);

  // Tokens of all documents before the first superword merge.
  Count tokens() const { return tokens_; }

  // Continues `vocabulary` up to limits.vocab_size; the merges returned are the new ones.
  Trained train(const Vocabulary& vocabulary, const std::vector<Count>& weights,
                const Limits& limits, const MergeRule& rule, const Tick& tick);

 private:
  // Token ids of many pieces, each ended by kNoToken; pieces of one token are only counted.
  using Block = std::vector<TokenId>;

  std::vector<Count> sketch_borders(const std::vector<Count>& weights) const;
  Sequences count_runs(const std::vector<Count>& sketch, Count bound,
                       const std::vector<Count>& weights, const Tick& tick) const;

  const Encoder& encoder_;
  PreTokenizer pre_tokenizer_;
  std::vector<std::unique_ptr<Encoder::Scratch>> scratches_;  // one per thread
  std::vector<std::vector<Block>> groups_;                    // [group][block]
  Count tokens_ = 0;
};

}  // namespace vocabshift
