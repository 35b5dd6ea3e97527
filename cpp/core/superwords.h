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
#pragma once

#include <optional>
#include <vector>

#include "core/borders.h"
#include "core/superword_runs.h"
#include "core/superword_text.h"
#include "core/token_store.h"
#include "core/train.h"

namespace vocabshift {

class SuperwordStage {
 public:
  // Keeps the encoded text in `store`; the store of a finished stage with the same options resumes
  // it.
  SuperwordStage(SuperwordText text, TokenStore store)
      : text_(std::move(text)), store_(std::move(store)), tokens_(store_.tokens()) {}

  // Encodes documents; `group` numbers what is weighted alike, as in WordCounter. `counts`: how
  // many equal ones each stands for, null unless the text is counted.
  void add(const Documents& documents, const Count* counts, std::size_t group);
  // Nothing may be added afterwards.
  void finish() {
    text_.finish();
    store_.finish(tokens_);
  }

  std::size_t threads() const { return text_.options().threads; }
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
  using Block = SuperwordText::Block;

  template <class F>
  void for_each_piece(std::size_t block, Block& buffer, F&& visit) const {
    text_.for_each_piece(store_.read(block, buffer), visit);
  }
  BorderSketch sketch_borders(const std::vector<Count>& weights, std::size_t memory_bytes,
                              const Tick& tick) const;
  std::optional<Sequences> count_runs(const BorderSketch& sketch, Count bound,
                                      const std::vector<Count>& weights, const MergeRule& rule,
                                      std::size_t vocab_size, std::size_t memory_bytes,
                                      const Tick& tick) const;

  SuperwordText text_;
  TokenStore store_;
  Count tokens_ = 0;
};

}  // namespace vocabshift
