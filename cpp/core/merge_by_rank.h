// Byte-pair encoding of one piece: the pair of least rank merges first, the leftmost among equals,
// until no pair is left. Source: Word::merge_all of `tokenizers`.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/merge_table.h"
#include "core/types.h"

namespace vocabshift {

// Room to work, kept between calls.
struct MergeScratch {
  std::vector<std::uint32_t> ranks;                           // of each symbol with the next one
  std::vector<std::uint32_t> next, previous;                  // linked list of symbols
  std::vector<std::pair<std::uint32_t, std::uint32_t>> heap;  // (rank, position)
  std::vector<std::uint32_t>* log = nullptr;  // if not null: gets the rank of every merge, in order
};

// Merges `symbols` in place with every rank below `limit`.
void merge_by_rank(const MergeTable& merges, std::vector<TokenId>& symbols, std::uint32_t limit,
                   MergeScratch& scratch);

}  // namespace vocabshift
