// Counted runs of tokens, and the superwords that are learned from them. Owns how the runs of
// several threads and groups are joined; knows nothing of where they were cut out of text.
#pragma once

#include <span>
#include <vector>

#include "core/merge_loop.h"
#include "core/train.h"
#include "core/word_join.h"
#include "core/word_table.h"

namespace vocabshift {

// Distinct runs of tokens with their counts. Runs stay where they are until flush().
class RunTable {
 public:
  void add(std::span<const TokenId> run, Count count) {
    add({reinterpret_cast<const char*>(run.data()), run.size_bytes()}, count);
  }
  void add(std::string_view run, Count count) {
    runs_[waiting_] = run;
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

// The tables of one thread: one for each group, and where sentences have weights as many again
// that hold the weights.
struct RunTables {
  explicit RunTables(std::size_t groups, bool weighted)
      : counts(groups), weights(weighted ? groups : 0) {}

  // Memory in bytes. Empty tables do not count, so that a bound above all borders always fits.
  std::size_t memory_bytes() const;

  std::vector<RunTable> counts;   // by group: how often a run occurs
  std::vector<RunTable> weights;  // by group: the sum of its sentences' weights
};

// Every run once, with its count and its weight: the sums over all threads and groups, in which an
// occurrence counts weights[group] times. std::invalid_argument where a sum does not fit 64 bits.
Sequences joined_runs(const std::vector<RunTables>& threads, const std::vector<Count>& weights,
                      std::size_t vocab_size);

// Superwords learned from runs that were cut at borders below `bound`, of a text of `tokens`
// tokens. Stopped::kFloor: the bound was too high, and there are merges below it.
Trained train_runs(const Vocabulary& vocabulary, Sequences runs, const MergeRule& rule,
                   const Limits& limits, Count bound, Count tokens, const Tick& tick);

// Runs that were counted elsewhere, on their way to training.
class CountedRuns {
 public:
  // Ends the bytes of a run whose count is the sum of its sentences' weights.
  static constexpr char kWeightMark = 'w';

  // `vocabulary` is the first stage's. `weighted`: sentences have weights, and for every run a
  // second one with the mark holds their sum.
  CountedRuns(Vocabulary vocabulary, std::size_t groups, bool weighted)
      : vocabulary_(std::move(vocabulary)), tables_(1, RunTables(groups, weighted)) {}

  // Adds runs, ids of 4 bytes each in the machine's order. std::invalid_argument for what is no
  // run of the vocabulary's tokens.
  void add(std::string_view runs, std::span<const std::int64_t> ends, const Count* counts,
           std::size_t group);

  std::size_t memory_bytes() const { return tables_[0].memory_bytes(); }

  // See train_runs; limits.vocab_size includes the vocabulary. std::invalid_argument where a run
  // has no weight.
  Trained train(const std::vector<Count>& weights, const MergeRule& rule, const Limits& limits,
                Count bound, Count tokens, const Tick& tick) const;

 private:
  Vocabulary vocabulary_;
  std::vector<RunTables> tables_;
};

}  // namespace vocabshift
