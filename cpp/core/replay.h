// What merges do to text that they were not learned on: one pass gives every point of the curve
// from no merge to all of them.
#pragma once

#include <vector>

#include "core/encode.h"
#include "core/merge_table.h"
#include "core/word_counts.h"

namespace vocabshift {

struct Replay {
  Count words = 0;              // occurrences
  Count tokens = 0;             // of the words as the encoder segments them, before any merge
  std::vector<Count> happened;  // by merge: how often it was done, every time one token less
};

// Segments the words of every group (finished counting) by `encoder`, or reads them as groups of
// ids where there is none (token_groups.h), then merges by rank. A
// prefix of `merges` does what it does in all of them: the tokens after the first k merges are
// `tokens` minus the first k of `happened`.
std::vector<Replay> replay_merges(WordCounter& words, const Encoder* encoder,
                                  const std::vector<ModelMerge>& merges, const Tick& tick);

}  // namespace vocabshift
