// The encoder's memory of words: what a word was encoded to, for the words that come again. It
// begins with the short tokens, each a word that is encoded to itself.
//
// Owns one table that grows with the number of words. A slot is half a cache line: a short word is
// compared as two machine words and its ids lie beside it; of a longer word, or one of many ids,
// the slot holds where these are. What is found is always compared whole, so the cache can only
// change speed. Knows nothing of models.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/big_memory.h"
#include "core/hash.h"
#include "core/platform.h"
#include "core/types.h"

namespace vocabshift {

// A word as the cache knows it.
struct CacheKey {
  static constexpr std::size_t kShort = 15;  // bytes of a word that is its own key

  // The top byte of `high`: a bit for pieces, four for the length of a short word (0: a longer
  // one), and three that are 0, for the cache to use.
  std::uint64_t low;   // the bytes of a short word, then zeros; the hash of a longer one
  std::uint64_t high;  // … and its length

  bool is_short() const { return high >> 59 & 15; }
  std::size_t hash() const { return mix(low ^ kSeed0, high ^ kSeed1); }

  // `readable` bytes may be loaded from the word's address, though they are not all its own.
  // Pieces and parts of pieces that are spelt alike are different words. No word is empty.
  static CacheKey of(std::string_view word, std::size_t readable, bool is_piece) {
    const std::size_t size = word.size();
    const std::uint64_t piece = is_piece ? kPiece : 0;
    if (size > kShort) return {hash_long(word), size | piece};
    const std::uint64_t tag = static_cast<std::uint64_t>(size) << 59 | piece;
    if (readable >= 16) {
      return {load8(word.data()) & kMasks[0][size],
              (load8(word.data() + 8) & kMasks[1][size]) | tag};
    }
    char copy[16] = {};
    std::memcpy(copy, word.data(), size);
    return {load8(copy), load8(copy + 8) | tag};
  }

 private:
  static_assert(std::endian::native == std::endian::little, "a word's first byte is the lowest");
  static constexpr std::uint64_t kPiece = std::uint64_t{1} << 63;

  static std::uint64_t hash_long(std::string_view word) {  // the last 16 bytes may overlap
    const char* const last = word.data() + word.size() - 16;
    std::uint64_t state = kSeed0;
    for (const char* at = word.data(); at < last; at += 16) {
      state = mix(state ^ load8(at), kSeed1 ^ load8(at + 8));
    }
    return mix(state ^ load8(last), kSeed1 ^ load8(last + 8));
  }

  // [half][size]: which bytes of a half belong to a word of that size.
  static constexpr auto kMasks = [] {
    std::array<std::array<std::uint64_t, kShort + 1>, 2> masks{};
    for (std::size_t size = 0; size <= kShort; ++size) {
      const auto first = [](std::size_t n) {
        return n >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * n) - 1;
      };
      masks[0][size] = first(size);
      masks[1][size] = size > 8 ? first(size - 8) : 0;
    }
    return masks;
  }();
};

class WordCache {
 public:
  static constexpr std::size_t kMaxWord = 127;    // bytes of the longest word that is remembered
  static constexpr std::size_t kMostTokens = 32;  // of a word that is

  // Empty, with room for so many words before it grows.
  explicit WordCache(std::size_t words = 0)
      : slots_(slots_for(words)), mask_(slots_for(words) - 1), most_(std::max(kMost, 4 * words)) {}
  WordCache(const WordCache& other) : WordCache() { *this = other; }
  WordCache& operator=(const WordCache& other) {
    if (this == &other) return *this;
    slots_ = ZeroedArray<Slot>(other.mask_ + 1);
    std::memcpy(&slots_[0], &other.slots_[0], (other.mask_ + 1) * sizeof(Slot));
    mask_ = other.mask_;
    used_ = other.used_;
    most_ = other.most_;
    elsewhere_ = other.elsewhere_;
    return *this;
  }
  WordCache(WordCache&&) = default;
  WordCache& operator=(WordCache&&) = default;

  // Asks for the memory of a word's slot, to be there when it is looked up.
  void prefetch(const CacheKey& key) const { prefetch_to_read(&slots_[key.hash() & mask_]); }

