#include "core/sequences.h"

#include <limits>
#include <stdexcept>

#include "core/hash.h"

namespace vocabshift {

void Sequences::add(std::span<const TokenId> tokens, Counts counts) {
  const ChunkAt at = arena_end();
  lay_out(words_for(tokens.size()));
  put(at, tokens.size(), counts, [&](std::size_t i) { return tokens[i]; });
}

void Sequences::lay_out(std::uint64_t words) {
  const std::uint64_t end = end_ + words;
  if (end > std::numeric_limits<ChunkAt>::max()) {
    throw std::length_error(
        "the distinct words of the corpus hold more than 4 billion tokens; "
        "train on a sample");
  }
  arena_.resize(end * sizeof(std::uint32_t) + kReadAfter);
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

// Calls visit(tokens, count word) for each sequence that can still merge; when it is called, the
// sequence has been read and may be overwritten.
template <class F>
void Sequences::for_each_sequence(F&& visit) {
  std::vector<TokenId> tokens;
  for (ChunkAt at = 0; at < end_;) {
    tokens.clear();
    const CountWord count{chunk(at).header[0], chunk(at).header[1] & kKept};
    for (bool goes_on = true; goes_on; at = chunk_after(at)) {
      const Chunk here = chunk(at);
      if (is_narrow_) {
        tokens.insert(tokens.end(), here.tokens<Narrow>(), here.tokens<Narrow>() + here.length());
      } else {
        tokens.insert(tokens.end(), here.tokens<Wide>(), here.tokens<Wide>() + here.length());
      }
      goes_on = here.joined_after();
    }
    if (tokens.size() > 1) visit(tokens, count);
  }
}

std::vector<Sequences::ChunkAt> Sequences::borders(std::size_t parts) {
  std::vector<ChunkAt> borders{0};
  std::size_t chunks = 0;
  for (ChunkAt at = 0; at < end_ && borders.size() < parts; at = chunk_after(at)) {
    if (++chunks % kStopEvery == 0) may_stop(kStopEvery);
    if (at >= std::uint64_t{end_} * borders.size() / parts) borders.push_back(at);
  }
  borders.resize(parts, end_);
  borders.push_back(end_);
  return borders;
}

void Sequences::compact() {
  ChunkAt write = 0;
  // What is written never reaches what is still to be read: it takes no more room than the
  // sequence had.
  for_each_sequence([&](const std::vector<TokenId>& tokens, CountWord count) {
    const auto token_at = [&](std::size_t i) { return tokens[i]; };
    write = is_narrow_ ? put_as<Narrow>(write, tokens.size(), count, token_at)
                       : put_as<Wide>(write, tokens.size(), count, token_at);
  });
  end_ = write;
}

void Sequences::widen() {
  Sequences wide;
  std::uint64_t words = 0;
  for_each_sequence([&](const std::vector<TokenId>& tokens, CountWord) {
    words += wide.words_for(tokens.size());
  });
  wide.lay_out(words);
  ChunkAt write = 0;
  for_each_sequence([&](const std::vector<TokenId>& tokens, CountWord count) {
    const auto token_at = [&](std::size_t i) { return tokens[i]; };
    write = wide.put_as<Wide>(write, tokens.size(), count, token_at);
  });
  arena_ = std::move(wide.arena_);
  end_ = wide.end_;
  is_narrow_ = false;
}

Sequences::CountWord Sequences::count_word(Counts counts) {
  if (is_plain(counts)) {
    return {static_cast<std::uint32_t>(counts.weight), 0};
  }
  const auto place = static_cast<std::uint32_t>(interned_.size());
  const auto [at, is_new] = place_of_.try_emplace(counts, place);
  if (is_new) interned_.push_back(counts);
  return {at->second, kInterned};
}

std::size_t Sequences::HashCounts::operator()(const Counts& counts) const {
  return mix(counts.weight ^ kSeed0, counts.occurrences ^ kSeed1);
}

}  // namespace vocabshift
