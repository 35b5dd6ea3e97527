// How BoundlessBPE itself segments text, beside the tokenizer that is exported from it.
//
// Its own rule: every word by the word merges alone; then supermerges, by rank, over each run of
// neighbouring words that are one token and may join. A merge list has no place for that rule: by
// rank, a supermerge also joins tokens that are only parts of words. This measures the difference,
// over whole corpora; it knows nothing of files.
#pragma once

#include <memory>
#include <vector>

#include "core/encode.h"
#include "core/merge_loop.h"
#include "core/words_in_pieces.h"

namespace vocabshift {

class BoundlessSegmentation {
 public:
  // Both encoders share one numbering of tokens, `lengths` bytes each; `supermerges` by rank;
  // `may_join` by token id. The encoders must outlive this.
  BoundlessSegmentation(const Encoder& words, const Encoder& exported,
                        const std::vector<Merge>& supermerges, std::vector<bool> may_join,
                        std::vector<std::uint32_t> lengths, WordsInPieces cutter);

  void add(const Documents& documents, const GivenCuts& cuts);

  struct Counts {
    Count boundless_tokens = 0;
    Count exported_tokens = 0;
    Count documents = 0;
    Count documents_differing = 0;  // segmented otherwise by the exported tokenizer
  };
  const Counts& counts() const { return counts_; }
  std::size_t threads() const { return cutter_.threads(); }

 private:
  struct Worker {
    Worker(const Encoder& of_words, const Encoder& of_pieces)
        : words(of_words), pieces(of_pieces) {}
    Encoder::Scratch words, pieces;
    MergeScratch merging;
    std::vector<TokenId> ids, run, boundless, exported;
    Counts counts;
    std::size_t last_differing = static_cast<std::size_t>(-1);
  };
  void encode_boundless(std::string_view piece, std::span<const std::size_t> word_ends,
                        Worker& worker) const;
  void flush_run(Worker& worker) const;

  const Encoder& words_;
  const Encoder& exported_;
  MergeTable supermerges_;
  std::vector<bool> may_join_;
  std::vector<std::uint32_t> lengths_;
  WordsInPieces cutter_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Counts counts_;
};

}  // namespace vocabshift
