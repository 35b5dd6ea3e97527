#include "core/word_counts.h"

#include <optional>

#include "core/word_file.h"

namespace vocabshift {

namespace {

// Words on their way to a table, which takes them by the batch.
class Batch {
 public:
  explicit Batch(WordTable& table) : table_(table) {}

  void add(std::string_view word, Count count) {
    words_[waiting_] = word;
    counts_[waiting_] = count;
    if (++waiting_ == WordTable::kBatch) flush();
  }
  void flush() {
    table_.add_batch(words_, counts_, waiting_);
    waiting_ = 0;
  }

 private:
  WordTable& table_;
  std::size_t waiting_ = 0;
  std::string_view words_[WordTable::kBatch];
  Count counts_[WordTable::kBatch];
};

}  // namespace

WordCounter::WordCounter(PreTokenizer pre_tokenizer, std::size_t threads)
    : pre_tokenizer_(std::move(pre_tokenizer)), threads_(threads == 0 ? 1 : threads) {}

// Each thread runs body(batch, i) for the documents of its share.
template <class Body>
void WordCounter::count(const Documents& documents, std::size_t group, Body&& body) {
  if (group >= tables_.size()) tables_.resize(group + 1);
  Tables& tables = tables_[group];
  tables.resize(threads_);
  const std::vector<std::size_t> borders = balanced_shards(documents, threads_);
  parallel_for(threads_, [&](std::size_t shard) {
    if (borders[shard] == borders[shard + 1]) return;
    if (!tables[shard]) tables[shard] = std::make_unique<WordTable>();
    Batch batch(*tables[shard]);
    for (std::size_t i = borders[shard]; i < borders[shard + 1]; ++i) body(batch, i);
    batch.flush();
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

void WordCounter::add_words(const Documents& words, const Count* counts, std::size_t group) {
  count(words, group, [&](Batch& batch, std::size_t i) { batch.add(words[i], counts[i]); });
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

WordCounter::Bound WordCounter::bound() const {
  Bound bound{0, 0};
  for (const GroupTable& from : all_tables()) {
    bound.words += from.table->size();
    from.table->for_each([&](std::string_view word, Count) { bound.bytes += word.size(); });
  }
  return bound;
}

WordCounter WordCounter::split_words(const PreTokenizer& inner) const {
  WordCounter result(inner, 1);
  result.tables_.resize(tables_.size());
  for (std::size_t group = 0; group < tables_.size(); ++group) {
    auto& table = result.tables_[group].emplace_back(std::make_unique<WordTable>());
    Batch batch(*table);
    for_each_word_of(group, [&](std::string_view word, Count count) {
      inner.split(word, [&](std::string_view part) { batch.add(part, count); });
      batch.flush();  // the bytes of a word are gone when the next one comes
    });
  }
  return result;
}

void WordCounter::save(const std::string& path) const {
  WordFileWriter file(path, tables_.size());
  for (const GroupTable& from : all_tables()) {
    from.table->for_each([&](std::string_view word, Count count) {
      file.add({word, static_cast<std::uint32_t>(from.group), count});
    });
  }
  file.finish();
}

WordCounter WordCounter::load(const std::string& path) {
  WordFileReader file(path);
  WordCounter counter(PreTokenizer({}), 1);
  for (const std::uint64_t words : file.words()) {
    counter.tables_.emplace_back();
    counter.tables_.back().push_back(std::make_unique<WordTable>());
    counter.tables_.back()[0]->reserve(words);
  }
  while (file.next_block()) {
    std::optional<Batch> batch;  // the words of a group lie together
    std::uint32_t group = 0;
    for (WordRecord record; file.next(record);) {
      if (!batch || record.group != group) {
        if (batch) batch->flush();
        group = record.group;
        batch.emplace(*counter.tables_[group][0]);
      }
      batch->add(record.word, record.count);
    }
    if (batch) batch->flush();
  }
  return counter;
}

}  // namespace vocabshift
