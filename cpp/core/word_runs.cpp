#include "core/word_runs.h"

#include <algorithm>

namespace vocabshift {

RunMerge::RunMerge(const std::vector<std::shared_ptr<OpenFile>>& files) {
  readers_.reserve(files.size());
  for (const auto& file : files) readers_.emplace_back(file);
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    Head head{0, {}, i};
    if (advance(head)) heads_.push_back(head);
  }
  std::make_heap(heads_.begin(), heads_.end(),
                 [](const Head& a, const Head& b) { return before(b, a); });
}

bool RunMerge::next(WordRecord& record) {
  if (top_is_used_) {
    if (!advance(heads_.front())) {
      heads_.front() = heads_.back();
      heads_.pop_back();
    }
    sift_down();
  }
  if (heads_.empty()) return false;
  record = heads_.front().record;
  top_is_used_ = true;
  return true;
}

bool RunMerge::advance(Head& head) {
  WordFileReader& reader = readers_[head.reader];
  Head last = head;
  while (!reader.next(head.record)) {
    last_.assign(last.record.word);  // its block goes
    last.record.word = last_;
    if (!reader.next_block()) return false;
  }
  head.order = order_of(head.record.word);
  if (!last.record.word.empty() && !before(last, head)) reader.damaged("it is not sorted");
  return true;
}

void RunMerge::sift_down() {
  for (std::size_t at = 0;;) {
    std::size_t least = 2 * at + 1;
    if (least >= heads_.size()) return;
    if (least + 1 < heads_.size() && before(heads_[least + 1], heads_[least])) ++least;
    if (!before(heads_[least], heads_[at])) return;
    std::swap(heads_[at], heads_[least]);
    at = least;
  }
}

void WordRuns::write(const std::vector<GroupTable>& tables, std::size_t groups) {
  const std::shared_ptr<OpenFile> file = OpenFile::temporary(folder_);
  WordFileWriter writer(file, groups, Sorted::kYes);
  const auto put = [&](const WordRecord& record) { writer.add(record); };
  RecordSum sum(put);
  for_each_sorted(tables, [&](const WordRecord& record) { sum.add(record); });
  sum.flush();
  writer.finish();
  const std::lock_guard<std::mutex> lock(mutex_);
  add(file, 0, groups);
}

void WordRuns::adopt(std::shared_ptr<OpenFile> file) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (levels_.empty()) levels_.resize(1);
  levels_[0].push_back(std::move(file));
}

void WordRuns::add(std::shared_ptr<OpenFile> file, std::size_t level, std::size_t groups) {
  if (level >= levels_.size()) levels_.resize(level + 1);
  std::vector<std::shared_ptr<OpenFile>>& runs = levels_[level];
  runs.push_back(std::move(file));
  if (runs.size() < kFan) return;
  const std::shared_ptr<OpenFile> merged = OpenFile::temporary(folder_);
  WordFileWriter writer(merged, groups, Sorted::kYes);
  merge(runs, [&](const WordRecord& record) { writer.add(record); });
  writer.finish();
  runs.clear();
  add(merged, level + 1, groups);
}

std::vector<std::shared_ptr<OpenFile>> WordRuns::files() const {
  std::vector<std::shared_ptr<OpenFile>> files;
  for (const auto& level : levels_) files.insert(files.end(), level.begin(), level.end());
  return files;
}

}  // namespace vocabshift
