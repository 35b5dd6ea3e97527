// Threaded counting of pre-tokens. Owns the distinct words and how often each occurs, per group of
// documents; knows nothing of weights or merges. The result does not depend on the thread count.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/pre_tokenize.h"
#include "core/threads.h"
#include "core/word_join.h"
#include "core/word_table.h"

namespace vocabshift {

// Counts words over many blocks of documents, with one table per thread and group. `group` numbers
// what must be told apart later (documents of one language and weight, say), from 0.
class WordCounter {
 public:
  WordCounter(PreTokenizer pre_tokenizer, std::size_t threads);
  WordCounter(WordCounter&&) = default;

  void add(const Documents& documents, std::size_t group);

  // Counts the words of each document counts[i] times.
  void add_counted(const Documents& documents, const Count* counts, std::size_t group);

  // Adds words as they are, words[i] counts[i] times; none may be empty (std::invalid_argument).
  void add_words(const Documents& words, const Count* counts, std::size_t group);

  // Calls visit(std::string_view word, Count weighted, Count occurrences) once for every distinct
  // word of all groups, in no particular order; `weighted` sums its counts times
  // weight_of(word, group). std::invalid_argument where a sum does not fit 64 bits.
  template <class WeightOf, class Visit>
  void for_each_word(WeightOf&& weight_of, Visit&& visit) const {
    WordJoin(all_tables()).for_each(weight_of, visit);
  }

  // Calls visit(std::string_view word, Count count) once for every distinct word of one group.
  template <class Visit>
  void for_each_word_of(std::size_t group, Visit&& visit) const {
    WordJoin(tables_of(group))
        .for_each([](std::string_view, std::size_t) { return Count{1}; },
                  [&](std::string_view word, Count, Count count) { visit(word, count); });
  }

  // The parts into which a further pre-tokenizer cuts the words, counted as often as these.
  WordCounter split_words(const PreTokenizer& inner) const;

  std::size_t group_count() const { return tables_.size(); }

  // At least as many words, and bytes in them, as for_each_word will visit.
  struct Bound {
    std::size_t words;
    std::size_t bytes;
  };
  Bound bound() const;

  // Frees the words.
  void clear() { tables_.clear(); }

  // Writes all groups to a file, and reads such a file (what was counted, with a pre-tokenizer
  // that does not cut). std::system_error where the system refuses; std::invalid_argument where
  // the file is not whole.
  void save(const std::string& path) const;
  static WordCounter load(const std::string& path);

 private:
  using Tables = std::vector<std::unique_ptr<WordTable>>;  // [thread], null if unused

  template <class Body>
  void count(const Documents& documents, std::size_t group, Body&& body);

  std::vector<GroupTable> tables_of(std::size_t group) const;
  std::vector<GroupTable> all_tables() const;

  PreTokenizer pre_tokenizer_;
  std::size_t threads_;
  std::vector<Tables> tables_;  // [group]
};

}  // namespace vocabshift
