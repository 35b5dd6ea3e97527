#include "core/superwords.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

#include "core/platform.h"

namespace vocabshift {

namespace {

constexpr Count kMemoryStep = 2;  // a bound whose runs do not fit rises by this factor

}  // namespace

void SuperwordStage::add(const Documents& documents, const Count* counts, std::size_t group) {
  for (const Block& block : text_.encode(documents, counts, tokens_)) {
    if (!block.empty()) store_.append(static_cast<std::uint32_t>(group), block);
  }
}

BorderSketch SuperwordStage::sketch_borders(const std::vector<Count>& weights,
                                            std::size_t memory_bytes, const Tick& tick) const {
  std::size_t most = BorderSketch::kMostCells;
  while (memory_bytes != 0 && most > BorderSketch::kLeastCells &&
         most * sizeof(Count) > memory_bytes / 4) {
    most /= 2;
  }
  const std::size_t needed = static_cast<std::size_t>(tokens_) / 8 + BorderSketch::kLeastCells;
  BorderSketch sketch(std::min(std::bit_ceil(needed), most));
  Block buffer;
  for (std::size_t block = 0; block < store_.block_count(); ++block) {
    const Count weight = weights[store_.group_of(block)];
    for_each_piece(block, buffer, [&](std::span<const TokenId> piece, Count factor) {
      Count count;
      if (multiply_overflows(weight, factor, &count)) WordSum::overflow();
      sketch.add(piece, count);
    });
    if (tick) tick(block, 0);
  }
  return sketch;
}

// The distinct runs between borders of a count below `bound`; nothing where they do not fit.
std::optional<Sequences> SuperwordStage::count_runs(const BorderSketch& sketch, Count bound,
                                                    const std::vector<Count>& weights,
                                                    const MergeRule& rule, std::size_t vocab_size,
                                                    std::size_t memory_bytes,
                                                    const Tick& tick) const {
  const std::size_t groups = store_.group_count();
  const bool is_weighted = text_.options().sentences.has_value();
  std::size_t threads = std::min(this->threads(), store_.block_count());
  if (memory_bytes != 0) {  // the tables of a thread take memory even where they hold little
    const std::size_t of_thread = (is_weighted ? 2 : 1) * groups * WordTable().memory_bytes();
    threads = std::min(threads, memory_bytes / 4 / std::max<std::size_t>(of_thread, 1) + 1);
  }
  std::vector<RunTables> runs;
  for (std::size_t i = 0; i < threads; ++i) runs.emplace_back(groups, is_weighted);
  std::vector<Block> buffers(threads);
  const BigVector<Count>& counts = sketch.counts();
  const RunCutter cutter(text_.vocabulary(), rule,
                         Bits(counts.size(), [&](std::size_t i) { return counts[i] >= bound; }),
                         counts.size());
  const auto count_block = [&](std::size_t thread, std::size_t block) {
    const std::size_t group = store_.group_of(block);
    RunTables& tables = runs[thread];
    for_each_piece(block, buffers[thread], [&](std::span<const TokenId> piece, Count factor) {
      cutter.for_each_run(piece, [&](std::span<const TokenId> run) {
        tables.counts[group].add(run, is_weighted ? 1 : factor);
        if (is_weighted) tables.weights[group].add(run, factor);
      });
    });
    tables.counts[group].flush();
    if (is_weighted) tables.weights[group].flush();
  };
  for (std::size_t first = 0; first < store_.block_count(); first += threads) {
    parallel_for(std::min(threads, store_.block_count() - first),
                 [&](std::size_t thread) { count_block(thread, first + thread); });
    std::size_t taken = 0;
    for (const RunTables& tables : runs) taken += tables.memory_bytes();
    if (memory_bytes != 0 && taken > memory_bytes) return std::nullopt;
    if (tick) tick(first, 0);
  }
  return joined_runs(runs, weights, vocab_size);
}

Trained SuperwordStage::train(const std::vector<Count>& weights, const Limits& limits,
                              const MergeRule& rule, std::size_t memory_bytes, const Tick& tick) {
  if (weights.size() < store_.group_count()) {
    throw std::invalid_argument("every group of documents needs a weight");
  }
  const auto& sentences = text_.options().sentences;
  if (sentences && (!rule.whole_characters || rule.terminals != sentences->terminals())) {
    throw std::invalid_argument("sentences with weights need terminals that no product holds");
  }
  const BorderSketch sketch = sketch_borders(weights, memory_bytes, tick);
  const Vocabulary& vocabulary = text_.vocabulary();
  const std::size_t vocab_size = std::max<std::size_t>(limits.vocab_size, vocabulary.size());
  const std::size_t wanted = vocab_size - vocabulary.size();
  Count bound = guess_bound(sketch.counts(), wanted);
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
    Limits with_threads = limits;
    with_threads.threads = threads();
    Trained trained =
        train_runs(vocabulary, std::move(*runs), rule, with_threads, bound, tokens_, tick);
    if (trained.stopped != Stopped::kFloor || is_short_of_memory) {
      if (trained.stopped == Stopped::kFloor) trained.stopped = Stopped::kMemory;
      trained.peak_memory_bytes += sketch.counts().size() * sizeof(Count);
      return trained;
    }
    bound = lower_bound(bound, is_first_guess ? trained.merges.size() : 0, wanted);
    is_first_guess = false;
  }
}

}  // namespace vocabshift
