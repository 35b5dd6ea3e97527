// From counted words to merges: stage 1 of every trainer, plain BPE, and continued BPE.
#pragma once

#include <optional>
#include <vector>

#include "core/encode.h"
#include "core/merge_loop.h"
#include "core/target_scripts.h"
#include "core/word_counts.h"

namespace vocabshift {

struct Trained {
  Vocabulary vocabulary;
  std::vector<Merge> merges;  // the new ones
  Stopped stopped;
  Count tokens;                   // of the training text as segmented by the merges, unweighted
  std::size_t peak_memory_bytes;  // of the merge loop's own structures
  Count bound = 1;  // pairs that count less were not looked at (SuperwordStage), and need not be
  Count dropped_words = 0;        // distinct words that did not fit into memory …
  Count dropped_occurrences = 0;  // … and how often they stood in the text
  Count dropped_below = 0;        // they were the words of a smaller weighted count than this
};

// What one occurrence of a word counts.
struct WordWeights {
  std::vector<Count> of_group;  // fixed point
  Count unit = 1;               // a word without a character of the scripts counts this many times
  Count target = 1;             // a word with one
  TargetScripts scripts = {};
  // Above 0: the count c of a word of the scripts becomes c ** smoothing, rescaled so that the sum
  // over these words stays what it was (Matra's formula read as XLM-R's smoothing).
  double smoothing = 0;
};

// What training goes on from: the words are segmented by `encoder`, whose ids `vocabulary` has.
// Without one they are groups of these ids (token_groups.h).
struct Start {
  const Encoder* encoder;
  Vocabulary vocabulary;
  Duplicates duplicates = Duplicates::kReuseId;
  std::vector<bool> held = {};  // by id: tokens that the encoder's own merges hold (MergeLoop)
  bool keep_words = false;      // in the counter, for somebody else
};

// BPE over the words of `counter` (finished), which are taken out of it. Without `start` from
// single bytes. `memory_bytes` (0: any) bounds the loop's structures: where the words do not fit,
// the rarest are left out, and their number is reported.
Trained train_bpe(WordCounter& counter, const WordWeights& weights, const Limits& limits,
                  const MergeRule& rule, std::optional<Start> start, std::size_t memory_bytes,
                  const Tick& tick);

}  // namespace vocabshift
