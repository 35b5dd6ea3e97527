#include "core/superwords.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>

#include "core/bits.h"
#include "core/filled.h"
#include "core/stop.h"

namespace vocabshift {

namespace {

constexpr Count kBoundStep = 4;              // a bound that was too high again falls by this factor
constexpr std::size_t kBordersPerMerge = 3;  // see guess_bound
constexpr Count kMemoryStep = 2;             // a bound whose runs do not fit rises by this factor
constexpr std::size_t kMostCells = std::size_t{1} << 26;  // of the sketch, 8 bytes each
constexpr std::size_t kLeastCells = 1024;                 // whatever the memory
constexpr std::size_t kAtOnce = 64;  // borders looked at before it may be stopped; bits of a word

std::size_t cell_of(TokenId left, TokenId right, std::size_t cells) {
  return hash_pair(Pair{left, right}.key()) & (cells - 1);
}

// The count of about the k-th most frequent border. Merges find more pairs than there are frequent
// borders from the start, and refuse some: the last of k / kBordersPerMerge merges mostly counts
// more than that.
Count guess_bound(const BigVector<Count>& sketch, std::size_t k) {
  std::vector<Count> counts;
  for (const Count count : sketch) {
    if (count > 1) counts.push_back(count);
  }
  if (counts.size() <= k) return 1;
  std::nth_element(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(k), counts.end(),
                   std::greater<Count>());
  return counts[k];
}

// After a first guess that left `found` merges of those that were wanted: by Zipf's law the k-th
// counts about 1/k of the first, and a bound that is a little too low costs less than a third try.
Count second_guess(Count bound, std::size_t found, std::size_t wanted) {
  const double share = static_cast<double>(found) / static_cast<double>(wanted);
  const double least = 1.0 / kBoundStep, most = 3.0 / 4;
  return static_cast<Count>(static_cast<double>(bound) * std::clamp(share * most, least, most));
}

// Calls visit(run) for the longest runs of at least two tokens whose neighbours are all joined.
// Whether two are is as good as random: 64 of them are looked at without a branch.
// All text without a space may be one piece.
template <class IsJoined, class Visit>
void for_each_run(std::span<const TokenId> piece, IsJoined&& is_joined, Visit&& visit) {
  const std::size_t borders = piece.size() - std::min<std::size_t>(piece.size(), 1);
  std::size_t begin = 0;  // of the run under way
  bool is_under_way = false;
  for (std::size_t from = 0; from < borders; from += kAtOnce) {
    const std::size_t count = std::min<std::size_t>(borders - from, kAtOnce);
    may_stop(4 * count);
    std::uint64_t joined = 0;
    for (std::size_t i = 0; i < count; ++i) {
      joined |= std::uint64_t{is_joined(piece[from + i], piece[from + i + 1])} << i;
    }
    for (std::size_t at = 0; at < count;) {
      if (!is_under_way) {
        at += static_cast<std::size_t>(std::countr_zero(joined >> at));
        if (at >= count) break;
        begin = from + at;
      }
      at += static_cast<std::size_t>(std::countr_one(joined >> at));
      is_under_way = at >= count;
      if (!is_under_way) visit(piece.subspan(begin, from + at + 1 - begin));
    }
  }
  if (is_under_way) visit(piece.subspan(begin));
}

// The tokens that may be part of a product.
Bits tokens_that_merge(const Vocabulary& vocabulary, const MergeRule& rule) {
  MergeRule terminals;
  terminals.terminals = rule.terminals;
  return Bits(vocabulary.size(), [&](std::size_t id) {
    return terminals.terminals.empty() || terminals.allows(vocabulary[static_cast<TokenId>(id)]);
  });
}

}  // namespace

// Distinct runs of tokens with their counts. Runs stay where they are until flush().
class SuperwordStage::Runs {
 public:
  void add(std::span<const TokenId> run, Count count) {
    runs_[waiting_] = {reinterpret_cast<const char*>(run.data()), run.size_bytes()};
    counts_[waiting_] = count;
    if (++waiting_ == WordTable::kBatch) flush();
  }
  void flush() {
    table_.add_batch(runs_, counts_, waiting_);
    waiting_ = 0;
  }
  const WordTable& table() const { return table_; }

