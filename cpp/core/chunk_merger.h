// Merges one pair in some chunks of the sequences, and notes what stood beside it. Knows nothing of
// other pairs' counts: the merge loop adjusts these afterwards.
//
// Chunks of different sequences can be merged by different mergers at the same time.
#pragma once

#include <span>
#include <vector>

#include "core/big_memory.h"
#include "core/sequences.h"
#include "core/types.h"

namespace vocabshift {

using Chunks = std::span<const Sequences::ChunkAt>;

// What stood beside the merged occurrences, on one side.
struct Neighbours {
  static constexpr Sequences::ChunkAt kNowhere = 0xFFFFFFFFu;
  struct Neighbour {
    Count sum = 0;
    Sequences::ChunkAt last_chunk = kNowhere;  // seen there last
    std::uint32_t chunk_count = 0;
  };
  struct Occurrence {
    TokenId neighbour;
    Sequences::ChunkAt chunk;
  };

  std::vector<Neighbour> by_token;
  std::vector<TokenId> touched;  // the first touched_count are in use, and `see` writes one more
  std::size_t touched_count = 0;
  BigVector<Occurrence> occurrences;  // the first occurrence_count are in use
  std::size_t occurrence_count = 0;

  explicit Neighbours(std::size_t tokens);
  void make_room();
  void see(TokenId token, Count count, Sequences::ChunkAt chunk);
  // Adds the sums of what was seen in later chunks; the occurrences stay where they are.
  void join(const Neighbours& later);
  void clear();
};

class ChunkMerger {
 public:
  // `nothing` is above every token id: it stands beside the first and the last token of a word, so
  // that both always have a neighbour. No result may depend on what is noted for it.
  explicit ChunkMerger(TokenId nothing);

  // Merges every occurrence of the pair in `chunks` (ascending; some may not hold it any more).
  // A product that follows a product has `pair.left` on its right, see MergeLoop::update_counts.
  void merge(Sequences& sequences, Chunks chunks, Pair pair, TokenId product);
  void join(const ChunkMerger& later);
  void clear();

  Neighbours left, right;
  Count tokens_saved = 0;  // every occurrence counted once

 private:
  template <class Token>
  void merge_all(Sequences& sequences, Chunks chunks, Pair pair, TokenId product);
  template <class Token>
  void merge_in_word(Sequences& sequences, Sequences::Chunk word, Sequences::ChunkAt at, Pair pair,
                     TokenId product);
  template <class Token>
  void merge_in_part(Sequences& sequences, Sequences::ChunkAt at, Pair pair, TokenId product);
  template <class Token>
  void merge_at(Sequences& sequences, Sequences::ChunkAt at, std::uint32_t index,
                TokenId right_neighbour, TokenId product);

  TokenId nothing_;
};

}  // namespace vocabshift
