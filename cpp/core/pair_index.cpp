#include "core/pair_index.h"

#include <algorithm>
#include <bit>

namespace vocabshift {

namespace {

using ChunkAt = Sequences::ChunkAt;
constexpr ChunkAt kNowhere = 0xFFFFFFFFu;

}  // namespace

PairIndex::PairIndex() { reset(0); }

void PairIndex::reset(std::size_t expected) {
  slots_.assign(std::bit_ceil(expected * 2 + 1024), Entry{kEmpty, 0, nullptr, 0, 0});
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

Count PairIndex::build(Sequences& sequences, TokenId vocabulary_size,
                       const std::function<Count(Count largest)>& choose_floor,
                       const Pulse& pulse) {
  reset(0);
  return vocabulary_size <= kBytes ? build_from_bytes(sequences, choose_floor, pulse)
                                   : build_sparse(sequences, choose_floor, pulse);
}

// Of 256 tokens all pairs fit into one table, which is indexed instead of searched.
Count PairIndex::build_from_bytes(Sequences& sequences,
                                  const std::function<Count(Count largest)>& choose_floor,
                       const Pulse& pulse) {
  struct Cell {
    Count count = 0;
    ChunkAt last_chunk = kNowhere;
    std::uint32_t chunk_count = 0;
  };
  std::vector<Cell> cells(std::size_t{kBytes} * kBytes);
  sequences.for_each_pair(pulse, [&](TokenId left, TokenId right, Count count, ChunkAt at) {
    Cell& cell = cells[left * kBytes + right];
    cell.count += count;
    cell.chunk_count += cell.last_chunk != at;
    cell.last_chunk = at;
  });
  Count largest = 0;
  for (const Cell& cell : cells) largest = std::max(largest, cell.count);
  const Count floor = choose_floor(largest);

  ChunkAt ignored[2];
  struct ListEnd {
    ChunkAt* last;
    std::uint32_t is_kept;
  };
  std::vector<ListEnd> ends(cells.size(), ListEnd{ignored, 0});
  for (TokenId left = 0; left < kBytes; ++left) {
    for (TokenId right = 0; right < kBytes; ++right) {
      const Cell& cell = cells[left * kBytes + right];
      if (cell.count == 0 || cell.count < floor) continue;
      ChunkAt* const list = allocate(cell.chunk_count + std::size_t{1});
      *list = kNowhere;
      insert(Pair{left, right}.key(), cell.count, {list + 1, cell.chunk_count});
      ends[left * kBytes + right] = {list, 1};
    }
  }
  sequences.for_each_pair(pulse, [&](TokenId left, TokenId right, Count, ChunkAt at) {
    ListEnd& end = ends[left * kBytes + right];
    end.last += static_cast<std::uint32_t>(*end.last != at) & end.is_kept;
    *end.last = at;
  });
  return floor;
}

// Most distinct pairs are rare. A sketch of counts, which only overestimates, tells which pairs
// can reach the floor; only these are counted one by one.
Count PairIndex::build_sparse(Sequences& sequences,
                              const std::function<Count(Count largest)>& choose_floor,
                       const Pulse& pulse) {
  std::vector<Count> sketch(std::clamp<std::size_t>(
      std::bit_ceil(sequences.arena_end() / std::size_t{8}), 1 << 10, 1 << 20));
  const auto cell_of = [&](std::uint64_t hash) -> Count& {
    return sketch[hash >> 32 & (sketch.size() - 1)];
  };
  sequences.for_each_pair(pulse, [&](TokenId left, TokenId right, Count count, ChunkAt) {
    cell_of(hash_pair(Pair{left, right}.key())) += count;
  });
  const Count floor = choose_floor(*std::max_element(sketch.begin(), sketch.end()));
  sequences.for_each_pair(pulse, [&](TokenId left, TokenId right, Count count, ChunkAt at) {
    const std::uint64_t key = Pair{left, right}.key();
    if (cell_of(hash_pair(key)) < floor) return;
    Entry* entry = &slot_for(key);
    if (entry->key == kEmpty) {
      if ((size_ + 1) * 2 > slots_.size()) {
        grow();
        entry = &slot_for(key);
      }
      ++size_;
      *entry = {key, 0, nullptr, 0, kNowhere};
    }
    entry->count += count;
    entry->chunk_count += entry->last_chunk != at;
    entry->last_chunk = at;
  });
  keep_from(floor);
  sequences.for_each_pair(pulse, [&](TokenId left, TokenId right, Count, ChunkAt at) {
    const std::uint64_t key = Pair{left, right}.key();
    if (cell_of(hash_pair(key)) < floor) return;
    Entry* entry = find(key);
    if (!entry) return;
    auto* chunks = const_cast<ChunkAt*>(entry->chunks);
    if (entry->chunk_count > 0 && chunks[entry->chunk_count - 1] == at) return;
    chunks[entry->chunk_count++] = at;
  });
  return floor;
}

// Forgets the pairs below the floor and makes room for the lists of the others.
void PairIndex::keep_from(Count floor) {
  BigVector<Entry> kept;
  for (const Entry& entry : slots_) {
    if (entry.key != kEmpty && entry.count >= floor) kept.push_back(entry);
  }
  reset(kept.size());
  for (const Entry& entry : kept) insert(entry.key, entry.count, {allocate(entry.chunk_count), 0});
}

}  // namespace vocabshift
