#include "core/merge_loop.h"

#include <algorithm>
#include <bit>

namespace vocabshift {

namespace {

constexpr std::size_t kAhead = 12;      // chunks to prefetch before the one being merged
constexpr Count kFloorStep = 8;         // the floor falls by this factor
constexpr std::size_t kTickEvery = 64;  // merges

// condition ? yes : no without a branch.
TokenId choose(bool condition, TokenId yes, TokenId no) {
  const TokenId mask = -static_cast<TokenId>(condition);
  return (yes & mask) | (no & ~mask);
}

}  // namespace

void MergeLoop::Side::resize(std::size_t tokens) {
  by_token.resize(tokens);
  touched.resize(tokens);
}

// For the occurrences in one more chunk.
inline void MergeLoop::Side::make_room() {
  if (occurrence_count + Sequences::kChunkTokens > occurrences.size()) {
    occurrences.resize(occurrences.size() * 2 + 4 * Sequences::kChunkTokens);
  }
}

// Without branches: whether a neighbour is new, or new in this chunk, is as good as random.
inline void MergeLoop::Side::see(TokenId token, Count count, Sequences::ChunkAt chunk) {
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

void MergeLoop::Side::clear() {
  for (std::size_t i = 0; i < touched_count; ++i) by_token[touched[i]] = Neighbour{};
  touched_count = occurrence_count = 0;
}

MergeLoop::MergeLoop(Vocabulary vocabulary, Sequences sequences, MergeRule rule,
                     Duplicates duplicates)
    : vocabulary_(std::move(vocabulary)),
      sequences_(std::move(sequences)),
      rule_(std::move(rule)),
      duplicates_(duplicates) {}

void MergeLoop::build_index(const std::function<Count(Count largest)>& choose_floor) {
  if (floor_ != 0) sequences_.compact();  // merges have emptied most of the room they took
  floor_ = index_.build(sequences_, vocabulary_.size(), choose_floor);
  std::vector<Candidate> candidates;
  candidates.reserve(index_.size());
  index_.for_each(
      [&](const PairIndex::Entry& entry) { candidates.push_back({entry.count, entry.key}); });
  queue_.assign(std::move(candidates));
}

Stopped MergeLoop::run(const Limits& limits, const Tick& tick) {
  const Count lowest = std::max<Count>({limits.min_frequency, limits.lowest_floor, 1});
  nothing_ = static_cast<TokenId>(std::max<std::size_t>(limits.vocab_size, vocabulary_.size()));
  left_.resize(nothing_ + std::size_t{2});
  right_.resize(nothing_ + std::size_t{2});
  const std::size_t start = vocabulary_.size();
  if (start < limits.vocab_size && floor_ == 0) {
    // By Zipf's law the k-th merge counts about 1/k of the first, on real text some times less.
    // Building the index costs more than keeping some thousands of pairs too many. A bad guess
    // costs one more build, never another result.
    const Count wanted = limits.vocab_size - start;
    build_index([&](Count largest) { return std::max(lowest, largest / 8 / wanted); });
  }
  std::string product;
  while (vocabulary_.size() < limits.vocab_size) {
    if (sequences_.is_narrow() && vocabulary_.size() >= Sequences::kNarrowTokens) {
      sequences_.widen();
      build_index([&](Count) { return floor_; });
    }
    if (queue_.empty()) {
      if (floor_ > lowest) {
        build_index([&](Count) { return std::max(lowest, floor_ / kFloorStep); });
        continue;
      }
      if (limits.lowest_floor > std::max<Count>(limits.min_frequency, 1)) return Stopped::kFloor;
      return lowest > 1 ? Stopped::kMinFrequency : Stopped::kNoPairLeft;
    }
    const Candidate top = queue_.pop();
    PairIndex::Entry* entry = index_.find(top.key);
    if (!entry || entry->count < floor_) continue;  // merged, or to be found again below the floor
    if (entry->count != top.count) {
      queue_.push({entry->count, top.key});
      continue;
    }
    const Pair pair{static_cast<TokenId>(top.key >> 32), static_cast<TokenId>(top.key)};
    product.assign(vocabulary_[pair.left]);
    product.append(vocabulary_[pair.right]);
    if (!rule_.allows(product)) continue;  // never queued again, so refused for good
    TokenId id = vocabulary_.find(product);
    const bool is_duplicate = id != kNoToken;
    if (is_duplicate && duplicates_ == Duplicates::kRefusePair) continue;
    if (!is_duplicate) id = vocabulary_.add(product);
    merges_.push_back({pair.left, pair.right, id, top.count});
    if (sequences_.is_narrow()) {
      apply<Sequences::Narrow>(pair, id, *entry);
    } else {
      apply<Sequences::Wide>(pair, id, *entry);
    }
    // Subtle: with a reused id pairs of that token gain occurrences, which the index excludes.
    if (is_duplicate) build_index([&](Count) { return floor_; });
    if (tick && merges_.size() % kTickEvery == 0) {
      tick(vocabulary_.size() - start, limits.vocab_size - start);
    }
  }
  return Stopped::kVocabSize;
}

// The fast path, for a sequence that is one chunk: does what merge_in_part does.
template <class Token>
inline void MergeLoop::merge_in_word(Sequences::Chunk word, Sequences::ChunkAt at, Pair pair,
                                     TokenId product) {
  const std::uint32_t length = word.length();
  Token* const tokens = word.tokens<Token>();
  std::uint64_t matches = match_mask(tokens, length, pair);
  if (matches == 0) return;
  if (pair.left == pair.right) matches = without_overlaps(matches);
  const auto [weight, occurrences] = sequences_.counts(word);
  auto read = static_cast<std::uint32_t>(std::countr_zero(matches));
  if ((matches & (matches - 1)) == 0) {
    const TokenId left = choose(read > 0, tokens[static_cast<std::ptrdiff_t>(read) - 1], nothing_);
    const TokenId right = choose(read + 2 < length, tokens[read + 2], nothing_);
    tokens[read] = static_cast<Token>(product);
    close_gap(tokens, read + 1, length);
    word.set_length(length - 1);
    tokens_saved_ += occurrences;
    left_.see(left, weight, at);
    right_.see(right, weight, at);
    return;
  }
  std::uint32_t write = read;
  for (; matches != 0; matches &= matches - 1) {
    const auto match = static_cast<std::uint32_t>(std::countr_zero(matches));
    while (read < match) tokens[write++] = tokens[read++];
    read += 2;
    left_.see(write > 0 ? tokens[write - 1] : nothing_, weight, at);
    right_.see(read < length ? tokens[read] : nothing_, weight, at);
    tokens[write++] = static_cast<Token>(product);
  }
  while (read < length) tokens[write++] = tokens[read++];
  word.set_length(write);
  tokens_saved_ += occurrences * (length - write);
}

// The general path: a part of a sequence that is longer than a chunk.
template <class Token>
void MergeLoop::merge_in_part(Sequences::ChunkAt at, Pair pair, TokenId product) {
  const Sequences::Chunk chunk = sequences_.chunk(at);
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
                         : chunk.joined_after() ? sequences_.first_token_after<Token>(at, &where)
                                                : kNoToken;
    merge_at<Token>(at, write++, next, product);
    while (read + 1 < length && !is_match(read)) tokens[write++] = tokens[read++];
  }
  while (read < length) tokens[write++] = tokens[read++];
  chunk.set_length(write);
  if (!chunk.joined_after() || write == 0 || tokens[write - 1] != pair.left) return;
  Sequences::ChunkAt after;
  if (sequences_.first_token_after<Token>(at, &after) != pair.right) return;
  sequences_.remove_first_token<Token>(after);
  merge_at<Token>(at, write - 1, sequences_.first_token_after<Token>(at, &after), product);
}

// Puts the product at `index` and notes its neighbours. Tokens before it are final already.
template <class Token>
void MergeLoop::merge_at(Sequences::ChunkAt at, std::uint32_t index, TokenId right_neighbour,
                         TokenId product) {
  const Sequences::Chunk chunk = sequences_.chunk(at);
  const auto [count, occurrences] = sequences_.counts(chunk);
  tokens_saved_ += occurrences;
  Token* const tokens = chunk.tokens<Token>();
  tokens[index] = static_cast<Token>(product);
  if (index > 0) {
    left_.see(tokens[index - 1], count, at);
  } else if (chunk.joined_before()) {
    Sequences::ChunkAt before;
    const TokenId left = sequences_.last_token_before<Token>(at, &before);
    if (left != kNoToken) left_.see(left, count, before);
  }
  if (right_neighbour != kNoToken) right_.see(right_neighbour, count, at);
}

template <class Token>
void MergeLoop::apply(Pair pair, TokenId product, const PairIndex::Entry& entry) {
  const Sequences::ChunkAt* chunks = entry.chunks;
  const std::size_t count = entry.chunk_count;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) sequences_.prefetch(chunks[i + kAhead]);
    left_.make_room();
    right_.make_room();
    const Sequences::Chunk chunk = sequences_.chunk(chunks[i]);
    if (chunk.is_whole()) {
      merge_in_word<Token>(chunk, chunks[i], pair, product);
    } else {
      merge_in_part<Token>(chunks[i], pair, product);
    }
  }
  update_counts(pair, product);
  left_.clear();
  right_.clear();
}

