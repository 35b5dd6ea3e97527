// The corpus being merged: token sequences with counts, rewritten in place as pairs merge.
//
// Every sequence is one or more chunks of at most kChunkTokens tokens in one arena of 32-bit
// words, so that a merge touches one or two cache lines per occurrence, and a sequence of a
// hundred million tokens costs no more per occurrence than a short one.
//
// Chunk layout: [count][state][tokens …][room behind, for whole-block reads and writes]
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/big_memory.h"
#include "core/match_mask.h"
#include "core/types.h"

namespace vocabshift {

class Sequences {
 public:
  static constexpr std::uint32_t kChunkTokens = 64;
  using ChunkAt = std::uint32_t;  // index of a chunk's header in the arena

  // What a sequence counts: `weight` decides which pairs merge; `occurrences` (the same where
  // nothing is weighted) only counts tokens.
  struct Counts {
    Count weight;
    Count occurrences;
    friend bool operator==(const Counts&, const Counts&) = default;
  };

  // A view of one chunk. `joined_*`: the sequence goes on in the neighbouring chunk.
  struct Chunk {
    std::uint32_t* header;
    std::uint32_t length() const { return header[1] & 0xFF; }
    std::uint32_t capacity() const { return (header[1] >> 8) & 0xFF; }
    bool joined_before() const { return header[1] & kJoinedBefore; }
    bool joined_after() const { return header[1] & kJoinedAfter; }
    bool is_whole() const { return (header[1] & (kJoinedBefore | kJoinedAfter)) == 0; }
    TokenId* tokens() const { return header + kHeader; }
    void set_length(std::uint32_t length) const { header[1] = (header[1] & ~0xFFu) | length; }
  };

  // Appends a sequence. Sequences of fewer than two tokens can never merge and may be left out by
  // the caller.
  void add(std::span<const TokenId> tokens, Counts counts);
  void add(std::span<const TokenId> tokens, Count weight, Count occurrences) {
    add(tokens, {weight, occurrences});
  }

  // The same in two steps, for a caller who wants another order: lay_out makes room for sequences
  // that take `words` in all, put writes one into it and returns its end. No gap may be left.
  void lay_out(std::uint64_t words);
  ChunkAt put(ChunkAt at, std::span<const TokenId> tokens, Counts counts);
  // Arena words that a sequence takes.
  static constexpr std::uint64_t words_for(std::uint64_t tokens) {
    return tokens + (tokens + kChunkTokens - 1) / kChunkTokens * (kHeader + kTokensBehind);
  }

  Chunk chunk(ChunkAt at) { return {arena_.data() + at}; }
  Counts counts(Chunk chunk) const {
    if (chunk.header[1] & kInterned) return interned_[chunk.header[0]];
    return {chunk.header[0], chunk.header[0]};
  }
  ChunkAt chunk_before(ChunkAt at) const { return at - kHeader - kChunkTokens - kTokensBehind; }
  ChunkAt chunk_after(ChunkAt at) { return at + kHeader + chunk(at).capacity() + kTokensBehind; }
  ChunkAt arena_end() const { return static_cast<ChunkAt>(arena_.size()); }
  void prefetch(ChunkAt at) const {
    __builtin_prefetch(arena_.data() + at, 1);
    __builtin_prefetch(arena_.data() + at + 16, 1);  // a cache line further on
  }

  // Nearest token of the same sequence before or after a chunk, or kNoToken; `where` is set to the
  // chunk that holds it. Chunks that merges have emptied are stepped over.
  TokenId last_token_before(ChunkAt at, ChunkAt* where);
  TokenId first_token_after(ChunkAt at, ChunkAt* where);
  void remove_first_token(ChunkAt at);

  // Calls visit(left, right, weight, chunk) for every adjacent pair, overlaps included; `chunk` is
  // the one that holds the left token.
  template <class F>
  void for_each_pair(F&& visit) {
    for (ChunkAt at = 0; at < arena_end(); at = chunk_after(at)) {
      const Chunk here = chunk(at);
      const std::uint32_t length = here.length();
      const TokenId* tokens = here.tokens();
      const Count weight = counts(here).weight;
      for (std::uint32_t i = 0; i + 1 < length; ++i) visit(tokens[i], tokens[i + 1], weight, at);
      if (length > 0 && here.joined_after()) {
        ChunkAt where;
        const TokenId next = first_token_after(at, &where);
        if (next != kNoToken) visit(tokens[length - 1], next, weight, at);
      }
    }
  }

  // Closes the holes that merges left, so that later passes read less. Chunk positions change.
  void compact();

  std::size_t memory_bytes() const { return arena_.capacity() * sizeof(std::uint32_t); }

 private:
  static constexpr std::uint32_t kHeader = 2;  // words before a chunk's tokens
  static constexpr std::uint32_t kJoinedBefore = 1u << 16;
  static constexpr std::uint32_t kJoinedAfter = 1u << 17;
  static constexpr std::uint32_t kInterned = 1u << 18;  // header[0] is a place in interned_

  struct HashCounts {
    std::size_t operator()(const Counts& counts) const;
  };

  std::uint32_t intern(Counts counts);
  ChunkAt write_chunks(ChunkAt at, std::span<const TokenId> tokens, std::uint32_t count,
                       std::uint32_t interned);

  BigVector<std::uint32_t> arena_;
  // Counts that are weighted, or too large for one word: as many as differ, which is few.
  std::vector<Counts> interned_;
  std::unordered_map<Counts, std::uint32_t, HashCounts> place_of_;
};

}  // namespace vocabshift
