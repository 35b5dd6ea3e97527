#include "core/superword_runs.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core/stop.h"

namespace vocabshift {

std::size_t RunTables::memory_bytes() const {
  std::size_t taken = 0;
  for (const auto* tables : {&counts, &weights}) {
    for (const RunTable& table : *tables) {
      if (table.table().size() > 0) taken += table.table().memory_bytes();
    }
  }
  return taken;
}

Sequences joined_runs(const std::vector<RunTables>& threads, const std::vector<Count>& weights,
                      std::size_t vocab_size) {
  std::vector<GroupTable> tables;
  for (const RunTables& of_thread : threads) {
    for (std::size_t i = 0; i < of_thread.counts.size(); ++i) {
      tables.push_back({&of_thread.counts[i].table(), i});
    }
    const std::size_t groups = of_thread.counts.size();
    for (std::size_t i = 0; i < of_thread.weights.size(); ++i) {
      tables.push_back({&of_thread.weights[i].table(), groups + i, true});
    }
  }
  const std::size_t groups = threads.empty() ? 0 : threads[0].counts.size();
  const bool is_weighted = !threads.empty() && !threads[0].weights.empty();
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

Trained train_runs(const Vocabulary& vocabulary, Sequences runs, const MergeRule& rule,
                   const Limits& limits, Count bound, Count tokens, const Tick& tick) {
  MergeLoop loop(vocabulary, std::move(runs), rule, Duplicates::kRefusePair);
  Limits floored = limits;
  floored.lowest_floor = bound;
  const Stopped stopped = loop.run(floored, tick);
  return {loop.vocabulary(),        loop.merges(), stopped, tokens - loop.tokens_saved(),
          loop.peak_memory_bytes(), bound};
}

void CountedRuns::add(std::string_view runs, std::span<const std::int64_t> ends,
                      const Count* counts, std::size_t group) {
  RunTables& tables = tables_[0];
  if (group >= tables.counts.size()) throw std::invalid_argument("a run of no group");
  std::vector<TokenId> ids;  // the bytes may lie anywhere
  std::size_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const auto end = static_cast<std::size_t>(ends[i]);
    if (end < begin || end > runs.size()) throw std::invalid_argument("runs that overlap");
    std::string_view run = runs.substr(begin, end - begin);
    begin = end;
    const bool is_weight = run.size() % sizeof(TokenId) == 1 && run.back() == kWeightMark;
    if (is_weight) run.remove_suffix(1);
    if (run.size() % sizeof(TokenId) != 0 || run.size() < 2 * sizeof(TokenId) ||
        (is_weight && tables.weights.empty())) {
      throw std::invalid_argument("not a run of tokens");
    }
    ids.resize(run.size() / sizeof(TokenId));
    std::memcpy(ids.data(), run.data(), run.size());
    may_stop(run.size());
    if (std::any_of(ids.begin(), ids.end(), [&](TokenId id) { return id >= vocabulary_.size(); })) {
      throw std::invalid_argument("a run of tokens that the vocabulary does not hold");
    }
    (is_weight ? tables.weights : tables.counts)[group].add(run, counts[i]);
  }
  tables.counts[group].flush();
  if (!tables.weights.empty()) tables.weights[group].flush();
}

Trained CountedRuns::train(const std::vector<Count>& weights, const MergeRule& rule,
                           const Limits& limits, Count bound, Count tokens,
                           const Tick& tick) const {
  const RunTables& tables = tables_[0];
  if (weights.size() < tables.counts.size()) {
    throw std::invalid_argument("every group of runs needs a weight");
  }
  for (std::size_t i = 0; i < tables.weights.size(); ++i) {
    if (tables.weights[i].table().size() != tables.counts[i].table().size()) {
      throw std::invalid_argument("not every run has a weight");
    }
  }
  Limits with_start = limits;
  with_start.vocab_size = std::max<std::size_t>(limits.vocab_size, vocabulary_.size());
  return train_runs(vocabulary_, joined_runs(tables_, weights, with_start.vocab_size), rule,
                    with_start, bound, tokens, tick);
}

}  // namespace vocabshift
