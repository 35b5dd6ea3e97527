#include "core/sequences.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace vocabshift {

void Sequences::add(std::span<const TokenId> tokens, Count weight, Count occurrences) {
  const std::size_t chunks = (tokens.size() + kChunkTokens - 1) / kChunkTokens;
  const std::size_t end = arena_.size() + tokens.size() + chunks * kHeader;
  if (end > std::numeric_limits<ChunkAt>::max()) {
    throw std::length_error(
        "the distinct words of the corpus hold more than 4 billion tokens; "
        "train on a sample");
  }
  const ChunkAt at = arena_end();
  arena_.resize(end);
  put(at, tokens, weight, occurrences);
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
  std::vector<TokenId> tokens;
  ChunkAt write = 0;
  for (ChunkAt at = 0; at < arena_end();) {
    tokens.clear();
    const Count weight = chunk(at).weight();
    const Count occurrences = chunk(at).occurrences();
    for (bool goes_on = true; goes_on; at = chunk_after(at)) {
      const Chunk here = chunk(at);
      tokens.insert(tokens.end(), here.tokens(), here.tokens() + here.length());
      goes_on = here.joined_after();
    }
    // What is written never reaches what is still to be read: it takes no more room than the
    // sequence had, which is in `tokens` now.
    if (tokens.size() > 1) write = put(write, tokens, weight, occurrences);
  }
  arena_.resize(write);
}

Sequences::ChunkAt Sequences::put(ChunkAt at, std::span<const TokenId> tokens, Count weight,
                                  Count occurrences) {
  for (std::size_t done = 0; done < tokens.size();) {
    const std::size_t length = std::min<std::size_t>(kChunkTokens, tokens.size() - done);
    const bool before = done > 0;
    const bool after = done + length < tokens.size();
    std::uint32_t* header = arena_.data() + at;
    header[0] = static_cast<std::uint32_t>(weight);
    header[1] = static_cast<std::uint32_t>(weight >> 32);
    header[2] = static_cast<std::uint32_t>(occurrences);
    header[3] = static_cast<std::uint32_t>(occurrences >> 32);
    header[4] =
        static_cast<std::uint32_t>(length | length << 8 | static_cast<std::size_t>(before) << 16 |
                                   static_cast<std::size_t>(after) << 17);
    std::copy_n(tokens.data() + done, length, header + kHeader);
    at += static_cast<ChunkAt>(kHeader + length);
    done += length;
  }
  return at;
}

}  // namespace vocabshift
