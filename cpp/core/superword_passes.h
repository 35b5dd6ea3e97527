// The two passes over text that superwords need where every machine sees a part of it: the counts
// of borders, and then the runs between the frequent ones. What either counts is summed over all
// parts (docs/algorithms/superwords.md). Owns what is counted of a part; knows nothing of other
// machines.
#pragma once

#include <vector>

#include "core/borders.h"
#include "core/superword_text.h"
#include "core/word_counts.h"

namespace vocabshift {

class BorderPass {
 public:
  // An occurrence in a document of group g counts weights[g] times.
  BorderPass(SuperwordText text, std::vector<Count> weights, std::size_t cells);

  void add(const Documents& documents, std::size_t group);

  std::size_t threads() const { return text_.options().threads; }
  const BigVector<Count>& counts() const { return sketch_.counts(); }

 private:
  SuperwordText text_;
  std::vector<Count> weights_;
  BorderSketch sketch_;
};

// Counts runs as words: the bytes of their ids, and where sentences have weights a second time with
// CountedRuns::kWeightMark after them.
class RunPass {
 public:
  RunPass(SuperwordText text, RunCutter cutter) : text_(std::move(text)), cutter_(cutter) {}

  // Adds the runs of the documents to `counter`.
  void add(const Documents& documents, std::size_t group, WordCounter& counter);

  std::size_t threads() const { return text_.options().threads; }
  // Tokens of the documents of all groups so far.
  Count tokens() const { return tokens_; }

 private:
  struct Found {  // in one block
    std::string runs;
    std::vector<std::int64_t> starts, ends;
    std::vector<Count> counts;

    void clear();
    void add(std::span<const TokenId> run, Count factor, bool is_weighted);
  };

  SuperwordText text_;
  RunCutter cutter_;
  std::vector<Found> found_;  // one per block
  Count tokens_ = 0;
};

}  // namespace vocabshift
