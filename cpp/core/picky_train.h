// From counted words to a picky loop, and what comes of it beside an ordinary merge list.
#pragma once

#include <vector>

#include "core/encode.h"
#include "core/picky_loop.h"
#include "core/word_counts.h"

namespace vocabshift {

// What the documents of a group count, and in which language.
struct GroupWeight {
  Count weight;            // fixed point
  std::uint32_t language;  // below PairScore::languages()
};

// Takes the words out of the counter (finished). std::invalid_argument where counts could grow
// beyond 64 bits.
void add_words(PickyLoop& loop, WordCounter& counter, const std::vector<GroupWeight>& groups);

// The counted words as the events of training leave them, beside what a merge list makes of them.
// Tokens and words count as often as they occur.
struct PickyComparison {
  Count words = 0;
  Count words_differing = 0;
  Count replayed_tokens = 0;   // by events
  Count exported_tokens = 0;   // by the merge list
  Count tokens_differing = 0;  // of the latter: those that do not stand there by events
};

// By events, as PickyBPE's own encoder does: a word that is a token as a whole is one, whatever the
// events made of it. `lengths`: bytes of the encoder's tokens, by id.
PickyComparison compare_segmentations(const PickyLoop& loop, const Encoder& exported,
                                      const std::vector<std::uint32_t>& lengths);

// Tokens of all words by events alone.
Count count_tokens(const PickyLoop& loop);

}  // namespace vocabshift
