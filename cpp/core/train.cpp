#include "core/train.h"

#include <array>
#include <stdexcept>

namespace vocabshift {

namespace {

std::array<TokenId, 256> ids_of_bytes(const Vocabulary& bytes) {
  std::array<TokenId, 256> ids;
  for (TokenId id = 0; id < 256; ++id) ids[static_cast<unsigned char>(bytes[id][0])] = id;
  return ids;
}

class SequenceBuilder {
 public:
  explicit SequenceBuilder(const Vocabulary& bytes) : ids_(ids_of_bytes(bytes)) {}

  void add(std::string_view word, Count weight, Count occurrences) {
    tokens += occurrences * word.size();
    if (word.size() < 2) return;
    buffer_.clear();
    for (const char byte : word) buffer_.push_back(ids_[static_cast<unsigned char>(byte)]);
    sequences.add(buffer_, weight, occurrences);
  }

  Sequences sequences;
  Count tokens = 0;

 private:
  std::array<TokenId, 256> ids_;
  std::vector<TokenId> buffer_;
};

// Room for the sequences of all words; memory that stays unused is never touched.
std::size_t arena_words(WordCounter& counter) {
  const WordCounter::Bound bound = counter.bound();
  return bound.bytes + (bound.bytes / Sequences::kChunkTokens + bound.words) * Sequences::kHeader;
}

}  // namespace

Trained train_bpe(WordCounter& counter, const std::vector<Count>& weights, const Limits& limits,
                  const MergeRule& rule, const Tick& tick) {
  if (weights.size() < counter.group_count()) {
    throw std::invalid_argument("every group of words needs a weight");
  }
  Vocabulary bytes = byte_vocabulary();
  SequenceBuilder builder(bytes);
  builder.sequences.reserve(arena_words(counter));
  counter.for_each_word([&](std::string_view, std::size_t group) { return weights[group]; },
                        [&](std::string_view word, Count w, Count occurrences) {
                          builder.add(word, w, occurrences);
                        });
  counter.clear();  // the words live on as sequences
  MergeLoop loop(std::move(bytes), std::move(builder.sequences), rule, Duplicates::kReuseId);
  const Stopped stopped = loop.run(limits, tick);
  return {loop.vocabulary(), loop.merges(), stopped, builder.tokens - loop.tokens_saved(),
          loop.peak_memory_bytes()};
}

}  // namespace vocabshift
