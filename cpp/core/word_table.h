// One hash table of words and their counts. Owns how a word is stored and found; knows nothing of
// threads, groups or files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/big_memory.h"
#include "core/hash.h"
#include "core/types.h"

namespace vocabshift {

// Distinct words with their occurrences: open addressing, one cache line per two slots, words up
// to 16 bytes inside the slot. Slots are in the order of the hash's top bits, so that growing,
// joining and cutting by hash read and write memory from end to end.
class WordTable {
 public:
  WordTable();

  // Adds counts[i] (1 each where `counts` is null) to each of up to kBatch words. They are looked
  // up as one batch, so that the memory they need is on its way before it is touched: with a
  // million distinct words every look-up misses the cache. std::invalid_argument for an empty
  // word, one of 4 GiB, or a count beyond 64 bits. All bytes from a word up to `readable`, where
  // that lies after it, may be loaded: parts of one text are keyed faster so.
  static constexpr std::size_t kBatch = 32;
  void add_batch(const std::string_view* words, const Count* counts, std::size_t count,
                 const char* readable = nullptr);
  void add_batch(const std::string_view* words, std::size_t count) {
    add_batch(words, nullptr, count);
  }

  // Makes room for so many words. Words that come in the order of their hashes (those of another
  // table) need this first: they would pile up at the beginning of a table that is too small.
  void reserve(std::size_t words);

  // Forgets all words and frees their memory.
  void clear();

  std::size_t size() const { return size_; }
  // Memory in bytes, and the most there will be while so many words are added of which the long
  // ones have `long_bytes`: where a table grows, the old one and the new one are there together.
  std::size_t memory_bytes() const { return slots_.size() * sizeof(Slot) + long_words_.capacity(); }
  std::size_t memory_to_add(std::size_t words, std::size_t long_bytes) const {
    const std::size_t slots = slots_.size() * (must_grow(words) ? 3 : 1);
    const std::size_t bytes = long_words_.size() + long_bytes;
    const std::size_t capacity = long_words_.capacity();
    return slots * sizeof(Slot) +
           (bytes > capacity ? capacity + std::max(bytes, 2 * capacity) : capacity);
  }

  // A stored word. `bytes` may lie in a buffer of 16 bytes that the next one is written to; of a
  // word over 16 bytes they are valid as long as the table does not change.
  struct Entry {
    WordKey key;
    std::string_view bytes;
    Count count;
  };

  // Calls visit(std::string_view word, Count count) for each word, in about the order of the hashes
  // (see reserve).
  template <class F>
  void for_each(F&& visit) const {
    char buffer[WordKey::kInline];
    for (const Slot& slot : slots_) {
      if (slot.length != 0) visit(word_of(slot, buffer), slot.count);
    }
  }

  // Calls visit(std::size_t place, std::string_view word) for each word; at(place) finds it again
  // as long as the table does not change.
  template <class F>
  void for_each_place(F&& visit) const {
    char buffer[WordKey::kInline];
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].length != 0) visit(i, word_of(slots_[i], buffer));
    }
  }
  Entry at(std::size_t place, char* buffer) const { return entry_of(slots_[place], buffer); }

  // Calls visit(const Entry&, std::uint64_t hash) for each word whose hash begins with the `bits`
  // bits `part`; bits <= kMostBits.
  static constexpr unsigned kFirstBits = 12;  // log2 of the slots of an empty table
  static constexpr unsigned kMostBits = kFirstBits;
  template <class F>
  void for_each_in(unsigned bits, std::size_t part, F&& visit) const {
    char buffer[WordKey::kInline];
    const std::size_t width = slots_.size() >> bits;
    const auto look_at = [&](const Slot& slot) {
      const std::uint64_t hash = key_of(slot).hash();
      if (bits == 0 || hash >> (64 - bits) == part) visit(entry_of(slot, buffer), hash);
    };
    const std::size_t end = (part + 1) * width;
    for (std::size_t at = part * width; at < end; ++at) {
      if (slots_[at].length != 0) look_at(slots_[at]);
    }
    // Words that found their place taken stand after it, without a gap, around the end.
    for (std::size_t at = end; bits != 0; ++at) {
      const Slot& slot = slots_[at & (slots_.size() - 1)];
      if (slot.length == 0) break;
      look_at(slot);
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

  static WordKey key_of(const Slot& slot) {
    return {slot.low, slot.length <= WordKey::kInline ? slot.high : 0, slot.length};
  }
  std::size_t home(std::uint64_t hash) const { return hash >> shift_; }
  bool must_grow(std::size_t more) const { return (size_ + more) * 3 > slots_.size() * 2; }

  Slot& found(std::size_t at, std::size_t first);
  Slot& find_or_insert(const WordKey& key, std::uint64_t hash, std::string_view word);
  void resize(unsigned bits);
  Entry entry_of(const Slot& slot, char* buffer) const {
    return {key_of(slot), word_of(slot, buffer), slot.count};
  }
  std::string_view word_of(const Slot& slot, char* buffer) const;

  MappedVector<Slot> slots_;
  unsigned shift_;  // 64 - log2(slots)
  std::size_t size_ = 0;
  std::string long_words_;  // bytes of the words over 16 bytes
};

// The bytes of a word that is its own key, written to a buffer of 16 bytes.
inline std::string_view word_of_key(const WordKey& key, char* buffer) {
  std::memcpy(buffer, &key.low, 8);
  std::memcpy(buffer + 8, &key.high, 8);
  return {buffer, key.length};
}

inline std::string_view WordTable::word_of(const Slot& slot, char* buffer) const {
  if (slot.length > WordKey::kInline) return {long_words_.data() + slot.high, slot.length};
  return word_of_key(key_of(slot), buffer);
}

}  // namespace vocabshift