// (x, left) -> (x, product) and (right, y) -> (product, y). A product that follows a product was
// first counted as (product, left) and is (product, product) in the end.
void MergeLoop::update_counts(Pair pair, TokenId product) {
  const auto consume = [&](std::uint64_t key, Count count) {
    if (PairIndex::Entry* entry = index_.find(key)) entry->count -= count;
  };
  const auto prefetch_key = [&](const Side& side, std::size_t i, bool is_left) {
    if (i + kAhead >= side.touched_count) return;
    const TokenId token = side.touched[i + kAhead];
    index_.prefetch((is_left ? Pair{token, pair.left} : Pair{pair.right, token}).key());
  };
  for (std::size_t i = 0; i < left_.touched_count; ++i) {
    prefetch_key(left_, i, true);
    const TokenId token = left_.touched[i];
    if (token != product && token != nothing_) {
      consume(Pair{token, pair.left}.key(), left_.by_token[token].sum);
    }
  }
  for (std::size_t i = 0; i < right_.touched_count; ++i) {
    prefetch_key(right_, i, false);
    const TokenId token = right_.touched[i];
    if (token != nothing_) consume(Pair{pair.right, token}.key(), right_.by_token[token].sum);
  }
  right_.by_token[pair.left].sum -= left_.by_token[product].sum;
  index_.find(pair.key())->count = 0;
  born_.clear();
  add_new_pairs(left_, product, false);
  add_new_pairs(right_, product, true);
  for (const Candidate& candidate : born_) queue_.push(candidate);
  peak_memory_bytes_ =
      std::max(peak_memory_bytes_,
               sequences_.memory_bytes() + index_.memory_bytes() + queue_.memory_bytes());
}

