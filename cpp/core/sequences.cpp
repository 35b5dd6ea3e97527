#include "core/sequences.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace vocabshift {

void Sequences::add(std::span<const TokenId> tokens, Count weight, Count occurrences) {
  std::size_t done = 0;
  do {
    const std::size_t length = std::min<std::size_t>(kChunkTokens, tokens.size() - done);
    const bool before = done > 0;
    const bool after = done + length < tokens.size();
    if (arena_.size() + kHeader + length > std::numeric_limits<ChunkAt>::max()) {
      throw std::length_error(
          "the corpus holds more than 4 billion distinct-word tokens; train on counts of a sample");
    }
    for (const Count value : {weight, occurrences}) {
      arena_.push_back(static_cast<std::uint32_t>(value));
      arena_.push_back(static_cast<std::uint32_t>(value >> 32));
    }
    arena_.push_back(static_cast<std::uint32_t>(length | length << 8 |
                                                static_cast<std::size_t>(before) << 16 |
                                                static_cast<std::size_t>(after) << 17));
    arena_.insert(arena_.end(), tokens.begin() + static_cast<std::ptrdiff_t>(done),
                  tokens.begin() + static_cast<std::ptrdiff_t>(done + length));
    done += length;
  } while (done < tokens.size());
}

TokenId Sequences::last_token_before(ChunkAt at, ChunkAt* where) {
  while (chunk(at).joined_before()) {
    at = chunk_before(at);
    const Chunk here = chunk(at);
    if (here.length() > 0) {
      *where = at;
      return here.tokens()[here.length() - 1];
    }
  }
  return kNoToken;
}

TokenId Sequences::first_token_after(ChunkAt at, ChunkAt* where) {
  while (chunk(at).joined_after()) {
    at = chunk_after(at);
    const Chunk here = chunk(at);
    if (here.length() > 0) {
      *where = at;
      return here.tokens()[0];
    }
  }
  return kNoToken;
}

void Sequences::remove_first_token(ChunkAt at) {
  const Chunk here = chunk(at);
  const std::uint32_t length = here.length();
  std::memmove(here.tokens(), here.tokens() + 1, (length - 1) * sizeof(TokenId));
  here.set_length(length - 1);
}

void Sequences::compact() {
  Sequences compacted;
  for_each_sequence([&](std::span<const TokenId> tokens, const Chunk& chunk) {
    if (tokens.size() > 1) compacted.add(tokens, chunk.weight(), chunk.occurrences());
  });
  compacted.arena_.shrink_to_fit();
  arena_ = std::move(compacted.arena_);
}

}  // namespace vocabshift
