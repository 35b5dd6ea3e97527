// Pair -> exact counts, one for each language, and the places where it may stand.
//
// Unlike pair_index.h no pair is forgotten while it occurs: where tokens can be split again, counts
// may grow. A place is where the pair's left token begins; some may not hold the pair any more, and
// some may be there twice.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/big_memory.h"
#include "core/placed_tokens.h"
#include "core/types.h"

namespace vocabshift {

class PlacedPairs {
 public:
  using Row = std::uint32_t;
  static constexpr Row kNone = 0xFFFFFFFFu;

  explicit PlacedPairs(std::size_t languages);

  // Room for so many new pairs; pairs that do not occur any more are forgotten, and their rows
  // given away. Rows stay what they are until the next call.
  void make_room(std::size_t pairs);

  Row find(std::uint64_t key) const;  // kNone where the pair is not known
  Row find_or_add(std::uint64_t key);

  Count* counts(Row row) { return &counts_[row / kBlock][row % kBlock * languages_]; }
  bool occurs(Row row) const;
  std::vector<PlacedTokens::Place>& places(Row row) { return rows_[row].places; }
  // For whoever queues pairs: what the row stands in the queue with, 0 at first.
  Count& queued(Row row) { return rows_[row].queued; }
  std::uint64_t key(Row row) const { return rows_[row].key; }

  std::size_t memory_bytes() const;  // without the places

 private:
  struct RowState {
    std::uint64_t key;
    Count queued;
    std::vector<PlacedTokens::Place> places;
  };
  struct Slot {
    std::uint64_t key;
    Row row;
  };
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  static constexpr std::size_t kBlock = std::size_t{1} << 14;  // rows

  std::size_t slot_of(std::uint64_t key) const;

  std::size_t languages_;
  BigVector<Slot> slots_;  // open addressing
  std::size_t used_slots_ = 0;
  std::vector<RowState> rows_;
  // [row][language], in blocks: with many languages the largest of all, and never copied.
  std::vector<std::unique_ptr<Count[]>> counts_;
  std::vector<Row> free_rows_;
};

}  // namespace vocabshift
