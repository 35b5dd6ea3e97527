// Counted words on disk: runs, each sorted, that are merged while they are read. Owns the files and
// how many there are; knows nothing of the budget that makes a counter write them.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/word_file.h"
#include "core/word_join.h"
#include "core/word_sort.h"

namespace vocabshift {

// Reads several sorted files as one. std::invalid_argument where one is not sorted.
class RunMerge {
 public:
  explicit RunMerge(const std::vector<std::shared_ptr<OpenFile>>& files);

  // The next record in order, equal ones of several files one after the other; false at the end.
  // `record` is valid until the next call.
  bool next(WordRecord& record);

 private:
  struct Head {
    std::uint64_t order;
    WordRecord record;
    std::size_t reader;
  };
  static bool before(const Head& a, const Head& b) {
    if (a.order != b.order) return a.order < b.order;
    const int order = a.record.word.compare(b.record.word);
    return order != 0 ? order < 0 : a.record.group < b.record.group;
  }
  bool advance(Head& head);  // false at the end of its file
  void sift_down();

  std::vector<WordFileReader> readers_;
  std::vector<Head> heads_;  // a heap, the first in order on top
  bool top_is_used_ = false;
  std::string last_;  // word at the end of a block that was left behind
};

class WordRuns {
 public:
  explicit WordRuns(std::string folder) : folder_(std::move(folder)) {}

  // Writes the words of the tables as a run; threads may do so at the same time.
  void write(const std::vector<GroupTable>& tables, std::size_t groups);

  // Takes a sorted file as a run.
  void adopt(std::shared_ptr<OpenFile> file);

  bool empty() const { return levels_.empty(); }

  // Calls visit(const WordRecord&) once for every word of a group, in order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    merge(files(), visit);
  }

  std::vector<std::shared_ptr<OpenFile>> files() const;

 private:
  // So many runs are merged into one of the next level; each costs a block of memory to read.
  static constexpr std::size_t kFan = 32;

  template <class Visit>
  static void merge(const std::vector<std::shared_ptr<OpenFile>>& files, Visit&& visit) {
    RunMerge merge(files);
    RecordSum sum(visit);
    for (WordRecord record; merge.next(record);) sum.add(record);
    sum.flush();
  }
  void add(std::shared_ptr<OpenFile> file, std::size_t level, std::size_t groups);

  std::string folder_;
  std::mutex mutex_;
  std::vector<std::vector<std::shared_ptr<OpenFile>>> levels_;
};

}  // namespace vocabshift
