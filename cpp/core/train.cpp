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

std::size_t arena_words(const WordTable& table) {
  std::size_t words = 0;
  table.for_each([&](std::string_view word, Count) {
    if (word.size() > 1) {
      words += word.size() + (word.size() / Sequences::kChunkTokens + 1) * Sequences::kHeader;
    }
  });
  return words;
}

}  // namespace

Trained train_bpe(WordCounter& counter, const std::vector<Count>& weights, const Limits& limits,
                  const MergeRule& rule, const Tick& tick) {
  if (weights.size() < counter.group_count()) {
    throw std::invalid_argument("every group of words needs a weight");
  }
  Vocabulary bytes = byte_vocabulary();
  SequenceBuilder builder(bytes);
  if (counter.group_count() == 1) {
    const WordTable& table = counter.table(0);
    builder.sequences.reserve(arena_words(table));
    table.for_each(
        [&](std::string_view word, Count count) { builder.add(word, count * weights[0], count); });
  } else {
    WordTable weighed, occurrences;
    for (std::size_t group = 0; group < counter.group_count(); ++group) {
      counter.table(group).for_each([&](std::string_view word, Count count) {
        weighed.add(word, count * weights[group]);
        occurrences.add(word, count);
      });
    }
    // Both tables saw the same words in the same order: they iterate alike.
    std::vector<Count> counts;
    counts.reserve(occurrences.size());
    occurrences.for_each([&](std::string_view, Count count) { counts.push_back(count); });
    std::size_t i = 0;
    weighed.for_each([&](std::string_view word, Count w) { builder.add(word, w, counts[i++]); });
  }
  counter.clear();  // the words live on as sequences
  MergeLoop loop(std::move(bytes), std::move(builder.sequences), rule, Duplicates::kReuseId);
  const Stopped stopped = loop.run(limits, tick);
  return {loop.vocabulary(), loop.merges(), stopped, builder.tokens - loop.tokens_saved(),
          loop.peak_memory_bytes()};
}

}  // namespace vocabshift
