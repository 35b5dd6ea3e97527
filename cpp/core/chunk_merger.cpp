#include "core/chunk_merger.h"

#include <algorithm>
#include <bit>

#include "core/stop.h"

namespace vocabshift {

namespace {

constexpr std::size_t kAhead = 12;           // chunks to prefetch before the one being merged
constexpr std::size_t kStopEvery = 1 << 12;  // chunks

// condition ? yes : no without a branch.
TokenId choose(bool condition, TokenId yes, TokenId no) {
  const TokenId mask = -static_cast<TokenId>(condition);
  return (yes & mask) | (no & ~mask);
}

}  // namespace

Neighbours::Neighbours(std::size_t tokens) : by_token(tokens), touched(tokens + 1) {}

// For the occurrences in one more chunk.
inline void Neighbours::make_room() {
  if (occurrence_count + Sequences::kChunkTokens > occurrences.size()) {
    occurrences.resize(occurrences.size() * 2 + 4 * Sequences::kChunkTokens);
  }
}

// Without branches: whether a neighbour is new, or new in this chunk, is as good as random.
inline void Neighbours::see(TokenId token, Count count, Sequences::ChunkAt chunk) {
  Neighbour& neighbour = by_token[token];
  touched[touched_count] = token;
  touched_count += neighbour.last_chunk == kNowhere;
  occurrences[occurrence_count] = {token, chunk};
  const bool is_new_here = neighbour.last_chunk != chunk;
  occurrence_count += is_new_here;
  neighbour.chunk_count += is_new_here;
  neighbour.last_chunk = chunk;
  neighbour.sum += count;
}

void Neighbours::clear() {
  for (std::size_t i = 0; i < touched_count; ++i) by_token[touched[i]] = Neighbour{};
  touched_count = occurrence_count = 0;
}

void Neighbours::join(const Neighbours& later) {
  for (std::size_t i = 0; i < later.touched_count; ++i) {
    const TokenId token = later.touched[i];
    const Neighbour& theirs = later.by_token[token];
    Neighbour& ours = by_token[token];
    if (ours.last_chunk == kNowhere) touched[touched_count++] = token;
    ours.last_chunk = theirs.last_chunk;
    ours.sum += theirs.sum;
    ours.chunk_count += theirs.chunk_count;
  }
}

ChunkMerger::ChunkMerger(TokenId nothing)
    : left(nothing + std::size_t{1}), right(nothing + std::size_t{1}), nothing_(nothing) {}

void ChunkMerger::clear() {
  left.clear();
  right.clear();
  tokens_saved = 0;
}

void ChunkMerger::join(const ChunkMerger& later) {
  left.join(later.left);
  right.join(later.right);
  tokens_saved += later.tokens_saved;
}

void ChunkMerger::merge(Sequences& sequences, Chunks chunks, Pair pair, TokenId product) {
  if (sequences.is_narrow()) {
    merge_all<Sequences::Narrow>(sequences, chunks, pair, product);
  } else {
    merge_all<Sequences::Wide>(sequences, chunks, pair, product);
  }
}

// The fast path, for a sequence that is one chunk: does what merge_in_part does.
template <class Token>
inline void ChunkMerger::merge_in_word(Sequences& sequences, Sequences::Chunk word,
                                       Sequences::ChunkAt at, Pair pair, TokenId product) {
  const std::uint32_t length = word.length();
  Token* const tokens = word.tokens<Token>();
  std::uint64_t matches = match_mask(tokens, length, pair);
  if (matches == 0) return;
  if (pair.left == pair.right) matches = without_overlaps(matches);
  const auto [weight, occurrences] = sequences.counts(word);
  auto read = static_cast<std::uint32_t>(std::countr_zero(matches));
  if ((matches & (matches - 1)) == 0) {
    const TokenId before = choose(read > 0, tokens[std::max(read, 1u) - 1], nothing_);
    const TokenId after = choose(read + 2 < length, tokens[read + 2], nothing_);
    tokens[read] = static_cast<Token>(product);
    close_gap(tokens, read + 1, length);
    word.set_length(length - 1);
    tokens_saved += occurrences;
    left.see(before, weight, at);
    right.see(after, weight, at);
    return;
  }
  std::uint32_t write = read;
  for (; matches != 0; matches &= matches - 1) {
    const auto match = static_cast<std::uint32_t>(std::countr_zero(matches));
    while (read < match) tokens[write++] = tokens[read++];
    read += 2;
    left.see(write > 0 ? tokens[write - 1] : nothing_, weight, at);
    right.see(read < length ? tokens[read] : nothing_, weight, at);
    tokens[write++] = static_cast<Token>(product);
  }
  while (read < length) tokens[write++] = tokens[read++];
  word.set_length(write);
  tokens_saved += occurrences * (length - write);
}

// The general path: a part of a sequence that is longer than a chunk.
template <class Token>
void ChunkMerger::merge_in_part(Sequences& sequences, Sequences::ChunkAt at, Pair pair,
                                TokenId product) {
  const Sequences::Chunk chunk = sequences.chunk(at);
  const std::uint32_t length = chunk.length();
  Token* const tokens = chunk.tokens<Token>();
  const auto is_match = [&](std::uint32_t i) {
    return tokens[i] == pair.left && tokens[i + 1] == pair.right;
  };
  std::uint32_t read = 0;
  while (read + 1 < length && !is_match(read)) ++read;
  std::uint32_t write = read;
  while (read + 1 < length) {
    Sequences::ChunkAt where;
    read += 2;
    const TokenId next = read < length          ? tokens[read]
                         : chunk.joined_after() ? sequences.first_token_after<Token>(at, &where)
                                                : kNoToken;
    merge_at<Token>(sequences, at, write++, next, product);
    while (read + 1 < length && !is_match(read)) tokens[write++] = tokens[read++];
  }
  while (read < length) tokens[write++] = tokens[read++];
  chunk.set_length(write);
  if (!chunk.joined_after() || write == 0 || tokens[write - 1] != pair.left) return;
  Sequences::ChunkAt after;
  if (sequences.first_token_after<Token>(at, &after) != pair.right) return;
  sequences.remove_first_token<Token>(after);
  merge_at<Token>(sequences, at, write - 1, sequences.first_token_after<Token>(at, &after),
                  product);
}

// Puts the product at `index` and notes its neighbours. Tokens before it are final already.
template <class Token>
void ChunkMerger::merge_at(Sequences& sequences, Sequences::ChunkAt at, std::uint32_t index,
                           TokenId right_neighbour, TokenId product) {
  const Sequences::Chunk chunk = sequences.chunk(at);
  const auto [count, occurrences] = sequences.counts(chunk);
  tokens_saved += occurrences;
  Token* const tokens = chunk.tokens<Token>();
  tokens[index] = static_cast<Token>(product);
  if (index > 0) {
    left.see(tokens[index - 1], count, at);
  } else if (chunk.joined_before()) {
    Sequences::ChunkAt before;
    const TokenId token = sequences.last_token_before<Token>(at, &before);
    if (token != kNoToken) left.see(token, count, before);
  }
  if (right_neighbour != kNoToken) right.see(right_neighbour, count, at);
}

template <class Token>
void ChunkMerger::merge_all(Sequences& sequences, Chunks chunks, Pair pair, TokenId product) {
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (i + kAhead < chunks.size()) sequences.prefetch(chunks[i + kAhead]);
    left.make_room();
    right.make_room();
    const Sequences::Chunk chunk = sequences.chunk(chunks[i]);
    if (chunk.is_whole()) {
      merge_in_word<Token>(sequences, chunk, chunks[i], pair, product);
    } else {
      merge_in_part<Token>(sequences, chunks[i], pair, product);
    }
    if (i % kStopEvery == kStopEvery - 1) may_stop(kStopEvery * 16);
  }
}

}  // namespace vocabshift