void MergeLoop::add_new_pairs(Side& side, TokenId product, bool product_is_left) {
  Sequences::ChunkAt ignored;
  lists_.assign(1, {&ignored, 0});
  for (std::size_t i = 0; i < side.touched_count; ++i) {
    const TokenId token = side.touched[i];
    Neighbour& neighbour = side.by_token[token];
    const std::size_t chunks = neighbour.chunk_count;
    neighbour.chunk_count = 0;
    if (neighbour.sum < floor_ || neighbour.sum == 0 || token == nothing_) continue;
    neighbour.chunk_count = static_cast<std::uint32_t>(lists_.size());
    lists_.push_back({index_.allocate(chunks), 1});
    const Pair pair = product_is_left ? Pair{product, token} : Pair{token, product};
    index_.insert(pair.key(), neighbour.sum, {lists_.back().next, chunks});
    born_.push_back({neighbour.sum, pair.key()});
  }
  if (lists_.size() == 1) return;
  for (std::size_t i = 0; i < side.occurrence_count; ++i) {
    const Occurrence occurrence = side.occurrences[i];
    ListEnd& list = lists_[side.by_token[occurrence.neighbour].chunk_count];
    *list.next = occurrence.chunk;
    list.next += list.step;
  }
}

}  // namespace vocabshift
