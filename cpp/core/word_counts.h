// Threaded counting of pre-tokens. Owns the distinct words and how often each occurs, per group of
// documents; knows nothing of weights or merges. The result does not depend on the thread count.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/big_memory.h"
#include "core/hash.h"
#include "core/pre_tokenize.h"
#include "core/threads.h"

namespace vocabshift {

// Distinct words with their occurrences: open addressing, one cache line per two slots, words up
// to 16 bytes inside the slot.
class WordTable {
 public:
  WordTable();

  // Counts each word once. The words are looked up as one batch, so that the memory they need is
  // on its way before it is touched: with a million distinct words every look-up misses the cache.
  static constexpr std::size_t kBatch = 32;
  void add_batch(const std::string_view* words, std::size_t count);

  void add(std::string_view word, Count count);
  void merge_from(const WordTable& other);

  std::size_t size() const { return size_; }

  // Calls visit(std::string_view word, Count count) for each word, in no particular order.
  template <class F>
  void for_each(F&& visit) const {
    char buffer[16];
    for (const Slot& slot : slots_) {
      if (slot.length != 0) visit(word_of(slot, buffer), slot.count);
    }
  }

 private:
  struct Slot {
    std::uint64_t low;     // WordKey::low
    std::uint64_t high;    // WordKey::high, or the offset in long_words_ of a long word
    std::uint32_t length;  // in bytes; 0: empty slot
    std::uint32_t unused;
    Count count;
  };

  Slot& find_or_insert(const WordKey& key, std::uint64_t hash, std::string_view word);
  void grow();
  std::string_view word_of(const Slot& slot, char* buffer) const;

  BigVector<Slot> slots_;
  std::size_t size_ = 0;
  std::string long_words_;  // bytes of the words over 16 bytes
};

// Counts words over many blocks of documents, with one table per thread and group.
class WordCounter {
 public:
  WordCounter(PreTokenizer pre_tokenizer, std::size_t threads);

  // `group` numbers what must be told apart later (documents of one weight, say), from 0.
  void add(const Documents& documents, std::size_t group);

  // Joins the threads' tables; counting may not go on afterwards.
  void finish();

  // Frees the words.
  void clear() { tables_.clear(); }

  std::size_t group_count() const { return tables_.size(); }
  const WordTable& table(std::size_t group) const;  // after finish()

 private:
  PreTokenizer pre_tokenizer_;
  std::size_t threads_;
  std::vector<std::vector<std::unique_ptr<WordTable>>> tables_;  // [group][thread], null if unused
};

}  // namespace vocabshift
