#include "core/word_table.h"

#include <stdexcept>
#include <utility>

#include "core/filled.h"
#include "core/platform.h"
#include "core/stop.h"

namespace vocabshift {

WordTable::WordTable() : slots_(std::size_t{1} << kFirstBits, Slot{}), shift_(64 - kFirstBits) {}

// What is met often comes to stand where it is looked for first: no slot between the two is free,
// so both words are found as before, and the first look is nearly always right.
inline WordTable::Slot& WordTable::found(std::size_t at, std::size_t first) {
  if (at == first || slots_[at].count <= slots_[first].count) return slots_[at];
  std::swap(slots_[at], slots_[first]);
  return slots_[first];
}

inline WordTable::Slot& WordTable::find_or_insert(const WordKey& key, std::uint64_t hash,
                                                  std::string_view word) {
  const std::size_t mask = slots_.size() - 1;
  const std::size_t first = home(hash);
  for (std::size_t at = first;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    // One branch for all three.
    if (((slot.low ^ key.low) | (slot.high ^ key.high) | (slot.length ^ key.length)) == 0 &&
        key.is_inline()) [[likely]] {
      return found(at, first);
    }
    if (slot.length == 0) {
      ++size_;
      slot = {key.low, key.high, key.length, 0, 0};
      if (!key.is_inline()) {
        slot.high = long_words_.size();
        long_words_.append(word);
      }
      return slot;
    }
    if (!key.is_inline() && slot.low == key.low && slot.length == key.length &&
        std::memcmp(long_words_.data() + slot.high, word.data(), key.length) == 0) {
      return found(at, first);
    }
  }
}

void WordTable::resize(unsigned bits) {
  // Whoever is stopped here leaves the table as it was.
  auto larger = filled<MappedVector<Slot>>(std::size_t{1} << bits, Slot{});
  const unsigned shift = 64 - bits;
  const std::size_t mask = larger.size() - 1;
  for (const Slot& slot : slots_) {
    may_stop(4);
    if (slot.length == 0) continue;
    std::size_t at = static_cast<std::size_t>(key_of(slot).hash() >> shift);
    while (larger[at].length != 0) at = (at + 1) & mask;
    larger[at] = slot;
  }
  slots_ = std::move(larger);
  shift_ = shift;
}

void WordTable::reserve(std::size_t words) {
  unsigned bits = 64 - shift_;
  while (words * 3 > (std::size_t{1} << bits) * 2) ++bits;
  if (bits > 64 - shift_) resize(bits);
}

void WordTable::clear() {
  WordTable empty;
  std::swap(*this, empty);
}

void WordTable::add_batch(const std::string_view* words, const Count* counts, std::size_t count,
                          const char* readable) {
  if (must_grow(count)) resize(64 - shift_ + 1);
  WordKey keys[kBatch];
  std::uint64_t hashes[kBatch];
  bool has_long = false;
  for (std::size_t i = 0; i < count; ++i) {
    const char* const begin = words[i].data();
    keys[i] = word_key(words[i], begin < readable ? static_cast<std::size_t>(readable - begin) : 0);
    if (keys[i].length == 0) throw std::invalid_argument("a word without bytes is counted");
    hashes[i] = keys[i].hash();
    has_long |= words[i].size() > WordKey::kInline;
    prefetch_to_write(&slots_[home(hashes[i])]);
  }
  for (std::size_t i = 0; has_long && i < count; ++i) {
    if (words[i].size() <= WordKey::kInline) continue;
    if (words[i].size() != keys[i].length) throw std::invalid_argument("a word of 4 GiB or more");
    const Slot& slot = slots_[home(hashes[i])];
    if (slot.low == keys[i].low) prefetch_to_read(long_words_.data() + slot.high);
  }
  for (std::size_t i = 0; i < count; ++i) {
    Slot& slot = find_or_insert(keys[i], hashes[i], words[i]);
    if (add_overflows(slot.count, counts ? counts[i] : 1, &slot.count)) {
      throw std::invalid_argument("a word is counted more than 2^64 times");
    }
  }
}

}  // namespace vocabshift