 private:
  WordTable table_;
  std::size_t waiting_ = 0;
  std::string_view runs_[WordTable::kBatch];
  Count counts_[WordTable::kBatch];
};

// Calls visit(tokens of a piece, its factor) for every piece of a block; 1 where it has no factor.
template <class F>
void SuperwordStage::for_each_piece(std::size_t block, Block& buffer, F&& visit) const {
  const std::span<const TokenId> ids = store_.read(block, buffer);
  const auto damaged = [] { return std::invalid_argument("the encoded text on disk is damaged"); };
  const TokenId vocab_size = vocabulary_.size();
  for (std::size_t begin = 0; begin < ids.size();) {
    std::size_t end = begin;
    while (end < ids.size() && ids[end] < vocab_size) ++end;
    if (end < ids.size() && ids[end] != kNoToken) throw damaged();
    const std::size_t next = end + (has_factors() ? 2 : 1);
    if (next > ids.size()) throw damaged();
    may_stop(4);
    visit(ids.subspan(begin, end - begin), has_factors() ? ids[end + 1] : 1);
    begin = next;
  }
}

BigVector<Count> SuperwordStage::sketch_borders(const std::vector<Count>& weights,
                                                std::size_t memory_bytes, const Tick& tick) const {
  std::size_t most = kMostCells;
  while (memory_bytes != 0 && most > kLeastCells && most * sizeof(Count) > memory_bytes / 4) {
    most /= 2;
  }
  const std::size_t cells =
      std::min(std::bit_ceil(static_cast<std::size_t>(tokens_) / 8 + kLeastCells), most);
  auto sketch = filled<BigVector<Count>>(cells, 0);
  Count of_all = 0;
  Block buffer;
  for (std::size_t block = 0; block < store_.block_count(); ++block) {
    const Count weight = weights[store_.group_of(block)];
    for_each_piece(block, buffer, [&](std::span<const TokenId> piece, Count factor) {
      Count product;  // the sum of all borders' counts must fit
      if (__builtin_mul_overflow(weight, factor, &product)) WordSum::overflow();
      const Count count = product;
      if (__builtin_mul_overflow(product, piece.size(), &product) ||
          __builtin_add_overflow(of_all, product, &of_all)) {
        WordSum::overflow();
      }
      for (std::size_t i = 0; i + 1 < piece.size();) {
        const std::size_t end = std::min(i + kAtOnce, piece.size() - 1);
        may_stop(4 * (end - i));
        for (; i < end; ++i) sketch[cell_of(piece[i], piece[i + 1], cells)] += count;
      }
    });
    if (tick) tick(block, 0);
  }
  return sketch;
}

// The distinct runs between borders of a count below `bound`; nothing where they do not fit.
//
// Every thread has a table for each group, and where sentences have weights a second one that
// holds the weights.
std::optional<Sequences> SuperwordStage::count_runs(const BigVector<Count>& sketch, Count bound,
                                                    const std::vector<Count>& weights,
                                                    const MergeRule& rule, std::size_t vocab_size,
                                                    std::size_t memory_bytes,
                                                    const Tick& tick) const {
  const std::size_t groups = store_.group_count();
  const bool is_weighted = options_.sentences.has_value();
  std::size_t threads = std::min(options_.threads, store_.block_count());
  if (memory_bytes != 0) {  // the tables of a thread take memory even where they hold little
    const std::size_t of_thread = (is_weighted ? 2 : 1) * groups * WordTable().memory_bytes();
    threads = std::min(threads, memory_bytes / 4 / std::max<std::size_t>(of_thread, 1) + 1);
  }
  std::vector<std::vector<Runs>> runs(threads);
  for (auto& tables : runs) tables.resize(is_weighted ? 2 * groups : groups);
  std::vector<Block> buffers(threads);
  const Bits merges = tokens_that_merge(vocabulary_, rule);
  const Bits is_frequent(sketch.size(), [&](std::size_t cell) { return sketch[cell] >= bound; });
  const auto is_joined = [&](TokenId left, TokenId right) {
    return is_frequent[cell_of(left, right, sketch.size())] & merges[left] & merges[right];
  };
  const auto count_block = [&](std::size_t thread, std::size_t block) {
    const std::size_t group = store_.group_of(block);
    for_each_piece(block, buffers[thread], [&](std::span<const TokenId> piece, Count factor) {
      for_each_run(piece, is_joined, [&](std::span<const TokenId> run) {
        runs[thread][group].add(run, is_weighted ? 1 : factor);
        if (is_weighted) runs[thread][groups + group].add(run, factor);
      });
    });
    runs[thread][group].flush();
    if (is_weighted) runs[thread][groups + group].flush();
  };
  for (std::size_t first = 0; first < store_.block_count(); first += threads) {
    parallel_for(std::min(threads, store_.block_count() - first),
                 [&](std::size_t thread) { count_block(thread, first + thread); });
    std::size_t taken = 0;
    for (const auto& of_thread : runs) {
      for (const Runs& table : of_thread) {
        // Subtle: empty tables do not count, so that a bound above all borders always fits.
        if (table.table().size() > 0) taken += table.table().memory_bytes();
      }
    }
    if (memory_bytes != 0 && taken > memory_bytes) return std::nullopt;
    if (tick) tick(first, 0);
  }
  std::vector<GroupTable> tables;
  for (const auto& of_thread : runs) {
    for (std::size_t i = 0; i < of_thread.size(); ++i) {
      tables.push_back({&of_thread[i].table(), i, i >= groups});
    }
  }
  Sequences sequences(vocab_size);
  std::vector<TokenId> tokens;
  WordJoin(tables).for_each(
      [&](std::string_view, std::size_t table) -> Count {
        if (!is_weighted) return weights[table];
        return table < groups ? 0 : weights[table - groups];  // plain counts weigh nothing there
      },
      [&](std::string_view run, Count weighted, Count count) {
        tokens.resize(run.size() / sizeof(TokenId));
        std::memcpy(tokens.data(), run.data(), run.size());
        sequences.add(tokens, weighted, count);
      });
  return sequences;
}

Trained SuperwordStage::train(const std::vector<Count>& weights, const Limits& limits,
                              const MergeRule& rule, std::size_t memory_bytes, const Tick& tick) {
  if (weights.size() < store_.group_count()) {
    throw std::invalid_argument("every group of documents needs a weight");
  }
  if (options_.sentences &&
      (!rule.whole_characters || rule.terminals != options_.sentences->terminals())) {
    throw std::invalid_argument("sentences with weights need terminals that no product holds");
  }
  const BigVector<Count> sketch = sketch_borders(weights, memory_bytes, tick);
  const std::size_t vocab_size = std::max<std::size_t>(limits.vocab_size, vocabulary_.size());
  const std::size_t wanted = vocab_size - vocabulary_.size();
  Count bound = guess_bound(sketch, kBordersPerMerge * wanted + 64);
  bool is_first_guess = true;
  bool is_short_of_memory = false;
  for (;;) {
    bound = std::max<Count>({bound, limits.min_frequency, 1});
    auto runs = count_runs(sketch, bound, weights, rule, vocab_size, memory_bytes, tick);
    if (!runs) {
      is_short_of_memory = true;
      if (bound > std::numeric_limits<Count>::max() / kMemoryStep)
        throw std::invalid_argument("counts are too large");
      bound *= kMemoryStep;
      continue;
    }
    MergeLoop loop(vocabulary_, std::move(*runs), rule, Duplicates::kRefusePair);
    const Stopped stopped = loop.run({.vocab_size = limits.vocab_size,
                                      .min_frequency = limits.min_frequency,
                                      .lowest_floor = bound,
                                      .threads = options_.threads},
                                     tick);
    if (stopped != Stopped::kFloor || is_short_of_memory) {
      return {loop.vocabulary(),
              loop.merges(),
              stopped == Stopped::kFloor ? Stopped::kMemory : stopped,
              tokens_ - loop.tokens_saved(),
              loop.peak_memory_bytes() + sketch.size() * sizeof(Count),
              bound};
    }
    bound = is_first_guess ? second_guess(bound, loop.merges().size(), wanted) : bound / kBoundStep;
    is_first_guess = false;
  }
}

}  // namespace vocabshift
