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
  // With Parity: whom each merge served, and by language the tokens of the text that was trained
  // on, as far as its words were kept, and of the text that was measured.
  std::vector<std::uint32_t> served = {};
  std::vector<Count> language_tokens = {}, measured_tokens = {};
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
};

// Whom merges serve, in turn (language_choice.h). Languages are numbered from 0.
struct Parity {
  std::size_t languages;
  std::vector<std::uint32_t> of_group;  // the language of each group of words
  // The words of parallel text, whose tokens are to be as many in all languages; and the language
  // of each of its groups. Null: tokens per character of the words that are trained on.
  WordCounter* parallel = nullptr;
  std::vector<std::uint32_t> of_parallel_group = {};
  ParityWindow window = {};
};

// BPE over the words of `counter` (finished), which are taken out of it unless they are kept for
// another run. Without `start` from single bytes. `memory_bytes` (0: any) bounds the loop's
// structures: where the words do not fit, the rarest are left out, and their number is reported;
// parallel words never are.
Trained train_bpe(WordCounter& counter, const WordWeights& weights, const Limits& limits,
                  const MergeRule& rule, std::optional<Start> start, std::size_t memory_bytes,
                  const Tick& tick, bool keep_words = false, const Parity* parity = nullptr);

}  // namespace vocabshift
