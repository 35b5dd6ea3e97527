// Joins tables of words: each distinct word once, with what all tables say of it. Owns how words of
// several tables meet, without a table of them all: one part of the hashes after the other, small
// enough for the cache.
#pragma once

#include <bit>
#include <stdexcept>
#include <vector>

#include "core/stop.h"
#include "core/word_table.h"

namespace vocabshift {

struct GroupTable {
  const WordTable* table;
  std::size_t group;
  bool holds_weights = false;  // its counts are weights already, not occurrences
};

// Counts of one word, summed. std::invalid_argument where they do not fit 64 bits.
struct WordSum {
  Count weighted = 0;
  Count occurrences = 0;

  void add(Count count, Count weight, bool holds_weights = false) {
    Count product;
    if (__builtin_mul_overflow(count, weight, &product)) overflow();
    add_sum({product, holds_weights ? 0 : count});
  }
  void add_sum(const WordSum& other) {
    if (__builtin_add_overflow(weighted, other.weighted, &weighted) ||
        __builtin_add_overflow(occurrences, other.occurrences, &occurrences)) {
      overflow();
    }
  }
  [[noreturn]] static void overflow() {
    throw std::invalid_argument(
        "the weighted count of all text is beyond 2^64; make the weights less different");
  }
};

class WordJoin {
 public:
  explicit WordJoin(std::vector<GroupTable> tables) : tables_(std::move(tables)) {
    std::size_t words = 0;
    for (const GroupTable& from : tables_) words += from.table->size();
    while (bits_ < WordTable::kMostBits && words >> bits_ > kPartWords) ++bits_;
  }

  // Calls visit(word, weighted, occurrences) for each distinct word, in no particular order:
  // `occurrences` of all tables, `weighted` each times weight_of(word, group).
  template <class WeightOf, class Visit>
  void for_each(WeightOf&& weight_of, Visit&& visit) {
    if (tables_.size() == 1) {
      tables_[0].table->for_each([&](std::string_view word, Count count) {
        may_stop(word.size());
        WordSum sum;
        sum.add(count, weight_of(word, tables_[0].group), tables_[0].holds_weights);
        visit(word, sum.weighted, sum.occurrences);
      });
      return;
    }
    for (std::size_t part = 0; !tables_.empty() && part >> bits_ == 0; ++part) {
      gather(part, weight_of);
      join();
      char buffer[WordKey::kInline];
      for (const Word& word : joined_) {
        if (word.key.length == 0) continue;
        may_stop(word.key.length);
        const bool is_inline = word.key.is_inline();
        visit(is_inline ? word_of_key(word.key, buffer)
                        : std::string_view(word.long_bytes, word.key.length),
              word.sum.weighted, word.sum.occurrences);
      }
    }
  }

 private:
  static constexpr std::size_t kPartWords = 4096;

  struct Word {
    WordKey key;  // length 0: none
    std::uint64_t hash;
    const char* long_bytes;  // of a word over 16 bytes, in its table
    WordSum sum;
  };

  template <class WeightOf>
  void gather(std::size_t part, WeightOf&& weight_of) {
    gathered_.clear();
    for (const GroupTable& from : tables_) {
      from.table->for_each_in(bits_, part, [&](const WordTable::Entry& entry, std::uint64_t hash) {
        Word word{entry.key, hash, entry.bytes.data(), {}};
        word.sum.add(entry.count, weight_of(entry.bytes, from.group), from.holds_weights);
        gathered_.push_back(word);
      });
    }
  }

  void join() {
    const auto slot_bits = static_cast<unsigned>(std::bit_width(gathered_.size()) + 1);
    const std::size_t mask = (std::size_t{1} << slot_bits) - 1;
    joined_.assign(mask + 1, Word{});
    for (const Word& word : gathered_) {
      std::size_t at = (word.hash << bits_) >> (64 - slot_bits);
      while (joined_[at].key.length != 0 && !same(joined_[at], word)) at = (at + 1) & mask;
      if (joined_[at].key.length == 0) {
        joined_[at] = word;
      } else {
        joined_[at].sum.add_sum(word.sum);
      }
    }
  }

  static bool same(const Word& a, const Word& b) {
    if (a.key.low != b.key.low || a.key.high != b.key.high || a.key.length != b.key.length) {
      return false;
    }
    return a.key.is_inline() || std::memcmp(a.long_bytes, b.long_bytes, a.key.length) == 0;
  }

  std::vector<GroupTable> tables_;
  unsigned bits_ = 0;  // the hashes are taken in 2^bits_ parts
  std::vector<Word> gathered_, joined_;
};

}  // namespace vocabshift
