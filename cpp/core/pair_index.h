// Pair -> exact count and the chunks where it may stand, for the pairs that can still matter.
//
// A pair's count never grows after the merge that made its younger token (every later merge only
// consumes its parts), so a pair that is born below the floor can be forgotten: it will never
// reach the floor. The merge loop lowers the floor, and builds the index anew, when no pair is
// left above it. The index is therefore small, and so is the work per merge; no result depends on
// the floor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/bits.h"
#include "core/hash.h"
#include "core/platform.h"
#include "core/sequences.h"
#include "core/types.h"

namespace vocabshift {

class PairIndex {
 public:
  struct Entry {        // half a cache line
    std::uint64_t key;  // Pair::key()
    Count count;
    union {
      const Sequences::ChunkAt* chunks;  // ascending; some may not hold the pair any more
      Sequences::ChunkAt last_chunk;     // while chunks are counted: the last of them
    };
    std::uint32_t chunk_count;
  };

  PairIndex();

  // Counts all pairs of `sequences` and keeps those of at least the floor, which is chosen once the
  // largest count is known (of sequences in sections it is not); returns it. Keys hold the section.
  // Up to `threads` threads, where all tokens are bytes.
  Count build(Sequences& sequences, TokenId vocabulary_size,
              const std::function<Count(Count largest)>& choose_floor, std::size_t threads = 1);

  // The same pairs, where nothing has changed but where their chunks are.
  void rebuild(Sequences& sequences, Count floor);

  // nullptr where the pair is not kept.
  Entry* find(std::uint64_t key);
  void prefetch(std::uint64_t key) const {
    prefetch_to_read(&slots_[hash_pair(key) & (slots_.size() - 1)]);
  }
  // The key must not be there yet; `chunks` must live in this index (see allocate).
  void insert(std::uint64_t key, Count count, std::span<const Sequences::ChunkAt> chunks);

  // Room for the chunk list of a new pair; lives until the next build(), or remove().
  Sequences::ChunkAt* allocate(std::size_t chunks);

  // Takes a merged pair out; its entry is not valid any more.
  void remove(Entry* entry);

  template <class F>
  void for_each(F&& visit) const {
    for (const Entry& entry : slots_) {
      if (entry.key != kEmpty) visit(entry);
    }
  }
  std::size_t size() const { return size_; }
  std::size_t memory_bytes() const;

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  static constexpr Entry kNoEntry{kEmpty, 0, {nullptr}, 0};
  static constexpr std::size_t kBlock = std::size_t{1} << 16;  // chunk numbers per block
  static constexpr std::size_t kLarge = kBlock / 4;            // lists above this own a block

  static constexpr TokenId kBytes = 256;

  Count build_from_bytes(Sequences& sequences,
                         const std::function<Count(Count largest)>& choose_floor,
                         std::size_t threads);
  Count build_sparse(Sequences& sequences, const std::function<Count(Count largest)>& choose_floor);
  static std::size_t filter_size(const Sequences& sequences);
  static std::size_t filter_place(std::uint64_t key, std::size_t size) {
    return hash_pair(key) >> 32 & (size - 1);
  }
  void count_pairs(Sequences& sequences, Count floor, const Bits& may_reach_floor,
                   std::size_t filter_size);
  void keep_from(Count floor);
  void reset(std::size_t expected);
  void grow();
  Entry& slot_for(std::uint64_t key);

  BigVector<Entry> slots_;  // open addressing
  std::size_t size_ = 0;
  std::vector<std::unique_ptr<Sequences::ChunkAt[]>> blocks_;
  std::unordered_map<const Sequences::ChunkAt*, std::unique_ptr<Sequences::ChunkAt[]>> large_;
  std::size_t block_left_ = 0;  // free numbers in the last block
  std::size_t allocated_ = 0;   // numbers in all blocks
  Sequences::ChunkAt* block_at_ = nullptr;
};

}  // namespace vocabshift
