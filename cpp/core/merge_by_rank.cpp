#include "core/merge_by_rank.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "core/platform.h"
#include "core/stop.h"

namespace vocabshift {

MergeTable::MergeTable(std::size_t merges)
    : slots_(std::bit_ceil(merges * 2 + 2), Slot{kEmpty, kNoRank, kNoToken}),
      mask_(slots_.size() - 1) {}

// Slots are asked for some merges before they are needed.
MergeTable::MergeTable(const std::vector<ModelMerge>& merges) : MergeTable(merges.size()) {
  constexpr std::size_t kAhead = 16;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    if (rank + kAhead < merges.size()) {
      const ModelMerge& later = merges[rank + kAhead];
      prefetch_to_write(&slots_[hash_pair(Pair{later.left, later.right}.key()) & mask_]);
    }
    const ModelMerge& merge = merges[rank];
    set({merge.left, merge.right}, static_cast<std::uint32_t>(rank), merge.product);
  }
}

void MergeTable::set(Pair pair, std::uint32_t rank, TokenId product) {
  const std::uint64_t key = pair.key();
  std::size_t at = hash_pair(key) & mask_;
  while (slots_[at].key != kEmpty && slots_[at].key != key) at = (at + 1) & mask_;
  has_doubles_ |= slots_[at].key == key;
  slots_[at] = {key, rank, product};
}

std::vector<ModelMerge> MergeTable::by_rank(std::uint32_t limit) const {
  std::vector<ModelMerge> merges;
  for (const Slot& slot : slots_) {
    if (slot.key == kEmpty || slot.rank >= limit) continue;
    if (slot.rank >= merges.size()) {
      merges.resize(slot.rank + std::size_t{1}, {kNoToken, kNoToken, kNoToken});
    }
    merges[slot.rank] = {static_cast<TokenId>(slot.key >> 32), static_cast<TokenId>(slot.key),
                         slot.product};
  }
  return merges;
}

namespace {

constexpr std::size_t kShort = 80;  // symbols: up to here a scan for the least rank is fastest

// The least rank first, the leftmost among equals; ranks of all neighbours in one array.
void merge_short(const MergeTable& merges, std::vector<TokenId>& symbols, std::uint32_t limit,
                 MergeScratch& scratch) {
  std::vector<std::uint32_t>& ranks = scratch.ranks;
  std::size_t size = symbols.size();
  ranks.resize(size);
  const auto rank_at = [&](std::size_t i) {
    const std::uint32_t rank = merges.find(symbols[i], symbols[i + 1]).rank;
    return rank < limit ? rank : kNoRank;
  };
  for (std::size_t i = 0; i + 1 < size; ++i) ranks[i] = rank_at(i);
  while (size > 1) {
    std::uint32_t least = kNoRank;
    for (std::size_t i = 0; i + 1 < size; ++i) least = std::min(least, ranks[i]);
    if (least == kNoRank) break;
    if (scratch.log) scratch.log->push_back(least);
    std::size_t at = 0;
    while (ranks[at] != least) ++at;
    symbols[at] = merges.find(symbols[at], symbols[at + 1]).product;
    std::memmove(&symbols[at + 1], &symbols[at + 2], (size - at - 2) * sizeof(TokenId));
    std::memmove(&ranks[at], &ranks[at + 1], (size - at - 2) * sizeof(std::uint32_t));
    --size;
    if (at > 0) ranks[at - 1] = rank_at(at - 1);
    if (at + 1 < size) ranks[at] = rank_at(at);
  }
  symbols.resize(size);
}

// The same with a heap over a linked list, for pieces of any length: n log n.
void merge_long(const MergeTable& merges, std::vector<TokenId>& symbols, std::uint32_t limit,
                MergeScratch& scratch) {
  constexpr std::uint32_t kEnd = 0xFFFFFFFFu;
  const auto size = static_cast<std::uint32_t>(symbols.size());
  auto& next = scratch.next;
  auto& previous = scratch.previous;
  auto& heap = scratch.heap;
  const auto later = std::greater<std::pair<std::uint32_t, std::uint32_t>>();
  next.resize(size);
  previous.resize(size);
  heap.clear();
  const auto rank_of = [&](std::uint32_t left, std::uint32_t right) {
    const std::uint32_t rank = merges.find(symbols[left], symbols[right]).rank;
    return rank < limit ? rank : kNoRank;
  };
  for (std::uint32_t i = 0; i < size; ++i) {
    may_stop(1);
    next[i] = i + 1 < size ? i + 1 : kEnd;
    previous[i] = i > 0 ? i - 1 : kEnd;
    if (i + 1 < size) {
      if (const std::uint32_t rank = rank_of(i, i + 1); rank != kNoRank) heap.push_back({rank, i});
    }
  }
  std::make_heap(heap.begin(), heap.end(), later);
  const auto push = [&](std::uint32_t left, std::uint32_t right) {
    const std::uint32_t rank = rank_of(left, right);
    if (rank == kNoRank) return;
    heap.push_back({rank, left});
    std::push_heap(heap.begin(), heap.end(), later);
  };
  while (!heap.empty()) {
    may_stop(8);
    std::pop_heap(heap.begin(), heap.end(), later);
    const auto [rank, left] = heap.back();
    heap.pop_back();
    if (symbols[left] == kNoToken || next[left] == kEnd) continue;
    const std::uint32_t right = next[left];
    const MergeTable::Found found = merges.find(symbols[left], symbols[right]);
    if (found.rank != rank) continue;  // another merge took one of the two
    if (scratch.log) scratch.log->push_back(rank);
    symbols[left] = found.product;
    symbols[right] = kNoToken;
    next[left] = next[right];
    if (next[left] != kEnd) {
      previous[next[left]] = left;
      push(left, next[left]);
    }
    if (previous[left] != kEnd) push(previous[left], left);
  }
  symbols.erase(std::remove(symbols.begin(), symbols.end(), kNoToken), symbols.end());
}

}  // namespace

void merge_by_rank(const MergeTable& merges, std::vector<TokenId>& symbols, std::uint32_t limit,
                   MergeScratch& scratch) {
  if (symbols.size() < 2) return;
  if (symbols.size() <= kShort) {
    merge_short(merges, symbols, limit, scratch);
  } else {
    merge_long(merges, symbols, limit, scratch);
  }
}

}  // namespace vocabshift
