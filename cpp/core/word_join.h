// Joins tables of words: each distinct word once, with what all tables say of it. Owns how words of
// several tables meet, without a table of them all: one part of the hashes after the other, small
// enough for the cache.
#pragma once

#include <bit>
#include <stdexcept>
#include <vector>

#include "core/platform.h"
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
    if (multiply_overflows(count, weight, &product)) overflow();
    add_sum({product, holds_weights ? 0 : count});
  }
  void add_sum(const WordSum& other) {
    if (add_overflows(weighted, other.weighted, &weighted) ||
        add_overflows(occurrences, other.occurrences, &occurrences)) {
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

  // The words come in so many parts; in one at least.
  std::size_t parts() const { return std::size_t{1} << bits_; }

  // Calls visit(word, weighted, occurrences) for each distinct word, in no particular order:
  // `occurrences` of all tables, `weighted` each times weight_of(word, group).
  template <class WeightOf, class Visit>
  void for_each(WeightOf&& weight_of, Visit&& visit) const {
    if (tables_.size() != 1) return for_each_in(0, parts(), weight_of, visit);
    tables_[0].table->for_each(
        [&](std::string_view word, Count count) { visit_one(word, count, weight_of, visit); });
  }

  // The same for the parts from `begin` to before `end`. Different parts may be visited by
  // different threads at the same time; all of them one after the other give the order of one.
  template <class WeightOf, class Visit>
  void for_each_in(std::size_t begin, std::size_t end, WeightOf&& weight_of, Visit&& visit) const {
    std::vector<Word> gathered, joined;
    for (std::size_t part = begin; !tables_.empty() && part < end; ++part) {
      if (tables_.size() == 1) {
        const auto each = [&](const WordTable::Entry& entry, std::uint64_t) {
          visit_one(entry.bytes, entry.count, weight_of, visit);
        };
        tables_[0].table->for_each_in(bits_, part, each);
        continue;
      }
      gather(part, weight_of, gathered);
      join(gathered, joined);
      char buffer[WordKey::kInline];
      for (const Word& word : joined) {
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

  template <class WeightOf, class Visit>
  void visit_one(std::string_view word, Count count, WeightOf& weight_of, Visit& visit) const {
    may_stop(word.size());
    WordSum sum;
    sum.add(count, weight_of(word, tables_[0].group), tables_[0].holds_weights);
    visit(word, sum.weighted, sum.occurrences);
  }

  template <class WeightOf>
  void gather(std::size_t part, WeightOf& weight_of, std::vector<Word>& gathered) const {
    gathered.clear();
    for (const GroupTable& from : tables_) {
      from.table->for_each_in(bits_, part, [&](const WordTable::Entry& entry, std::uint64_t hash) {
        Word word{entry.key, hash, entry.bytes.data(), {}};
        word.sum.add(entry.count, weight_of(entry.bytes, from.group), from.holds_weights);
        gathered.push_back(word);
      });
    }
  }

  void join(const std::vector<Word>& gathered, std::vector<Word>& joined) const {
    const auto slot_bits = static_cast<unsigned>(std::bit_width(gathered.size()) + 1);
    const std::size_t mask = (std::size_t{1} << slot_bits) - 1;
    joined.assign(mask + 1, Word{});
    for (const Word& word : gathered) {
      std::size_t at = (word.hash << bits_) >> (64 - slot_bits);
      while (joined[at].key.length != 0 && !same(joined[at], word)) at = (at + 1) & mask;
      if (joined[at].key.length == 0) {
        joined[at] = word;
      } else {
        joined[at].sum.add_sum(word.sum);
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
};

}  // namespace vocabshift
