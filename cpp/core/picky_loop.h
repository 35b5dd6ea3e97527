// BPE in which tokens may be removed again, and in which pairs compete by any score: PickyBPE and
// OBPE.
//
// PickyBPE (Chizhov, Arnett, Korotkova, Yamshchikov, "BPE Gets Picky", EMNLP 2024): when the best
// pair (a, b) has merged n times, a and then b is removed if n / (rest + n) > threshold, rest being
// how often the token still occurs; single bytes never are. All occurrences of a removed token
// become its parts, those of the pair that first made it, and the parts of parts that are removed
// themselves; its place in the vocabulary is free. A merge that makes its string again restores it
// under its old id. Where we differ from the authors' code: ties go to the smaller
// (left id, right id), not to what was counted first (merge_queue.h); a merge into a token that is
// there does not use up a place in the vocabulary; symbols are bytes.
//
// It ends: of the tokens by length, longest first, a merge adds to the number of the product's
// length and takes away, itself and by what it removes, only from smaller lengths.
//
// merge_loop.h is faster and needs less memory, because it forgets pairs, on the grounds that
// counts never grow. Splits make them grow, so here all pairs are kept, and a pair whose score
// rises is queued again. Threads would not help: merges depend on each other.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/merge_loop.h"
#include "core/merge_queue.h"
#include "core/merge_rule.h"
#include "core/pair_score.h"
#include "core/placed_pairs.h"
#include "core/placed_tokens.h"
#include "core/vocabulary.h"

namespace vocabshift {

// What happened, in order: a merge, or a removal.
struct PickyEvent {
  TokenId left;                // of a removal: the token
  TokenId right;               // of a removal: kNoToken
  TokenId product;             // of a removal: kNoToken
  Count count;                 // weighted: merges that were made, or occurrences that were split
  std::vector<TokenId> parts;  // of a removal
};

class PickyLoop {
 public:
  using Place = PlacedTokens::Place;
  using Word = PlacedTokens::Word;

  // Tokens are removed above `threshold`; 1: none ever is.
  PickyLoop(PairScore score, MergeRule rule, double threshold);

  // Adds a word (not empty). weights: by language, those that it occurs in; `occurrences` only
  // counts tokens.
  struct Weight {
    std::uint32_t language;
    Count count;
  };
  void add_word(std::string_view word, std::span<const Weight> weights, Count occurrences);

  // Merges until `vocab_size` tokens are there or no pair counts `min_count`; call once.
  Stopped run(std::size_t vocab_size, Count min_count, const Tick& tick);

  const Vocabulary& vocabulary() const { return vocabulary_; }  // removed tokens included
  const std::vector<bool>& present() const { return present_; }
  const std::vector<PickyEvent>& events() const { return events_; }
  const PlacedTokens& words() const { return tokens_; }
  Count occurrences(Word word) const { return occurrences_[word]; }
  std::size_t peak_memory_bytes() const { return peak_memory_bytes_; }

 private:
  using Row = PlacedPairs::Row;

  // Tokens beside the places that change, on one side.
  struct Side {
    std::vector<Count> sums;  // [token][language]
    std::vector<bool> is_touched;
    std::vector<TokenId> touched;
    std::vector<std::pair<TokenId, Place>> seen;  // and the place of the new pair
    std::vector<Row> rows;                        // by token, of the new pair
  };

  void add_token(TokenId id, Pair parts);
  void index_pairs();
  bool take(Row row);
  void merge_places(Row row, Pair pair, TokenId product);
  void remove_if_rare(TokenId token, Count merged);
  std::vector<TokenId> parts_of(TokenId token) const;
  void see(Side& side, TokenId token, Word word, Place pair);
  void replace(Pair before, Pair after);
  void add_side(Side& side, TokenId after, bool is_left);
  void take_side(Side& side, TokenId before, bool is_left);
  void settle();
  void forget_stale_places(TokenId token);
  std::span<const Weight> weights_of(Word word) const;
  Count score_of(Row row);
  void note_memory();

  PairScore score_;
  MergeRule rule_;
  double threshold_;
  std::size_t languages_;
  Vocabulary vocabulary_;
  TokenId byte_ids_[256];

  PlacedTokens tokens_;
  std::vector<Weight> weights_;              // of all words
  std::vector<std::size_t> weight_ends_{0};  // by word + 1, in weights_
  std::vector<Count> occurrences_;           // by word

  // By token id.
  std::vector<Pair> parts_;  // of the pair that first made it; kNoToken for bytes
  std::vector<bool> present_;
  std::vector<Count> counts_;                  // weighted occurrences
  std::vector<std::size_t> place_counts_;      // places where it stands
  std::vector<std::vector<Place>> places_of_;  // and these, some stale; not of bytes

  PlacedPairs pairs_;
  MergeQueue queue_;
  Count min_count_ = 1;
  std::size_t present_count_ = 0;
  std::vector<PickyEvent> events_;
  std::size_t peak_memory_bytes_ = 0;

  // Of the event under way.
  Side left_, right_;
  std::vector<Row> changed_;
  std::vector<Count> sums_;  // by language, of the places
  std::vector<Place> places_;
};

}  // namespace vocabshift
