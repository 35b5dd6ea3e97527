// The encoder's memory of words: what a word was encoded to, for the words that come again.
//
// Owns two tables of slots that fill whole cache lines: a short word is compared as two machine
// words, a longer one by hash and bytes. A new word takes the place of an old one, and what is
// found is always compared whole, so the cache can only change speed. Knows nothing of models.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/big_memory.h"
#include "core/hash.h"
#include "core/types.h"

namespace vocabshift {

// A word as the cache knows it; at most 127 bytes long.
struct CacheKey {
  static constexpr std::size_t kShort = 15;  // bytes of a word that is its own key

  std::uint64_t low;   // the bytes of a short word, then zeros; the hash of a longer one
  std::uint64_t high;  // its top byte: the length, plus 128 where `is_piece`

  std::size_t length() const { return high >> 56 & 0x7F; }
  bool is_short() const { return length() <= kShort; }
  bool is_piece() const { return high >> 63; }
  std::size_t hash() const { return mix(low ^ kSeed0, high ^ kSeed1); }

  // `readable` bytes may be loaded from the word's address, though they are not all its own.
  // Pieces and parts of pieces that are spelt alike are different words.
  static CacheKey of(std::string_view word, std::size_t readable, bool is_piece) {
    const std::size_t size = word.size();
    const std::uint64_t tag = static_cast<std::uint64_t>(size | (is_piece ? 128u : 0u)) << 56;
    if (size > kShort) return {hash_long(word), tag};
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
  static constexpr std::size_t kMaxWord = 48;     // bytes of the longest word that is remembered
  static constexpr std::size_t kMostTokens = 15;  // of a word that is

  struct alignas(64) ShortSlot {
    std::uint64_t low, high;  // 0, 0: empty, for no word is
    std::uint32_t tokens;
    TokenId ids[11];
  };
  struct alignas(64) LongSlot {
    std::uint64_t low, high;
    std::uint32_t tokens;
    TokenId ids[kMostTokens];
    char bytes[kMaxWord];

    bool holds(const CacheKey& key, const char* word) const {
      return low == key.low && high == key.high && std::memcmp(bytes, word, key.length()) == 0;
    }
  };
  static_assert(sizeof(ShortSlot) == 64 && sizeof(LongSlot) == 128);

  WordCache() : short_(2 * kSets), long_(2 * kSets) {}

  // Asks for the memory of a word's slots, to be there when it is looked up.
  void prefetch(const CacheKey& key) const {
    const std::size_t at = set_of(key);
    if (key.is_short()) {
      __builtin_prefetch(&short_[at]);
      __builtin_prefetch(&short_[at + 1]);
    } else {
      __builtin_prefetch(&long_[at]);
      __builtin_prefetch(long_[at].bytes);
      __builtin_prefetch(&long_[at + 1]);
    }
  }

  // Copies the ids of a word to `to`, where there is room for kMostTokens, and returns their end;
  // `to` for a word that is not remembered (or has no ids).
  TokenId* copy(const CacheKey& key, const char* word, TokenId* to) {
    const std::size_t at = set_of(key);
    if (key.is_short()) {
      ShortSlot* slot = &short_[at];
      if (slot->low != key.low || slot->high != key.high) {
        if (slot[1].low != key.low || slot[1].high != key.high) return to;
        std::swap(slot[0], slot[1]);
      }
      std::memcpy(to, slot->ids, 16);  // most words have no more
      if (slot->tokens > 4) std::memcpy(to + 4, slot->ids + 4, sizeof(slot->ids) - 16);
      return to + slot->tokens;
    }
    LongSlot* slot = &long_[at];
    if (!slot->holds(key, word)) {
      if (!slot[1].holds(key, word)) return to;
      std::swap(slot[0], slot[1]);
    }
    std::memcpy(to, slot->ids, sizeof(slot->ids));
    return to + slot->tokens;
  }

  // Remembers a word in place of the one of its set that was not seen for longer; what is too
  // long, in bytes or in tokens, is not remembered.
  void put(const CacheKey& key, const char* word, const TokenId* ids, std::size_t tokens) {
    const std::size_t at = set_of(key);
    if (key.is_short()) {
      fill(&short_[at], key, ids, tokens);
    } else if (fill(&long_[at], key, ids, tokens)) {
      std::memcpy(long_[at].bytes, word, key.length());
    }
  }

 private:
  static constexpr std::size_t kSets = std::size_t{1} << 16;  // of two slots, the last seen first

  static std::size_t set_of(const CacheKey& key) { return 2 * (key.hash() & (kSets - 1)); }

  template <class Slot>
  static bool fill(Slot* set, const CacheKey& key, const TokenId* ids, std::size_t tokens) {
    if (tokens > std::size(set->ids)) return false;
    set[1] = set[0];
    set->low = key.low;
    set->high = key.high;
    set->tokens = static_cast<std::uint32_t>(tokens);
    std::copy(ids, ids + tokens, set->ids);
    return true;
  }

  ZeroedArray<ShortSlot> short_;
  ZeroedArray<LongSlot> long_;
};

}  // namespace vocabshift
