#include "core/pair_index.h"

#include <algorithm>
#include <bit>

namespace vocabshift {

namespace {

// All pairs of a corpus with their counts and the number of chunks that hold them.
struct PairCounter {
  struct Slot {
    std::uint64_t key;
    Count count;
    Sequences::ChunkAt last_chunk;  // the pair was counted there last
    std::uint32_t chunk_count;
  };
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

  BigVector<Slot> slots = BigVector<Slot>(std::size_t{1} << 12, Slot{kEmpty, 0, 0, 0});
  std::size_t size = 0;

  Slot& slot_for(std::uint64_t key) {
    const std::size_t mask = slots.size() - 1;
    std::size_t at = hash_pair(key) & mask;
    while (slots[at].key != key && slots[at].key != kEmpty) at = (at + 1) & mask;
    return slots[at];
  }

  void grow() {
    BigVector<Slot> old(slots.size() * 2, Slot{kEmpty, 0, 0, 0});
    old.swap(slots);
    for (const Slot& slot : old) {
      if (slot.key != kEmpty) slot_for(slot.key) = slot;
    }
  }

  void add(std::uint64_t key, Count count, Sequences::ChunkAt chunk) {
    Slot* slot = &slot_for(key);
    if (slot->key == kEmpty) {
      if ((size + 1) * 3 > slots.size() * 2) {
        grow();
        slot = &slot_for(key);
      }
      ++size;
      *slot = {key, 0, 0, 0};
    }
    slot->count += count;
    if (slot->chunk_count == 0 || slot->last_chunk != chunk) {
      slot->last_chunk = chunk;
      ++slot->chunk_count;
    }
  }
};

}  // namespace

PairIndex::PairIndex() { reset(0); }

void PairIndex::reset(std::size_t expected) {
  slots_.assign(std::bit_ceil(expected * 2 + 1024), Entry{kEmpty, 0, nullptr, 0, 0});
  slots_.shrink_to_fit();
  size_ = 0;
  blocks_.clear();
  block_left_ = allocated_ = 0;
}

PairIndex::Entry& PairIndex::slot_for(std::uint64_t key) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash_pair(key) & mask;
  while (slots_[at].key != key && slots_[at].key != kEmpty) at = (at + 1) & mask;
  return slots_[at];
}

PairIndex::Entry* PairIndex::find(std::uint64_t key) {
  Entry& entry = slot_for(key);
  return entry.key == kEmpty ? nullptr : &entry;
}

void PairIndex::grow() {
  BigVector<Entry> old(slots_.size() * 2, Entry{kEmpty, 0, nullptr, 0, 0});
  old.swap(slots_);
  for (const Entry& entry : old) {
    // A merged or vanished pair is gone for good: its place can be given away.
    if (entry.key != kEmpty && entry.count > 0) {
      slot_for(entry.key) = entry;
    } else if (entry.key != kEmpty) {
      --size_;
    }
  }
}

void PairIndex::insert(std::uint64_t key, Count count, std::span<const Sequences::ChunkAt> chunks) {
  if ((size_ + 1) * 2 > slots_.size()) grow();
  Entry& entry = slot_for(key);
  if (entry.key == kEmpty) ++size_;
  entry = {key, count, chunks.data(), static_cast<std::uint32_t>(chunks.size()), 0};
}

Sequences::ChunkAt* PairIndex::allocate(std::size_t chunks) {
  if (chunks > block_left_) {
    const std::size_t size = chunks > kBlock / 4 ? chunks : kBlock;
    blocks_.push_back(std::unique_ptr<Sequences::ChunkAt[]>(new Sequences::ChunkAt[size]));
    allocated_ += size;
    if (size != kBlock) {  // a block of its own; the block under way stays under way
      return blocks_.back().get();
    }
    block_at_ = blocks_.back().get();
    block_left_ = size;
  }
  Sequences::ChunkAt* const result = block_at_;
  block_at_ += chunks;
  block_left_ -= chunks;
  return result;
}

std::size_t PairIndex::memory_bytes() const {
  return slots_.capacity() * sizeof(Entry) + allocated_ * sizeof(Sequences::ChunkAt);
}

Count PairIndex::build(Sequences& sequences,
                       const std::function<Count(Count largest)>& choose_floor) {
  reset(0);
  Count floor = 0;
  {
    PairCounter counter;
    sequences.for_each_pair([&](TokenId left, TokenId right, Count count, Sequences::ChunkAt at) {
      counter.add(Pair{left, right}.key(), count, at);
    });
    Count largest = 0;
    for (const PairCounter::Slot& slot : counter.slots) largest = std::max(largest, slot.count);
    floor = choose_floor(largest);
    std::size_t kept = 0;
    for (const PairCounter::Slot& slot : counter.slots) {
      kept += slot.key != kEmpty && slot.count >= floor;
    }
    reset(kept);
    for (const PairCounter::Slot& slot : counter.slots) {
      if (slot.key == kEmpty || slot.count < floor) continue;
      insert(slot.key, slot.count, {allocate(slot.chunk_count), 0});
    }
  }
  sequences.for_each_pair([&](TokenId left, TokenId right, Count, Sequences::ChunkAt at) {
    Entry* entry = find(Pair{left, right}.key());
    if (!entry) return;
    auto* chunks = const_cast<Sequences::ChunkAt*>(entry->chunks);
    if (entry->chunk_count > 0 && chunks[entry->chunk_count - 1] == at) return;
    chunks[entry->chunk_count++] = at;
  });
  return floor;
}

}  // namespace vocabshift
