// The corpus being merged: token sequences with counts, rewritten in place as pairs merge.
//
// Every sequence is one or more chunks of at most kChunkTokens tokens in one arena of 32-bit
// words, so that a merge touches one or two cache lines per occurrence, and a sequence of a
// hundred million tokens costs no more per occurrence than a short one. Tokens take 16 bits as long
// as all ids fit (narrow), 32 bits after that: what reads them has the type as a parameter.
//
// Chunk layout: [count][state][tokens …][room after, see match_mask.h]
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/big_memory.h"
#include "core/match_mask.h"
#include "core/platform.h"
#include "core/stop.h"
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

  static constexpr ChunkAt kSeamWords = 128;  // more than any chunk and what is read after it
  static constexpr TokenId kNarrowTokens = 1u << 16;  // ids below this fit into 16 bits
  using Narrow = std::uint16_t;
  using Wide = std::uint32_t;

  // Sequences may be of sections, whose pairs count apart: one for each language, say.
  static constexpr std::uint32_t kSections = 1u << 13;

  // A view of one chunk. `joined_*`: the sequence goes on in the neighbouring chunk.
  struct Chunk {
    std::uint32_t* header;
    std::uint32_t length() const { return header[1] & 0xFF; }
    std::uint32_t words() const { return (header[1] >> 8) & 0xFF; }  // header and room included
    bool joined_before() const { return header[1] & kJoinedBefore; }
    bool joined_after() const { return header[1] & kJoinedAfter; }
    std::uint32_t section() const { return header[1] >> kSectionShift; }
    bool is_whole() const { return (header[1] & (kJoinedBefore | kJoinedAfter)) == 0; }
    template <class Token>
    Token* tokens() const {
      return reinterpret_cast<Token*>(header + kHeader);
    }
    void set_length(std::uint32_t length) const { header[1] = (header[1] & ~0xFFu) | length; }
  };

  // For ids below `token_limit`; more make it necessary to widen().
  explicit Sequences(std::size_t token_limit = kNoToken)
      : is_narrow_(token_limit <= kNarrowTokens) {}

  bool is_narrow() const { return is_narrow_; }
  bool has_sections() const { return has_sections_; }

  // Appends a sequence. Sequences of fewer than two tokens can never merge and may be left out by
  // the caller.
  void add(std::span<const TokenId> tokens, Counts counts);
  void add(std::span<const TokenId> tokens, Count weight, Count occurrences) {
    add(tokens, {weight, occurrences});
  }

  // Whether a sequence holds its counts itself. Sequences of such counts, and of section 0, may be
  // put by several threads at the same time.
  static bool is_plain(Counts counts) {
    return counts.weight == counts.occurrences && counts.weight >> 32 == 0;
  }

  // The same in two steps, for a caller who wants another order: lay_out makes room for sequences
  // that take `words` in all, put writes one of `length` tokens token_at(0), token_at(1) … into it
  // and returns its end. No gap may be left.
  void lay_out(std::uint64_t words);
  template <class F>
  ChunkAt put(ChunkAt at, std::size_t length, Counts counts, F&& token_at,
              std::uint32_t section = 0) {
    CountWord count = count_word(counts);
    count.flags |= section << kSectionShift;
    if (section > 0) has_sections_ = true;
    return is_narrow_ ? put_as<Narrow>(at, length, count, token_at)
                      : put_as<Wide>(at, length, count, token_at);
  }
  // Arena words that a sequence takes.
  std::uint64_t words_for(std::uint64_t tokens) const {
    const std::uint64_t rest = tokens % kChunkTokens;
    return tokens / kChunkTokens * chunk_words(kChunkTokens) + (rest ? chunk_words(rest) : 0);
  }

  Chunk chunk(ChunkAt at) { return {reinterpret_cast<std::uint32_t*>(arena_.data()) + at}; }
  Counts counts(Chunk chunk) const {
    if (chunk.header[1] & kInterned) return interned_[chunk.header[0]];
    return {chunk.header[0], chunk.header[0]};
  }
  ChunkAt chunk_before(ChunkAt at) const {
    return at - static_cast<ChunkAt>(chunk_words(kChunkTokens));
  }
  ChunkAt chunk_after(ChunkAt at) { return at + chunk(at).words(); }
  ChunkAt arena_end() const { return end_; }
  void prefetch(ChunkAt at) const {
    prefetch_to_write(arena_.data() + std::size_t{4} * at);
    prefetch_to_write(arena_.data() + std::size_t{4} * at + 64);  // the next cache line
  }

  // Nearest token of the same sequence before or after a chunk, or kNoToken; `where` is set to the
  // chunk that holds it. Chunks that merges have emptied are stepped over.
  template <class Token>
  TokenId last_token_before(ChunkAt at, ChunkAt* where);
  template <class Token>
  TokenId first_token_after(ChunkAt at, ChunkAt* where);
  template <class Token>
  void remove_first_token(ChunkAt at);

  // Calls visit(key, weight, chunk) for every adjacent pair, overlaps included: the key of the pair
  // in its section, and the chunk that holds the left token.
  template <class F>
  void for_each_pair(F&& visit) {
    for_each_pair_in(0, end_, visit);
  }
  // The same for the chunks from `begin` up to `end`, which borders() gave: several threads may.
  template <class F>
  void for_each_pair_in(ChunkAt begin, ChunkAt end, F&& visit) {
    is_narrow_ ? for_each_pair_of<Narrow>(begin, end, visit)
               : for_each_pair_of<Wide>(begin, end, visit);
  }
  // Chunks 0 = b[0] <= … <= b[parts] = arena_end() that cut the arena into about equal parts.
  std::vector<ChunkAt> borders(std::size_t parts);

  // Closes the holes that merges left, so that later passes read less. Chunk positions change.
  void compact();
  // compact(), and makes room for any id. Not narrow any more.
  void widen();

  std::size_t memory_bytes() const { return arena_.capacity(); }

 private:
  static constexpr std::size_t kStopEvery = 1 << 12;  // chunks
  static constexpr std::uint32_t kHeader = 2;         // words before a chunk's tokens
  static constexpr std::uint32_t kJoinedBefore = 1u << 16;
  static constexpr std::uint32_t kJoinedAfter = 1u << 17;
  static constexpr std::uint32_t kInterned = 1u << 18;  // header[0] is a place in interned_
  static constexpr std::uint32_t kSectionShift = 19;
  static constexpr std::uint32_t kKept = ~((1u << 18) - 1);  // the flags of a whole sequence

  // A chunk's first word: a count, or where both counts are.
  struct CountWord {
    std::uint32_t value;
    std::uint32_t flags;  // kInterned or 0, and the section
  };
  struct HashCounts {
    std::size_t operator()(const Counts& counts) const;
  };

  // Of a chunk of so many tokens, header and room after included.
  std::uint64_t chunk_words(std::uint64_t tokens) const {
    return kHeader + (tokens * (is_narrow_ ? 2 : 4) + kOverwrittenAfter + 3) / 4;
  }
  template <class F>
  void for_each_sequence(F&& visit);
  template <class Token, class F>
  void for_each_pair_of(ChunkAt begin, ChunkAt end, F& visit) {
    std::size_t chunks = 0;
    for (ChunkAt at = begin; at < end; at = chunk_after(at)) {
      if (++chunks % kStopEvery == 0) may_stop(kStopEvery * 16);
      const Chunk here = chunk(at);
      const std::uint32_t length = here.length();
      const Token* tokens = here.tokens<Token>();
      const Count weight = counts(here).weight;
      const std::uint64_t section = Pair::section_key(here.section());
      for (std::uint32_t i = 0; i + 1 < length; ++i) {
        visit(Pair{tokens[i], tokens[i + 1]}.key() | section, weight, at);
      }
      if (length > 0 && here.joined_after()) {
        ChunkAt where;
        const TokenId next = first_token_after<Token>(at, &where);
        if (next != kNoToken) visit(Pair{tokens[length - 1], next}.key() | section, weight, at);
      }
    }
  }
  CountWord count_word(Counts counts);
  template <class Token, class F>
  ChunkAt put_as(ChunkAt at, std::size_t length, CountWord count, F& token_at) {
    for (std::size_t begin = 0; begin < length; begin += kChunkTokens) {
      const std::size_t size = std::min<std::size_t>(kChunkTokens, length - begin);
      const auto words = static_cast<std::uint32_t>(chunk_words(size));
      may_stop(size * 4);
      const Chunk to = chunk(at);
      to.header[0] = count.value;
      to.header[1] = static_cast<std::uint32_t>(size) | words << 8 | count.flags |
                     (begin > 0 ? kJoinedBefore : 0) | (begin + size < length ? kJoinedAfter : 0);
      Token* const tokens = to.template tokens<Token>();
      for (std::size_t i = 0; i < size; ++i) tokens[i] = static_cast<Token>(token_at(begin + i));
      at += words;
    }
    return at;
  }

  BigVector<std::byte> arena_;  // end_ words, and what may be read after them
  ChunkAt end_ = 0;
  bool is_narrow_;
  bool has_sections_ = false;
  // Counts that are weighted, or too large for one word: as many as differ, which is few.
  std::vector<Counts> interned_;
  std::unordered_map<Counts, std::uint32_t, HashCounts> place_of_;
};

}  // namespace vocabshift
