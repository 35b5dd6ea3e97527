#include "core/sequences.h"

#include <algorithm>
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
  const std::uint64_t end = end_ + words;
  if (end > std::numeric_limits<ChunkAt>::max()) {
    throw std::length_error(
        "the distinct words of the corpus hold more than 4 billion tokens; "
        "train on a sample");
  }
  arena_.resize(end * sizeof(std::uint32_t) + kReadBehind);
  end_ = static_cast<ChunkAt>(end);
}

template <class Token>
TokenId Sequences::last_token_before(ChunkAt at, ChunkAt* where) {
  while (chunk(at).joined_before()) {
    at = chunk_before(at);
    const Chunk here = chunk(at);
    if (here.length() > 0) {
      *where = at;
      return here.tokens<Token>()[here.length() - 1];
    }
  }
  return kNoToken;
}

template <class Token>
TokenId Sequences::first_token_after(ChunkAt at, ChunkAt* where) {
  while (chunk(at).joined_after()) {
    at = chunk_after(at);
    const Chunk here = chunk(at);
    if (here.length() > 0) {
      *where = at;
      return here.tokens<Token>()[0];
    }
  }
  return kNoToken;
}

template <class Token>
void Sequences::remove_first_token(ChunkAt at) {
  const Chunk here = chunk(at);
  close_gap(here.tokens<Token>(), 0, here.length());
  here.set_length(here.length() - 1);
}

template TokenId Sequences::last_token_before<Sequences::Narrow>(ChunkAt, ChunkAt*);
template TokenId Sequences::last_token_before<Sequences::Wide>(ChunkAt, ChunkAt*);
template TokenId Sequences::first_token_after<Sequences::Narrow>(ChunkAt, ChunkAt*);
template TokenId Sequences::first_token_after<Sequences::Wide>(ChunkAt, ChunkAt*);
template void Sequences::remove_first_token<Sequences::Narrow>(ChunkAt);
template void Sequences::remove_first_token<Sequences::Wide>(ChunkAt);

// Calls visit(tokens, count word, interned flag) for each sequence as it is now; when it is called,
// the sequence has been read and may be overwritten.
template <class F>
void Sequences::for_each_sequence(F&& visit) {
  std::vector<TokenId> tokens;
  for (ChunkAt at = 0; at < end_;) {
    tokens.clear();
    const std::uint32_t count = chunk(at).header[0];
    const std::uint32_t interned = chunk(at).header[1] & kInterned;
    for (bool goes_on = true; goes_on; at = chunk_after(at)) {
      const Chunk here = chunk(at);
      if (is_narrow_) {
        tokens.insert(tokens.end(), here.tokens<Narrow>(), here.tokens<Narrow>() + here.length());
      } else {
        tokens.insert(tokens.end(), here.tokens<Wide>(), here.tokens<Wide>() + here.length());
      }
      goes_on = here.joined_after();
    }
    visit(tokens, count, interned);
  }
}

void Sequences::compact() {
  ChunkAt write = 0;
  // What is written never reaches what is still to be read: it takes no more room than the
  // sequence had.
  for_each_sequence(
      [&](std::span<const TokenId> tokens, std::uint32_t count, std::uint32_t interned) {
        if (tokens.size() > 1) write = write_chunks(write, tokens, count, interned);
      });
  end_ = write;
}

void Sequences::widen() {
  Sequences wide;
  std::uint64_t words = 0;
  for_each_sequence([&](std::span<const TokenId> tokens, std::uint32_t, std::uint32_t) {
    if (tokens.size() > 1) words += wide.words_for(tokens.size());
  });
  wide.lay_out(words);
  ChunkAt write = 0;
  for_each_sequence(
      [&](std::span<const TokenId> tokens, std::uint32_t count, std::uint32_t interned) {
        if (tokens.size() > 1) write = wide.write_chunks(write, tokens, count, interned);
      });
  arena_ = std::move(wide.arena_);
  end_ = wide.end_;
  is_narrow_ = false;
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
    const Chunk to = chunk(at);
    const auto words = static_cast<std::uint32_t>(chunk_words(length));
    to.header[0] = count;
    to.header[1] = length | words << 8 | interned | (done > 0 ? kJoinedBefore : 0) |
                   (done + length < tokens.size() ? kJoinedAfter : 0);
    const TokenId* const from = tokens.data() + done;
    if (is_narrow_) {
      std::transform(from, from + length, to.tokens<Narrow>(),
                     [](TokenId id) { return static_cast<Narrow>(id); });
    } else {
      std::copy_n(from, length, to.tokens<Wide>());
    }
    at += words;
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
