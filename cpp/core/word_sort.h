// Words of tables in the order of their bytes. Owns that order: by unsigned bytes, a word before
// those that it begins, then by group.
#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "core/platform.h"
#include "core/word_file.h"
#include "core/word_join.h"

namespace vocabshift {

// The first 8 bytes of a word as a number: words with different numbers are in their order.
inline std::uint64_t order_of(std::string_view word) {
  char first[8] = {};
  std::memcpy(first, word.data(), std::min<std::size_t>(word.size(), 8));
  return swap_bytes(load8(first));
}

// Memory that for_each_sorted needs beside the tables.
inline constexpr std::size_t kSortBytesPerWord = 16;

// Calls visit(const WordRecord&) for the words of all tables in order; a word that several tables
// of a group hold is visited as often.
template <class Visit>
void for_each_sorted(const std::vector<GroupTable>& tables, Visit&& visit) {
  struct Place {
    std::uint64_t order;
    std::uint32_t table, slot;
  };
  std::vector<Place> places;
  std::size_t words = 0;
  for (const GroupTable& from : tables) words += from.table->size();
  places.reserve(words);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    tables[i].table->for_each_place([&](std::size_t slot, std::string_view word) {
      if (slot >> 32) throw std::length_error("too many words in one table");
      places.push_back(
          {order_of(word), static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(slot)});
    });
  }
  char left[WordKey::kInline], right[WordKey::kInline];
  std::sort(places.begin(), places.end(), [&](const Place& a, const Place& b) {
    if (a.order != b.order) return a.order < b.order;
    const int order = tables[a.table]
                          .table->at(a.slot, left)
                          .bytes.compare(tables[b.table].table->at(b.slot, right).bytes);
    return order != 0 ? order < 0 : tables[a.table].group < tables[b.table].group;
  });
  for (const Place& place : places) {
    const WordTable::Entry entry = tables[place.table].table->at(place.slot, left);
    visit(WordRecord{entry.bytes, static_cast<std::uint32_t>(tables[place.table].group),
                     entry.count});
  }
}

// Sums records that come in order, and hands each word of a group on once.
template <class Visit>
class RecordSum {
 public:
  explicit RecordSum(Visit& visit) : visit_(visit) {}

  void add(const WordRecord& record) {
    if (count_known_ && record.group == group_ && record.word == word_) {
      if (add_overflows(count_, record.count, &count_)) {
        throw std::invalid_argument("a word is counted more than 2^64 times");
      }
      return;
    }
    flush();
    word_.assign(record.word);
    group_ = record.group;
    count_ = record.count;
    count_known_ = true;
  }
  void flush() {
    if (count_known_) visit_(WordRecord{word_, group_, count_});
    count_known_ = false;
  }

 private:
  Visit& visit_;
  std::string word_;
  std::uint32_t group_ = 0;
  Count count_ = 0;
  bool count_known_ = false;
};

}  // namespace vocabshift
