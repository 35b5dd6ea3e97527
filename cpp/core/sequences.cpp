#include "core/sequences.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "core/hash.h"

namespace vocabshift {

void Sequences::add(std::span<const TokenId> tokens, Counts counts) {
  const ChunkAt at = arena_end();
  lay_out(words_for(tokens.size()));
  put(at, tokens, counts);
}

void Sequences::lay_out(std::uint64_t words) {
  const std::uint64_t end = arena_.size() + words;
  if (end > std::numeric_limits<ChunkAt>::max()) {
    throw std::length_error(
        "the distinct words of the corpus hold more than 4 billion tokens; "
        "train on a sample");
  }
  arena_.resize(end);
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
    const std::uint32_t count = chunk(at).header[0];
    const std::uint32_t interned = chunk(at).header[1] & kInterned;
    for (bool goes_on = true; goes_on; at = chunk_after(at)) {
      const Chunk here = chunk(at);
      tokens.insert(tokens.end(), here.tokens(), here.tokens() + here.length());
      goes_on = here.joined_after();
    }
    // What is written never reaches what is still to be read: it takes no more room than the
    // sequence had, which is in `tokens` now.
    if (tokens.size() > 1) write = write_chunks(write, tokens, count, interned);
  }
  arena_.resize(write);
}

Sequences::ChunkAt Sequences::put(ChunkAt at, std::span<const TokenId> tokens, Counts counts) {
  const bool is_plain = counts.weight == counts.occurrences &&
                        counts.weight <= std::numeric_limits<std::uint32_t>::max();
  if (is_plain) return write_chunks(at, tokens, static_cast<std::uint32_t>(counts.weight), 0);
  return write_chunks(at, tokens, intern(counts), kInterned);
}

Sequences::ChunkAt Sequences::write_chunks(ChunkAt at, std::span<const TokenId> tokens,
                                           std::uint32_t count, std::uint32_t interned) {
  for (std::size_t done = 0; done < tokens.size();) {
    const auto length =
        static_cast<std::uint32_t>(std::min<std::size_t>(kChunkTokens, tokens.size() - done));
    std::uint32_t* header = arena_.data() + at;
    header[0] = count;
    header[1] = length | length << 8 | interned | (done > 0 ? kJoinedBefore : 0) |
                (done + length < tokens.size() ? kJoinedAfter : 0);
    std::copy_n(tokens.data() + done, length, header + kHeader);
    at += kHeader + length + kTokensBehind;
    done += length;
  }
  return at;
}

std::size_t Sequences::HashCounts::operator()(const Counts& counts) const {
  return mix(counts.weight ^ kSeed0, counts.occurrences ^ kSeed1);
}

std::uint32_t Sequences::intern(Counts counts) {
  const auto [at, is_new] =
      place_of_.try_emplace(counts, static_cast<std::uint32_t>(interned_.size()));
  if (is_new) interned_.push_back(counts);
  return at->second;
}

}  // namespace vocabshift
