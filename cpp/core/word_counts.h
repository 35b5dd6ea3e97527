// Threaded counting of pre-tokens. Owns the distinct words and how often each occurs, per group of
// documents; knows nothing of weights or merges. The result does not depend on the thread count.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/pre_tokenize.h"
#include "core/threads.h"
#include "core/word_join.h"
#include "core/word_runs.h"
#include "core/word_sort.h"
#include "core/word_table.h"

namespace vocabshift {

// What a counter may hold in memory, and where the rest goes.
struct MemoryBudget {
  std::size_t bytes = 0;  // 0: no limit
  std::string folder;     // for runs of words, where there is a limit
};

// Counts words over many blocks of documents, with one table per thread and group. `group` numbers
// what must be kept apart (documents of one language and weight, say), from 0. Where the
// tables would outgrow their budget they are written out as sorted runs, and what is asked for is
// read from these; which words there are, and how often, does not depend on it. The budget does
// not cover the few megabytes that merging runs needs, nor a table of 128 kB per thread and group.
class WordCounter {
 public:
  WordCounter(PreTokenizer pre_tokenizer, std::size_t threads, MemoryBudget budget = {});
  WordCounter(WordCounter&&) = default;

  void add(const Documents& documents, std::size_t group);

  // Counts the words of each document counts[i] times.
  void add_counted(const Documents& documents, const Count* counts, std::size_t group);

  // Counts what `cut` makes of each document: it calls visit with one piece after the other, none
  // empty, all of them parts of the document.
  using Visit = std::function<void(std::string_view)>;
  using Cut = std::function<void(std::string_view document, const Visit& visit)>;
  void add_cut(const Documents& documents, const Cut& cut, std::size_t group);

  // Adds words as they are, words[i] counts[i] times; none may be empty (std::invalid_argument).
  void add_words(const Documents& words, const Count* counts, std::size_t group);

  // The pieces that `inner` cuts the words into, each counted as often as its word, in the same
  // groups and with the same budget. std::invalid_argument where a word is not UTF-8.
  WordCounter split_words(const PreTokenizer& inner);

  // Calls visit(std::string_view word, Count weighted, Count occurrences) once for every distinct
  // word of all groups, in no particular order; `weighted` sums its counts times
  // weight_of(word, group). std::invalid_argument where a sum does not fit 64 bits.
  template <class WeightOf, class Visit>
  void for_each_word(WeightOf&& weight_of, Visit&& visit) {
    if (!spilled()) return WordJoin(all_tables()).for_each(weight_of, visit);
    WordSum sum;
    std::string word;
    for_each_sorted_record([&](const WordRecord& record) {
      if (record.word != word) {
        if (!word.empty()) visit(std::string_view(word), sum.weighted, sum.occurrences);
        word.assign(record.word);
        sum = {};
      }
      sum.add(record.count, weight_of(record.word, std::size_t{record.group}));
    });
    if (!word.empty()) visit(std::string_view(word), sum.weighted, sum.occurrences);
  }

  // The same with as many threads, where the words are in memory: calls
  // visit(shard, word, weighted, occurrences). Shard i has the same words every time, in the same
  // order, and all shards one after the other are the order of a single one.
  template <class WeightOf, class Visit>
  void for_each_word_of_shards(std::size_t shards, WeightOf&& weight_of, Visit&& visit) {
    const auto visit_as = [&](std::size_t shard) {
      return [&visit, shard](std::string_view word, Count weighted, Count occurrences) {
        visit(shard, word, weighted, occurrences);
      };
    };
    if (shards <= 1 || spilled()) return for_each_word(weight_of, visit_as(0));
    const WordJoin join(all_tables());
    parallel_for(shards, [&](std::size_t shard) {
      join.for_each_in(join.parts() * shard / shards, join.parts() * (shard + 1) / shards,
                       weight_of, visit_as(shard));
    });
  }

  // Calls visit(const WordRecord&) once for every distinct word of every group: words in the order
  // of their bytes, the groups of a word in order.
  template <class Visit>
  void for_each_sorted_record(Visit&& visit) {
    if (spilled()) {
      spill_all();
      return runs_->for_each(visit);
    }
    RecordSum sum(visit);
    for_each_sorted(all_tables(), [&](const WordRecord& record) { sum.add(record); });
    sum.flush();
  }

  // Calls visit(std::string_view word, Count count) once for every distinct word of one group.
  template <class Visit>
  void for_each_word_of(std::size_t group, Visit&& visit) {
    if (spilled()) {
      return for_each_sorted_record([&](const WordRecord& record) {
        if (record.group == group) visit(record.word, record.count);
      });
    }
    WordJoin(tables_of(group))
        .for_each([](std::string_view, std::size_t) { return Count{1}; },
                  [&](std::string_view word, Count, Count count) { visit(word, count); });
  }

  std::size_t group_count() const { return tables_.size(); }
  std::size_t threads() const { return threads_; }

  // At least as many words, and bytes in them, as for_each_word will visit.
  struct Bound {
    std::size_t words;
    std::size_t bytes;
  };
  Bound bound();

  bool limited() const { return budget_.bytes > 0 || spilled(); }

  // Memory that the words take, in bytes.
  std::size_t memory_bytes() const;

  // Words in memory, those of several tables as often.
  std::size_t stored_words() const;

  // Whether some of the words are on disk.
  bool spilled() const { return runs_ && !runs_->empty(); }

  // Frees the words.
  void clear();

  // Writes all groups to a file, and reads such a file (what was counted, with a pre-tokenizer
  // that does not cut). A counter with a budget sorts what it writes, and what is sorted is not
  // loaded but read from the file when it is needed; what is not is held in memory whatever the
  // budget. std::system_error where the system refuses; std::invalid_argument where the file is
  // not whole.
  void save(const std::string& path);
  static WordCounter load(const std::string& path, MemoryBudget budget = {});

 private:
  using Tables = std::vector<std::unique_ptr<WordTable>>;  // [thread], null if unused

  class Batch;

  template <class Body>
  void count(const Documents& documents, std::size_t group, Body&& body);

  std::vector<GroupTable> tables_of(std::size_t group) const;
  std::vector<GroupTable> all_tables() const;
  std::vector<GroupTable> tables_of_thread(std::size_t thread) const;
  void spill(std::size_t thread);
  void spill_all();

  PreTokenizer pre_tokenizer_;
  std::size_t threads_;
  MemoryBudget budget_;
  std::vector<Tables> tables_;      // [group]
  std::unique_ptr<WordRuns> runs_;  // null without a budget
};

}  // namespace vocabshift
