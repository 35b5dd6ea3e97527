// From counted words to merges: stage 1 of every trainer, and plain BPE.
#pragma once

#include <vector>

#include "core/merge_loop.h"
#include "core/word_counts.h"

namespace vocabshift {

struct Trained {
  Vocabulary vocabulary;
  std::vector<Merge> merges;
  Stopped stopped;
  Count tokens;                   // of the training text as segmented by the merges, unweighted
  std::size_t peak_memory_bytes;  // of the merge loop's own structures
};

// Byte-level BPE over the words of `counter` (finished), which are taken out of it.
// `weights[group]` multiplies the counts of a group's words.
Trained train_bpe(WordCounter& counter, const std::vector<Count>& weights, const Limits& limits,
                  const MergeRule& rule, const Tick& tick);

}  // namespace vocabshift
