#include "core/pair_index.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/big_memory.h"
#include "core/filled.h"
#include "core/stop.h"
#include "core/threads.h"

namespace vocabshift {

namespace {

using ChunkAt = Sequences::ChunkAt;
constexpr ChunkAt kNowhere = 0xFFFFFFFFu;

}  // namespace

PairIndex::PairIndex() { reset(0); }

void PairIndex::reset(std::size_t expected) {
  slots_.assign(std::bit_ceil(expected * 2 + 1024), kNoEntry);
  size_ = 0;
  blocks_.clear();
  large_.clear();
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
  auto old = filled<BigVector<Entry>>(slots_.size() * 2, kNoEntry);
  old.swap(slots_);
  for (const Entry& entry : old) {
    may_stop(4);
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
  entry = {key, count, {chunks.data()}, static_cast<std::uint32_t>(chunks.size())};
}

Sequences::ChunkAt* PairIndex::allocate(std::size_t chunks) {
  if (chunks > kLarge) {
    std::unique_ptr<ChunkAt[]> list(new ChunkAt[chunks]);
    ChunkAt* const result = list.get();
    large_.emplace(result, std::move(list));
    allocated_ += chunks;
    return result;
  }
  if (chunks > block_left_) {
    blocks_.push_back(std::unique_ptr<ChunkAt[]>(new ChunkAt[kBlock]));
    allocated_ += kBlock;
    block_at_ = blocks_.back().get();
    block_left_ = kBlock;
  }
  ChunkAt* const result = block_at_;
  block_at_ += chunks;
  block_left_ -= chunks;
  return result;
}

void PairIndex::remove(Entry* entry) {
  entry->count = 0;  // the place in the table is given away when it grows
  if (entry->chunk_count <= kLarge) return;
  allocated_ -= entry->chunk_count;
  large_.erase(entry->chunks);
}

std::size_t PairIndex::memory_bytes() const {
  return slots_.capacity() * sizeof(Entry) + allocated_ * sizeof(Sequences::ChunkAt);
}

Count PairIndex::build(Sequences& sequences, TokenId vocabulary_size,
                       const std::function<Count(Count largest)>& choose_floor,
                       std::size_t threads) {
  reset(0);
  if (sequences.has_sections()) {
    const Count floor = choose_floor(1);
    count_pairs(sequences, floor, Bits(1, [](std::size_t) { return true; }), 1);
    return floor;
  }
  return vocabulary_size <= kBytes ? build_from_bytes(sequences, choose_floor, threads)
                                   : build_sparse(sequences, choose_floor);
}

// Of 256 tokens all pairs fit into one table, which is indexed instead of searched. Each thread has
// its own for its part of the chunks; a list is that of the first part, then that of the second …
// Of a short text most of the table is never touched, and so takes no memory.
Count PairIndex::build_from_bytes(Sequences& sequences,
                                  const std::function<Count(Count largest)>& choose_floor,
                                  std::size_t threads) {
  struct Cell {
    Count count;
    ChunkAt after_last;  // one more than the last chunk; 0: none yet
    std::uint32_t chunk_count;
  };
  struct ListEnd {
    ChunkAt* next;
    ChunkAt after_last;
    std::uint32_t is_kept;
  };
  constexpr std::size_t kPairs = std::size_t{kBytes} * kBytes;
  struct Part {
    ZeroedArray<Cell> cells{kPairs};
    ZeroedArray<ListEnd> ends{kPairs};
    std::array<bool, kBytes> has_left{};
  };
  const auto place_of = [](std::uint64_t key) { return key >> 24 | (key & 255); };
  const std::vector<ChunkAt> borders = sequences.borders(threads);
  std::vector<Part> parts(threads);
  parallel_for(threads, [&](std::size_t i) {
    ZeroedArray<Cell>& cells = parts[i].cells;
    std::array<bool, kBytes> has_left{};
    sequences.for_each_pair_in(borders[i], borders[i + 1],
                               [&](std::uint64_t key, Count count, ChunkAt at) {
                                 Cell& cell = cells[place_of(key)];
                                 cell.count += count;
                                 cell.chunk_count += cell.after_last != at + 1;
                                 cell.after_last = at + 1;
                                 has_left[key >> 32] = true;
                               });
    parts[i].has_left = has_left;
  });
  const auto for_each_pair = [&](auto&& visit) {  // that occurs, with its count
    for (std::size_t left = 0; left < kBytes; ++left) {
      const auto has_left = [&](const Part& part) { return part.has_left[left]; };
      if (std::none_of(parts.begin(), parts.end(), has_left)) continue;
      for (std::size_t place = left * kBytes; place < (left + 1) * kBytes; ++place) {
        Count count = 0;
        for (const Part& part : parts) count += part.cells[place].count;
        if (count > 0) visit(place, count);
      }
    }
  };
  Count largest = 0;
  for_each_pair([&](std::size_t, Count count) { largest = std::max(largest, count); });
  const Count floor = choose_floor(largest);

  for_each_pair([&](std::size_t place, Count count) {
    if (count < floor) return;
    std::uint32_t chunks = 0;
    for (const Part& part : parts) chunks += part.cells[place].chunk_count;
    ChunkAt* list = allocate(chunks);
    const Pair pair{static_cast<TokenId>(place / kBytes), static_cast<TokenId>(place % kBytes)};
    insert(pair.key(), count, {list, chunks});
    for (Part& part : parts) {
      part.ends[place] = {list, 0, 1};
      list += part.cells[place].chunk_count;
    }
  });
  parallel_for(threads, [&](std::size_t i) {
    ZeroedArray<ListEnd>& ends = parts[i].ends;
    ChunkAt ignored;
    sequences.for_each_pair_in(
        borders[i], borders[i + 1], [&](std::uint64_t key, Count, ChunkAt at) {
          ListEnd& end = ends[place_of(key)];
          const std::uint32_t is_new =
              static_cast<std::uint32_t>(end.after_last != at + 1) & end.is_kept;
          *(is_new ? end.next : &ignored) = at;
          end.next += is_new;
          end.after_last = at + 1;
        });
  });
  return floor;
}

std::size_t PairIndex::filter_size(const Sequences& sequences) {
  return std::clamp<std::size_t>(std::bit_ceil(sequences.arena_end() / std::size_t{8}), 1 << 10,
                                 1 << 20);
}

// Most distinct pairs are rare. A sketch of counts, which only overestimates, shows which pairs
// can reach the floor; only these are counted one by one.
Count PairIndex::build_sparse(Sequences& sequences,
                              const std::function<Count(Count largest)>& choose_floor) {
  BigVector<Count> sketch(filter_size(sequences), 0);
  sequences.for_each_pair([&](std::uint64_t key, Count count, ChunkAt) {
    sketch[filter_place(key, sketch.size())] += count;
  });
  const Count floor = choose_floor(*std::max_element(sketch.begin(), sketch.end()));
  const Bits filter(sketch.size(), [&](std::size_t at) { return sketch[at] >= floor; });
  count_pairs(sequences, floor, filter, sketch.size());
  return floor;
}

void PairIndex::rebuild(Sequences& sequences, Count floor) {
  const std::size_t size = filter_size(sequences);
  Bits filter(size);
  for_each([&](const Entry& entry) {
    if (entry.count >= floor) filter.set(filter_place(entry.key, size));
  });
  reset(0);
  count_pairs(sequences, floor, filter, size);
}

// `may_reach_floor`, by filter_place: no pair of the floor's count or more is missing.
void PairIndex::count_pairs(Sequences& sequences, Count floor, const Bits& may_reach_floor,
                            std::size_t filter_size) {
  sequences.for_each_pair([&](std::uint64_t key, Count count, ChunkAt at) {
    if (!may_reach_floor[filter_place(key, filter_size)]) return;
    Entry* entry = &slot_for(key);
    if (entry->key == kEmpty) {
      if ((size_ + 1) * 2 > slots_.size()) {
        grow();
        entry = &slot_for(key);
      }
      ++size_;
      *entry = {key, 0, {.last_chunk = kNowhere}, 0};
    }
    entry->count += count;
    entry->chunk_count += entry->last_chunk != at;
    entry->last_chunk = at;
  });
  keep_from(floor);
  sequences.for_each_pair([&](std::uint64_t key, Count, ChunkAt at) {
    if (!may_reach_floor[filter_place(key, filter_size)]) return;
    Entry* entry = find(key);
    if (!entry) return;
    auto* chunks = const_cast<ChunkAt*>(entry->chunks);
    if (entry->chunk_count > 0 && chunks[entry->chunk_count - 1] == at) return;
    chunks[entry->chunk_count++] = at;
  });
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
