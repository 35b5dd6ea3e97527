#include "core/placed_pairs.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "core/filled.h"
#include "core/hash.h"
#include "core/stop.h"

namespace vocabshift {

PlacedPairs::PlacedPairs(std::size_t languages)
    : languages_(languages), slots_(1024, Slot{kEmpty, kNone}) {}

std::size_t PlacedPairs::slot_of(std::uint64_t key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash_pair(key) & mask;
  while (slots_[at].key != key && slots_[at].key != kEmpty) at = (at + 1) & mask;
  return at;
}

PlacedPairs::Row PlacedPairs::find(std::uint64_t key) const { return slots_[slot_of(key)].row; }

bool PlacedPairs::occurs(Row row) const {
  const Count* const begin = &counts_[row / kBlock][row % kBlock * languages_];
  return std::any_of(begin, begin + languages_, [](Count count) { return count > 0; });
}

void PlacedPairs::make_room(std::size_t pairs) {
  if ((used_slots_ + pairs) * 2 <= slots_.size()) return;
  std::vector<Slot> kept;
  kept.reserve(used_slots_);
  for (const Slot& slot : slots_) {
    may_stop(4);
    if (slot.key == kEmpty) continue;
    if (occurs(slot.row)) {
      kept.push_back(slot);
    } else {
      rows_[slot.row] = {kEmpty, 0, {}};
      free_rows_.push_back(slot.row);
    }
  }
  used_slots_ = kept.size();
  // A quarter to a half full afterwards: the next call that has something to do is far away.
  BigVector<Slot>().swap(slots_);
  slots_ = filled<BigVector<Slot>>(std::bit_ceil((used_slots_ + pairs) * 2 + used_slots_ / 2),
                                   Slot{kEmpty, kNone});
  for (const Slot& slot : kept) {
    may_stop(4);
    slots_[slot_of(slot.key)] = slot;
  }
}

PlacedPairs::Row PlacedPairs::find_or_add(std::uint64_t key) {
  Slot& slot = slots_[slot_of(key)];
  if (slot.key == key) return slot.row;
  if (++used_slots_ * 2 > slots_.size()) throw std::logic_error("no room was made for a pair");
  Row row;
  if (!free_rows_.empty()) {
    row = free_rows_.back();
    free_rows_.pop_back();
    rows_[row].key = key;
  } else {
    row = static_cast<Row>(rows_.size());
    rows_.push_back({key, 0, {}});
    if (row % kBlock == 0) counts_.push_back(std::make_unique<Count[]>(kBlock * languages_));
  }
  slot = {key, row};
  return row;
}

std::size_t PlacedPairs::memory_bytes() const {
  return slots_.capacity() * sizeof(Slot) + rows_.capacity() * sizeof(RowState) +
         counts_.size() * kBlock * languages_ * sizeof(Count) + free_rows_.capacity() * sizeof(Row);
}

}  // namespace vocabshift
