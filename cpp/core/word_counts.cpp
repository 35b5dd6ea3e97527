#include "core/word_counts.h"

#include <atomic>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/stop.h"
#include "core/utf8.h"
#include "core/word_file.h"

namespace vocabshift {

// Words on their way to a table, which takes them by the batch.
class WordCounter::Batch {
 public:
  // `readable`: see WordTable::add_batch.
  Batch(WordCounter& counter, std::size_t group, std::size_t thread, const char* readable = nullptr)
      : counter_(counter),
        thread_(thread),
        table_(*counter.tables_[group][thread]),
        readable_(readable) {
    find_room();
  }

  void add(std::string_view word, Count count) {
    words_[waiting_] = word;
    counts_[waiting_] = count;
    if (++waiting_ == WordTable::kBatch) flush();
  }

  void flush() {
    may_stop(waiting_ * 8);
    if (room_ != kUnlimited && waiting_ > 0 && !has_room()) {
      counter_.spill(thread_);
      find_room();
    }
    table_.add_batch(words_, counts_, waiting_, readable_);
    waiting_ = 0;
  }

 private:
  static constexpr std::size_t kUnlimited = ~std::size_t{0};

  // The thread's share of the budget, less what its tables of other groups take.
  void find_room() {
    room_ = kUnlimited;
    if (counter_.budget_.bytes == 0) return;
    std::size_t others = 0;
    for (const GroupTable& other : counter_.tables_of_thread(thread_)) {
      if (other.table != &table_) {
        others += other.table->memory_bytes() + other.table->size() * kSortBytesPerWord;
      }
    }
    const std::size_t share = counter_.budget_.bytes / counter_.threads_;
    room_ = share > others ? share - others : 0;
  }

  bool has_room() const {
    std::size_t long_bytes = 0;
    for (std::size_t i = 0; i < waiting_; ++i) {
      if (words_[i].size() > WordKey::kInline) long_bytes += words_[i].size();
    }
    const std::size_t needed =
        table_.memory_to_add(waiting_, long_bytes) + (table_.size() + waiting_) * kSortBytesPerWord;
    return needed <= room_;
  }