  // Copies the ids of a word to `to`, where there is room for kMostTokens, and returns their end;
  // `to` for a word that is not remembered (or has no ids).
  TokenId* copy(const CacheKey& key, std::string_view word, TokenId* to) {
    const std::size_t first = key.hash() & mask_;
    if (!holds(slots_[first], key, word)) {
      std::size_t at = first;
      do {
        if (slots_[at].high == 0) return to;
        at = (at + 1) & mask_;
      } while (!holds(slots_[at], key, word));
      // What is seen again and again comes to stand where it is looked for first. No slot between
      // the two is free: the other word is found as before.
      std::swap(slots_[first], slots_[at]);
    }
    const Slot& slot = slots_[first];
    const std::size_t count = slot.high >> 56 & 7;
    if (count != kElsewhere) {
      std::memcpy(to, slot.ids, sizeof(slot.ids));
      return to + count;
    }
    std::memcpy(to, &elsewhere_[slot.ids[0]], slot.ids[1] * sizeof(TokenId));
    return to + slot.ids[1];
  }

  // Remembers a word that is not in the cache; what is too long, in bytes or in tokens, is not
  // remembered. False where the cache is full: it may be begun anew.
  bool put(const CacheKey& key, std::string_view word, const TokenId* ids, std::size_t count) {
    if (count == 0 || count > kMostTokens || word.size() > kMaxWord) return true;
    if (elsewhere_.size() > kMostElsewhere) return false;
    if (used_ >= (mask_ + 1) / 4 * 3) {
      if (mask_ + 1 >= most_) return false;
      grow();
    }
    ++used_;
    Slot& slot = free_slot(key);
    slot.low = key.low;
    if (key.is_short() && count <= std::size(slot.ids)) {
      slot.high = key.high | static_cast<std::uint64_t>(count) << 56;
      std::memcpy(slot.ids, ids, count * sizeof(TokenId));
      return true;
    }
    slot.high = key.high | kElsewhere << 56;
    slot.ids[0] = static_cast<TokenId>(elsewhere_.size());
    slot.ids[1] = static_cast<TokenId>(count);
    elsewhere_.insert(elsewhere_.end(), ids, ids + count);
    if (key.is_short()) return true;
    elsewhere_.resize(elsewhere_.size() + (word.size() + sizeof(TokenId) - 1) / sizeof(TokenId));
    std::memcpy(&elsewhere_[slot.ids[0] + count], word.data(), word.size());
    return true;
  }

 private:
  struct alignas(32) Slot {
    std::uint64_t low, high;  // of the key, with the number of ids in `high`; high 0: free
    TokenId ids[4];           // or, for kElsewhere: where they are and how many
  };
  static constexpr std::uint64_t kElsewhere = 5;  // in place of a number of ids
  static constexpr std::uint64_t kIds = std::uint64_t{7} << 56;
  static constexpr std::size_t kFewest = std::size_t{1} << 10, kMost = std::size_t{1} << 19;
  static constexpr std::size_t kMostElsewhere = std::size_t{1} << 22;

  bool holds(const Slot& slot, const CacheKey& key, std::string_view word) const {
    if (slot.low != key.low || (slot.high & ~kIds) != key.high) return false;
    if (key.is_short()) return true;
    return std::memcmp(&elsewhere_[slot.ids[0] + slot.ids[1]], word.data(), word.size()) == 0;
  }

  Slot& free_slot(const CacheKey& key) {
    std::size_t at = key.hash() & mask_;
    while (slots_[at].high != 0) at = (at + 1) & mask_;
    return slots_[at];
  }

  static std::size_t slots_for(std::size_t words) {
    return std::bit_ceil(std::max(kFewest, words / 3 * 4 + 4));
  }

  void grow() {
    const std::size_t slots = mask_ + 1;
    const ZeroedArray<Slot> old = std::exchange(slots_, ZeroedArray<Slot>(2 * slots));
    mask_ = 2 * slots - 1;
    for (std::size_t i = 0; i < slots; ++i) {
      if (old[i].high != 0) free_slot({old[i].low, old[i].high & ~kIds}) = old[i];
    }
  }

  ZeroedArray<Slot> slots_;
  std::size_t mask_, used_ = 0;
  std::size_t most_;                // slots
  std::vector<TokenId> elsewhere_;  // the ids of a word, and the bytes of a longer one
};

}  // namespace vocabshift
