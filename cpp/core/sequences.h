// The corpus being merged: token sequences with counts, rewritten in place as pairs merge.
//
// Every sequence is one or more chunks of at most kChunkTokens tokens in one arena of 32-bit
// words, so that a merge touches one or two cache lines per occurrence, and a sequence of a
// hundred million tokens costs no more per occurrence than a short one.
//
// Chunk layout: [weight low][weight high][occurrences low][occurrences high][state][tokens …]
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/big_memory.h"
#include "core/types.h"

namespace vocabshift {

class Sequences {
 public:
  static constexpr std::uint32_t kChunkTokens = 64;
  static constexpr std::uint32_t kHeader = 5;  // words before a chunk's tokens
  using ChunkAt = std::uint32_t;               // index of a chunk's header in the arena

  // A view of one chunk. `joined_*`: the sequence goes on in the neighbouring chunk.
  struct Chunk {
    std::uint32_t* header;
    Count weight() const { return header[0] | static_cast<Count>(header[1]) << 32; }
    Count occurrences() const { return header[2] | static_cast<Count>(header[3]) << 32; }
    std::uint32_t length() const { return header[4] & 0xFF; }
    std::uint32_t capacity() const { return (header[4] >> 8) & 0xFF; }
    bool joined_before() const { return header[4] >> 16 & 1; }
    bool joined_after() const { return header[4] >> 17 & 1; }
    TokenId* tokens() const { return header + kHeader; }
    void set_length(std::uint32_t length) const { header[4] = (header[4] & ~0xFFu) | length; }
  };

  // Appends a sequence. `weight` decides which pairs merge; `occurrences` (the same where nothing
  // is weighted) only counts tokens. Sequences of fewer than two tokens can never merge and may be
  // left out by the caller.
  void add(std::span<const TokenId> tokens, Count weight, Count occurrences);

  Chunk chunk(ChunkAt at) { return {arena_.data() + at}; }
  ChunkAt chunk_before(ChunkAt at) const { return at - kHeader - kChunkTokens; }
  ChunkAt chunk_after(ChunkAt at) { return at + kHeader + chunk(at).capacity(); }
  ChunkAt arena_end() const { return static_cast<ChunkAt>(arena_.size()); }
  void prefetch(ChunkAt at) const { __builtin_prefetch(arena_.data() + at, 1); }

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
      const Count weight = here.weight();
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

  void reserve(std::size_t words) { arena_.reserve(words); }
  std::size_t memory_bytes() const { return arena_.capacity() * sizeof(std::uint32_t); }

 private:
  // Writes a sequence at `at`, where there must be room, and returns the end of it.
  ChunkAt put(ChunkAt at, std::span<const TokenId> tokens, Count weight, Count occurrences);

  BigVector<std::uint32_t> arena_;
};

}  // namespace vocabshift
