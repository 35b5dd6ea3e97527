// Words on their way to the merge loop: their first tokens, and where they are laid as sequences.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/big_memory.h"
#include "core/segmenter.h"
#include "core/sequences.h"
#include "core/types.h"

namespace vocabshift {

// Words whose second and third bytes are alike (the first is most often a space) are laid side by
// side: they are of one script, mostly of one language, and so a merge finds its words close
// together instead of one on every page of memory.
inline std::size_t bucket_of(std::string_view word) {
  const auto byte = [&](std::size_t i) -> std::size_t {
    return i < word.size() ? static_cast<unsigned char>(word[i]) : 0;
  };
  return byte(1) << 8 | byte(2);
}

// Of UTF-8: bytes that begin one.
inline Count count_characters_of(std::string_view word) {
  return static_cast<Count>(
      std::count_if(word.begin(), word.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

// The tokens of words that are visited several times in the same order. Running an encoder twice
// takes longer than all merges of a small extension: what it gave is remembered.
class WordTokens {
 public:
  WordTokens(Segmenter segment, bool remember)
      : segment_(std::move(segment)), remember_(remember) {}

  // A pass over all words begins.
  void restart() { next_ = 0; }

  // How many there are, of the next word of the pass.
  std::size_t count(std::string_view word) {
    return remember_ ? (*this)(word).size() : segment_.count(word);
  }
  // Valid until the next call.
  std::span<const TokenId> operator()(std::string_view word) {
    if (!remember_) return segment_(word);
    if (next_ == ends_.size()) {
      const std::span<const TokenId> tokens = segment_(word);
      tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
      ends_.push_back(tokens_.size());
    }
    const std::size_t begin = next_ == 0 ? 0 : ends_[next_ - 1];
    const std::size_t end = ends_[next_++];
    return std::span<const TokenId>(tokens_).subspan(begin, end - begin);
  }

 private:
  Segmenter segment_;
  bool remember_;
  std::vector<TokenId> tokens_;    // of all words
  std::vector<std::size_t> ends_;  // of the words in tokens_
  std::size_t next_ = 0;           // word of the pass
};

// What one thread makes of its share of the words.
struct WordShard {
  WordShard(Segmenter segment, bool remember, std::uint32_t sections)
      : words(std::move(segment), remember),
        tokens_of(std::size_t{2} * sections),
        characters_of(std::size_t{2} * sections) {}

  WordTokens words;
  std::vector<Count> tokens_of, characters_of;  // by section
  Count of_all = 0;                             // the sum of all pairs' counts is below it
  Count dropped_words = 0, dropped_occurrences = 0;
  bool are_plain = true;  // all counts (Sequences::is_plain)
};

// Lays words out as sequences, in two passes over the same words in the same order: plan, then put.
// Words may come in shards, each from a thread of its own.
class Layout {
 public:
  Layout(std::size_t token_limit, std::size_t shards) : sequences_(token_limit) {
    for (std::size_t i = 0; i < shards; ++i) ends_.emplace_back(kBuckets);
  }

  void plan(std::size_t shard, std::string_view word, std::size_t tokens) {
    if (tokens > 1) ends_[shard][bucket_of(word)] += sequences_.words_for(tokens);
  }
  void end_plan() {
    std::uint64_t total = 0;
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
      for (auto& ends : ends_) {  // of a short text most have no words, and take no memory
        if (ends[bucket] > 0) ends[bucket] = std::exchange(total, total + ends[bucket]);
      }
    }
    sequences_.lay_out(total);
  }
  // Only counts that are their own word (Sequences::is_plain) may come from several threads.
  void put(std::size_t shard, std::string_view word, std::span<const TokenId> tokens,
           Sequences::Counts counts, std::uint32_t section) {
    if (tokens.size() < 2) return;
    std::uint64_t& end = ends_[shard][bucket_of(word)];
    const auto token_at = [&](std::size_t i) { return tokens[i]; };
    end = sequences_.put(static_cast<Sequences::ChunkAt>(end), tokens.size(), counts, token_at,
                         section);
  }
  Sequences take() { return std::move(sequences_); }

 private:
  static constexpr std::size_t kBuckets = 1 << 16;  // of bucket_of
  Sequences sequences_;
  std::vector<ZeroedArray<std::uint64_t>> ends_;  // of the buckets of a shard, words
};

}  // namespace vocabshift
