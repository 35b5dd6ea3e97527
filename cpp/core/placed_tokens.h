// Words as tokens in place, where tokens may be merged and split again, each in constant time.
//
// One 32-bit unit per byte of text. A token stands where it begins and, if it is longer than one
// unit, marked at its last unit too: the token before a place is found from that mark, the one
// after it from the token's length. What is between is a hole, so that a place is a token's
// beginning exactly if it holds the token's id. A border stands before and after every word.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "core/big_memory.h"
#include "core/stop.h"
#include "core/types.h"

namespace vocabshift {

class PlacedTokens {
 public:
  using Place = std::uint32_t;  // of a unit among all words
  using Word = std::uint32_t;
  static constexpr Place kNowhere = 0xFFFFFFFFu;
  static constexpr TokenId kMostTokens = TokenId{1} << 31;  // ids are below

  // The length, in bytes, of the next token id.
  void define(std::uint32_t length) { lengths_.push_back(length); }
  std::uint32_t length(TokenId token) const { return lengths_[token]; }

  // Adds a word as tokens of one byte each, ids_of_bytes[byte]; finish() before anything is asked.
  void add(std::string_view bytes, std::span<const TokenId, 256> ids_of_bytes) {
    const std::uint64_t end = units_.size() + std::uint64_t{bytes.size()} + 1;
    if (end >= kNowhere) {
      throw std::length_error(
          "the distinct words of the corpus hold more than 4 billion bytes; train on a sample");
    }
    if (units_.empty()) units_.push_back(kBorder);
    const auto begin = static_cast<Place>(units_.size());
    begins_.push_back(begin);
    units_.resize(begin + bytes.size() + 1);  // not written yet, so nothing has been waited for
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      may_stop(4);
      units_[begin + i] = ids_of_bytes[static_cast<unsigned char>(bytes[i])];
    }
    units_.back() = kBorder;
  }
  void finish() {
    units_.shrink_to_fit();
    first_words_.assign(units_.size() / kBlock + 1, 0);
    Word word = 0;
    for (std::size_t block = 0; block < first_words_.size(); ++block) {
      while (word + 1 < begins_.size() && begins_[word + 1] <= block * kBlock) ++word;
      first_words_[block] = word;
    }
  }

  Word word_count() const { return static_cast<Word>(begins_.size()); }
  Place begin(Word word) const { return begins_[word]; }
  Word word_of(Place at) const {
    Word word = first_words_[at / kBlock];
    while (word + 1 < begins_.size() && begins_[word + 1] <= at) ++word;
    return word;
  }

  // The token that begins at a place; another number where none does.
  TokenId at(Place at) const { return units_[at]; }
  // Where the neighbours of the token at a place begin; kNowhere at the ends of the word.
  Place before(Place at) const {
    const std::uint32_t unit = units_[at - 1];
    if (unit == kBorder) return kNowhere;
    return at - lengths_[unit & ~kEnd];
  }
  Place after(Place at) const {
    const Place next = at + lengths_[units_[at]];
    return units_[next] == kBorder ? kNowhere : next;
  }

  // The token at a place and the one after it become `product`, which is as long as both.
  void merge(Place at, TokenId product) {
    const Place seam = at + lengths_[units_[at]];
    units_[seam - 1] = units_[seam] = kHole;
    write(at, product);
  }
  // The token at a place becomes tokens that are together as long.
  void split(Place at, std::span<const TokenId> parts) {
    for (const TokenId part : parts) {
      write(at, part);
      at += lengths_[part];
    }
  }

  std::size_t memory_bytes() const {
    return units_.capacity() * sizeof(std::uint32_t) + begins_.capacity() * sizeof(Place) +
           first_words_.capacity() * sizeof(Word);
  }

 private:
  static constexpr std::uint32_t kEnd = 1u << 31;  // the unit is the last one of a longer token
  static constexpr std::uint32_t kBorder = 0xFFFFFFFFu;
  static constexpr std::uint32_t kHole = 0xFFFFFFFEu;
  static constexpr std::size_t kBlock = 64;  // units

  void write(Place at, TokenId token) {
    const std::uint32_t length = lengths_[token];
    units_[at] = token;
    if (length > 1) units_[at + length - 1] = token | kEnd;
  }

  BigVector<std::uint32_t> units_;
  std::vector<std::uint32_t> lengths_;  // by token id
  std::vector<Place> begins_;           // by word
  std::vector<Word> first_words_;       // by block of units: the word that its first unit is of
};

// In the order of the text, each once.
inline void sort_places(std::vector<PlacedTokens::Place>& places) {
  if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
}

}  // namespace vocabshift
