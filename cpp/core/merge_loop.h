// The merge loop of every trainer: start from a vocabulary and sequences, merge the best pair
// until there is a reason to stop. Byte-pair encoding exactly as `tokenizers` trains it
// (method.md section 1): overlapping pairs are counted, merges run left to right.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/merge_queue.h"
#include "core/merge_rule.h"
#include "core/pair_index.h"
#include "core/sequences.h"
#include "core/types.h"
#include "core/vocabulary.h"

namespace vocabshift {

struct Merge {
  TokenId left;
  TokenId right;
  TokenId product;
  Count count;  // of the pair when it was merged
};

enum class Stopped {
  kVocabSize,     // as many tokens as asked for
  kMinFrequency,  // no pair is left that occurs often enough
  kNoPairLeft,
  kFloor,   // no pair is left at or above the floor the caller allowed
  kMemory,  // going on would take more memory than allowed
};

// What happens to a pair whose product is a token already.
enum class Duplicates { kReuseId, kRefusePair };

struct Limits {
  std::size_t vocab_size;   // tokens in the vocabulary, those it started with included
  Count min_frequency = 1;  // a pair must count at least this much
  Count lowest_floor = 1;   // counts below this are not to be trusted: stop there (kFloor)
};

class MergeLoop {
 public:
  MergeLoop(Vocabulary vocabulary, Sequences sequences, MergeRule rule, Duplicates duplicates);

  Stopped run(const Limits& limits, const Tick& tick);

  const std::vector<Merge>& merges() const { return merges_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  Sequences& sequences() { return sequences_; }
  // Tokens that the merges so far have saved, every occurrence counted once.
  Count tokens_saved() const { return tokens_saved_; }
  std::size_t peak_memory_bytes() const { return peak_memory_bytes_; }

 private:
  // What stood beside the merged occurrences, on one side, by token id.
  struct Neighbour {
    Count sum = 0;
    std::uint32_t chunk_count = 0;
    Sequences::ChunkAt last_chunk = 0;
    Sequences::ChunkAt* chunks = nullptr;  // chunk list of the new pair, once it has one
  };
  struct Occurrence {
    TokenId neighbour;
    Sequences::ChunkAt chunk;
  };
  struct Side {
    std::vector<Neighbour> by_token;
    std::vector<TokenId> touched;
    std::vector<Occurrence> occurrences;

    void see(TokenId token, Count count, Sequences::ChunkAt chunk);
    void clear();
  };

  void build_index(const std::function<Count(Count largest)>& choose_floor);
  void apply(Pair pair, TokenId product, const PairIndex::Entry& entry);
  void merge_in_chunk(Sequences::ChunkAt at, Pair pair, TokenId product);
  void merge_at(Sequences::ChunkAt at, std::uint32_t index, TokenId right_neighbour,
                TokenId product);
  void update_counts(Pair pair, TokenId product);
  void add_new_pairs(Side& side, TokenId product, bool product_is_left);

  Vocabulary vocabulary_;
  Sequences sequences_;
  MergeRule rule_;
  Duplicates duplicates_;
  PairIndex index_;
  MergeQueue queue_;
  Count floor_ = 0;  // pairs below it are not in the index
  Side left_, right_;
  std::vector<Candidate> born_;  // new pairs of the merge under way
  std::vector<Merge> merges_;
  Count tokens_saved_ = 0;
  std::size_t peak_memory_bytes_ = 0;
};

}  // namespace vocabshift