  WordCounter& counter_;
  std::size_t thread_;
  WordTable& table_;
  const char* readable_;
  std::size_t room_;
  std::size_t waiting_ = 0;
  std::string_view words_[WordTable::kBatch];
  Count counts_[WordTable::kBatch];
};

WordCounter::WordCounter(PreTokenizer pre_tokenizer, std::size_t threads, MemoryBudget budget)
    : pre_tokenizer_(std::move(pre_tokenizer)),
      threads_(threads == 0 ? 1 : threads),
      budget_(std::move(budget)) {
  if (budget_.bytes > 0) runs_ = std::make_unique<WordRuns>(budget_.folder);
}

// Calls body(batch, i) for every document, on any thread: documents are handed out in small parts,
// so that a thread which has less of its core than the others (the reader of the next block has
// some too) does not keep them waiting. Which table a word is in says nothing.
template <class Body>
void WordCounter::count(const Documents& documents, std::size_t group, Body&& body) {
  constexpr std::size_t kPartsPerThread = 8;
  if (group >= tables_.size()) tables_.resize(group + 1);
  Tables& tables = tables_[group];
  tables.resize(threads_);
  const std::size_t parts = threads_ == 1 ? 1 : threads_ * kPartsPerThread;
  const std::vector<std::size_t> borders = balanced_shards(documents, parts);
  std::atomic<std::size_t> next = 0;
  parallel_for(threads_, [&](std::size_t thread) {
    std::optional<Batch> batch;
    for (std::size_t part; (part = next++) < parts;) {
      if (borders[part] == borders[part + 1]) continue;
      if (!batch) {
        if (!tables[thread]) tables[thread] = std::make_unique<WordTable>();
        batch.emplace(*this, group, thread, documents.text.data() + documents.text.size());
      }
      for (std::size_t i = borders[part]; i < borders[part + 1]; ++i) body(*batch, i);
    }
    if (batch) batch->flush();
  });
}

void WordCounter::add(const Documents& documents, std::size_t group) {
  count(documents, group, [&](Batch& batch, std::size_t i) {
    pre_tokenizer_.split(documents[i], [&](std::string_view word) { batch.add(word, 1); });
  });
}

void WordCounter::add_counted(const Documents& documents, const Count* counts, std::size_t group) {
  count(documents, group, [&](Batch& batch, std::size_t i) {
    pre_tokenizer_.split(documents[i], [&](std::string_view word) { batch.add(word, counts[i]); });
  });
}

void WordCounter::add_cut(const Documents& documents, const Cut& cut, std::size_t group) {
  count(documents, group, [&](Batch& batch, std::size_t i) {
    cut(documents[i], [&](std::string_view word) { batch.add(word, 1); });
  });
}

void WordCounter::add_words(const Documents& words, const Count* counts, std::size_t group) {
  count(words, group, [&](Batch& batch, std::size_t i) { batch.add(words[i], counts[i]); });
}

WordCounter WordCounter::split_words(const PreTokenizer& inner) {
  WordCounter pieces(inner, 1, budget_);
  pieces.tables_.resize(tables_.size());
  for (std::size_t group = 0; group < tables_.size(); ++group) {
    std::size_t words = 0;
    for (const GroupTable& from : tables_of(group)) words += from.table->size();
    pieces.tables_[group].push_back(std::make_unique<WordTable>());
    if (!limited()) pieces.tables_[group][0]->reserve(words);  // most are not cut any further
  }
  const auto add = [&](Batch& batch, std::string_view word, Count count) {
    if (first_invalid_utf8(word) != kAllValid) {
      throw std::invalid_argument("a counted word is not UTF-8, and cannot be cut further");
    }
    inner.split(word, [&](std::string_view piece) { batch.add(piece, count); });
    batch.flush();  // the word may not outlive the visit
  };
  if (limited()) {
    for_each_sorted_record([&](const WordRecord& record) {
      Batch batch(pieces, record.group, 0);
      add(batch, record.word, record.count);
    });
    return pieces;
  }
  for (const GroupTable& from : all_tables()) {
    Batch batch(pieces, from.group, 0);
    from.table->for_each([&](std::string_view word, Count count) { add(batch, word, count); });
  }
  return pieces;
}

std::vector<GroupTable> WordCounter::tables_of(std::size_t group) const {
  std::vector<GroupTable> found;
  for (const auto& table : tables_.at(group)) {
    if (table && table->size() > 0) found.push_back({table.get(), group});
  }
  return found;
}

std::vector<GroupTable> WordCounter::all_tables() const {
  std::vector<GroupTable> found;
  for (std::size_t group = 0; group < tables_.size(); ++group) {
    for (const GroupTable& table : tables_of(group)) found.push_back(table);
  }
  return found;
}

std::vector<GroupTable> WordCounter::tables_of_thread(std::size_t thread) const {
  std::vector<GroupTable> found;
  for (std::size_t group = 0; group < tables_.size(); ++group) {
    if (thread < tables_[group].size() && tables_[group][thread]) {
      found.push_back({tables_[group][thread].get(), group});
    }
  }
  return found;
}

void WordCounter::spill(std::size_t thread) {
  runs_->write(tables_of_thread(thread), tables_.size());
  for (Tables& tables : tables_) {
    if (thread < tables.size() && tables[thread]) tables[thread]->clear();
  }
}

void WordCounter::spill_all() {
  const std::vector<GroupTable> left = all_tables();
  if (left.empty()) return;
  runs_->write(left, tables_.size());
  for (Tables& tables : tables_) tables.clear();
}

std::size_t WordCounter::memory_bytes() const {
  std::size_t bytes = 0;
  for (const GroupTable& from : all_tables()) bytes += from.table->memory_bytes();
  return bytes;
}

std::size_t WordCounter::stored_words() const {
  std::size_t words = 0;
  for (const GroupTable& from : all_tables()) words += from.table->size();
  return words;
}

void WordCounter::clear() {
  tables_.clear();
  if (runs_) runs_ = std::make_unique<WordRuns>(budget_.folder);
}

WordCounter::Bound WordCounter::bound() {
  Bound bound{0, 0};
  if (spilled()) {
    spill_all();
    for (const auto& file : runs_->files()) {
      const WordFileReader reader(file);
      for (const std::uint64_t words : reader.words()) bound.words += words;
      bound.bytes += reader.payload_bytes();
    }
    return bound;
  }
  for (const GroupTable& from : all_tables()) {
    bound.words += from.table->size();
    from.table->for_each([&](std::string_view word, Count) { bound.bytes += word.size(); });
  }
  return bound;
}

void WordCounter::save(const std::string& path) {
  const std::shared_ptr<OpenFile> file = OpenFile::to_write(path);
  WordFileWriter writer(file, tables_.size(), limited() ? Sorted::kYes : Sorted::kNo);
  if (limited()) {
    for_each_sorted_record([&](const WordRecord& record) { writer.add(record); });
  } else {
    for (const GroupTable& from : all_tables()) {
      from.table->for_each([&](std::string_view word, Count count) {
        writer.add({word, static_cast<std::uint32_t>(from.group), count});
      });
    }
  }
  writer.finish();
  file->close();
}

WordCounter WordCounter::load(const std::string& path, MemoryBudget budget) {
  const std::shared_ptr<OpenFile> file = OpenFile::to_read(path);
  WordFileReader reader(file);
  WordCounter counter(PreTokenizer({}), 1);
  counter.tables_.resize(reader.words().size());
  counter.budget_ = std::move(budget);
  if (reader.is_sorted()) {  // it may be more than memory: it stays where it is
    counter.runs_ = std::make_unique<WordRuns>(counter.budget_.folder);
    counter.runs_->adopt(file);
    counter.runs_->for_each([](const WordRecord&) {});
    return counter;
  }
  const std::size_t bytes = std::exchange(counter.budget_.bytes, 0);  // it was in memory before
  for (std::size_t group = 0; group < reader.words().size(); ++group) {
    counter.tables_[group].push_back(std::make_unique<WordTable>());
    counter.tables_[group][0]->reserve(reader.words()[group]);
  }
  while (reader.next_block()) {
    std::optional<Batch> batch;  // the words of a group lie together
    std::uint32_t group = 0;
    for (WordRecord record; reader.next(record);) {
      if (!batch || record.group != group) {
        if (batch) batch->flush();
        group = record.group;
        batch.emplace(counter, group, std::size_t{0});
      }
      batch->add(record.word, record.count);
    }
    if (batch) batch->flush();
  }
  counter.budget_.bytes = bytes;
  if (bytes > 0) counter.runs_ = std::make_unique<WordRuns>(counter.budget_.folder);
  return counter;
}

}  // namespace vocabshift
