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
  kFloor,  // no pair is left at or above the floor the caller allowed
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
  static constexpr Sequences::ChunkAt kNowhere = 0xFFFFFFFFu;

  // What stood beside the merged occurrences, on one side, by token id.
  struct Neighbour {
    Count sum = 0;
    Sequences::ChunkAt last_chunk = kNowhere;  // seen there last
    std::uint32_t chunk_count = 0;             // later: place in lists_ of the new pair's list
  };
  struct Occurrence {
    TokenId neighbour;
    Sequences::ChunkAt chunk;
  };
  struct Side {
    std::vector<Neighbour> by_token;  // and one more for "no neighbour", which nothing reads
    std::vector<TokenId> touched;     // room for all; the first touched_count are in use
    std::size_t touched_count = 0;
    BigVector<Occurrence> occurrences;  // the first occurrence_count are in use
    std::size_t occurrence_count = 0;

    void resize(std::size_t tokens);
    void make_room();
    void see(TokenId token, Count count, Sequences::ChunkAt chunk);
    void clear();
  };
  struct ListEnd {
    Sequences::ChunkAt* next;
    std::size_t step;  // 0: there is no list, and all is written to one place
  };

  void build_index(const std::function<Count(Count largest)>& choose_floor);
  template <class Token>
  void apply(Pair pair, TokenId product, const PairIndex::Entry& entry);
  template <class Token>
  void merge_in_word(Sequences::Chunk word, Sequences::ChunkAt at, Pair pair, TokenId product);
  template <class Token>
  void merge_in_part(Sequences::ChunkAt at, Pair pair, TokenId product);
  template <class Token>
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
  Count floor_ = 0;      // pairs below it are not in the index
  TokenId nothing_ = 0;  // stands for the neighbour that a first or last token does not have
  Side left_, right_;
  std::vector<ListEnd> lists_;   // of the new pairs of one side
  std::vector<Candidate> born_;  // new pairs of the merge under way
  std::vector<Merge> merges_;
  Count tokens_saved_ = 0;
  std::size_t peak_memory_bytes_ = 0;
};

}  // namespace vocabshift
