#include "core/merge_loop.h"

#include <algorithm>

namespace vocabshift {

namespace {

constexpr std::size_t kAhead = 12;      // chunks to prefetch before the one being merged
constexpr Count kFloorStep = 8;         // the floor falls by this factor
constexpr std::size_t kTickEvery = 64;  // merges

}  // namespace

void MergeLoop::Side::see(TokenId token, Count count, Sequences::ChunkAt chunk) {
  Neighbour& neighbour = by_token[token];
  if (neighbour.chunk_count == 0) touched.push_back(token);
  neighbour.sum += count;
  if (neighbour.chunk_count != 0 && neighbour.last_chunk == chunk) return;
  neighbour.last_chunk = chunk;
  ++neighbour.chunk_count;
  occurrences.push_back({token, chunk});
}

void MergeLoop::Side::clear() {
  for (const TokenId token : touched) by_token[token] = Neighbour{};
  touched.clear();
  occurrences.clear();
}

MergeLoop::MergeLoop(Vocabulary vocabulary, Sequences sequences, MergeRule rule,
                     Duplicates duplicates)
    : vocabulary_(std::move(vocabulary)),
      sequences_(std::move(sequences)),
      rule_(std::move(rule)),
      duplicates_(duplicates) {}

void MergeLoop::build_index(const std::function<Count(Count largest)>& choose_floor) {
  if (floor_ != 0) sequences_.compact();  // merges have emptied most of the room they took
  floor_ = index_.build(sequences_, choose_floor);
  std::vector<Candidate> candidates;
  candidates.reserve(index_.size());
  index_.for_each(
      [&](const PairIndex::Entry& entry) { candidates.push_back({entry.count, entry.key}); });
  queue_.assign(std::move(candidates));
}

Stopped MergeLoop::run(const Limits& limits, const Tick& tick) {
  const Count lowest = std::max<Count>({limits.min_frequency, limits.lowest_floor, 1});
  left_.by_token.resize(std::max<std::size_t>(limits.vocab_size, vocabulary_.size()) + 1);
  right_.by_token.resize(left_.by_token.size());
  const std::size_t start = vocabulary_.size();
  if (start < limits.vocab_size && floor_ == 0) {
    // By Zipf's law the k-th merge counts about 1/k of the first. The first floor serves the first
    // sixteenth of the merges: they shorten the text so much that building anew is cheap then. A
    // bad guess costs one more build, never another result.
    const Count wanted = limits.vocab_size - start;
    build_index([&](Count largest) { return std::max(lowest, largest * 16 / wanted); });
  }
  std::string product;
  while (vocabulary_.size() < limits.vocab_size) {
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
    apply(pair, id, *entry);
    // Subtle: with a reused id pairs of that token gain occurrences, which the index excludes.
    if (is_duplicate) build_index([&](Count) { return floor_; });
    if (tick && merges_.size() % kTickEvery == 0) {
      tick(vocabulary_.size() - start, limits.vocab_size - start);
    }
  }
  return Stopped::kVocabSize;
}

void MergeLoop::apply(Pair pair, TokenId product, const PairIndex::Entry& entry) {
  const Sequences::ChunkAt* chunks = entry.chunks;
  const std::size_t count = entry.chunk_count;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) sequences_.prefetch(chunks[i + kAhead]);
    merge_in_chunk(chunks[i], pair, product);
  }
  update_counts(pair, product);
  left_.clear();
  right_.clear();
}

void MergeLoop::merge_in_chunk(Sequences::ChunkAt at, Pair pair, TokenId product) {
  const Sequences::Chunk chunk = sequences_.chunk(at);
  const std::uint32_t length = chunk.length();
  TokenId* const tokens = chunk.tokens();
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
                         : chunk.joined_after() ? sequences_.first_token_after(at, &where)
                                                : kNoToken;
    merge_at(at, write++, next, product);
    while (read + 1 < length && !is_match(read)) tokens[write++] = tokens[read++];
  }
  while (read < length) tokens[write++] = tokens[read++];
  chunk.set_length(write);
  if (!chunk.joined_after() || write == 0 || tokens[write - 1] != pair.left) return;
  Sequences::ChunkAt after;
  if (sequences_.first_token_after(at, &after) != pair.right) return;
  sequences_.remove_first_token(after);
  merge_at(at, write - 1, sequences_.first_token_after(at, &after), product);
}

// Puts the product at `index` and notes its neighbours. Tokens before it are final already.
void MergeLoop::merge_at(Sequences::ChunkAt at, std::uint32_t index, TokenId right_neighbour,
                         TokenId product) {
  const Sequences::Chunk chunk = sequences_.chunk(at);
  const Count count = chunk.weight();
  tokens_saved_ += chunk.occurrences();
  TokenId* const tokens = chunk.tokens();
  tokens[index] = product;
  if (index > 0) {
    left_.see(tokens[index - 1], count, at);
  } else if (chunk.joined_before()) {
    Sequences::ChunkAt before;
    const TokenId left = sequences_.last_token_before(at, &before);
    if (left != kNoToken) left_.see(left, count, before);
  }
  if (right_neighbour != kNoToken) right_.see(right_neighbour, count, at);
}

// (x, left) -> (x, product) and (right, y) -> (product, y). A product that follows a product was
// first counted as (product, left) and is (product, product) in the end.
void MergeLoop::update_counts(Pair pair, TokenId product) {
  const auto consume = [&](std::uint64_t key, Count count) {
    if (PairIndex::Entry* entry = index_.find(key)) entry->count -= count;
  };
  const auto prefetch_key = [&](const Side& side, std::size_t i, bool is_left) {
    if (i + kAhead >= side.touched.size()) return;
    const TokenId token = side.touched[i + kAhead];
    index_.prefetch((is_left ? Pair{token, pair.left} : Pair{pair.right, token}).key());
  };
  for (std::size_t i = 0; i < left_.touched.size(); ++i) {
    prefetch_key(left_, i, true);
    const TokenId token = left_.touched[i];
    if (token != product) consume(Pair{token, pair.left}.key(), left_.by_token[token].sum);
  }
  for (std::size_t i = 0; i < right_.touched.size(); ++i) {
    prefetch_key(right_, i, false);
    const TokenId token = right_.touched[i];
    consume(Pair{pair.right, token}.key(), right_.by_token[token].sum);
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
  std::size_t kept = 0;
  for (const TokenId token : side.touched) {
    Neighbour& neighbour = side.by_token[token];
    if (neighbour.sum < floor_ || neighbour.sum == 0) continue;
    neighbour.chunks = index_.allocate(neighbour.chunk_count);
    const Pair pair = product_is_left ? Pair{product, token} : Pair{token, product};
    index_.insert(pair.key(), neighbour.sum, {neighbour.chunks, neighbour.chunk_count});
    born_.push_back({neighbour.sum, pair.key()});
    ++kept;
  }
  if (kept == 0) return;
  for (const Occurrence& occurrence : side.occurrences) {
    Neighbour& neighbour = side.by_token[occurrence.neighbour];
    if (neighbour.chunks) *neighbour.chunks++ = occurrence.chunk;
  }
}

}  // namespace vocabshift
