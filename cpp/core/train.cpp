#include "core/train.h"

#include <array>
#include <stdexcept>
#include <utility>

namespace vocabshift {

namespace {

std::array<TokenId, 256> ids_of_bytes(const Vocabulary& bytes) {
  std::array<TokenId, 256> ids;
  for (TokenId id = 0; id < 256; ++id) ids[static_cast<unsigned char>(bytes[id][0])] = id;
  return ids;
}

// The distinct words of all groups with what they count, in the same order every time.
class WeighedWords {
 public:
  WeighedWords(const WordCounter& counter, const std::vector<Count>& weights) {
    if (counter.group_count() == 1) {
      table_ = &counter.table(0);
      weight_ = weights[0];
      return;
    }
    WordTable occurrences;
    for (std::size_t group = 0; group < counter.group_count(); ++group) {
      counter.table(group).for_each([&](std::string_view word, Count count) {
        joined_.add(word, count * weights[group]);
        occurrences.add(word, count);
      });
    }
    // Both tables saw the same words in the same order: they iterate alike.
    occurrences_.reserve(occurrences.size());
    occurrences.for_each([&](std::string_view, Count count) { occurrences_.push_back(count); });
  }

  template <class F>
  void for_each(F&& visit) const {
    if (occurrences_.empty()) {
      table_->for_each([&](std::string_view word, Count count) {
        visit(word, Sequences::Counts{count * weight_, count});
      });
    } else {
      std::size_t i = 0;
      joined_.for_each([&](std::string_view word, Count weight) {
        visit(word, Sequences::Counts{weight, occurrences_[i++]});
      });
    }
  }

 private:
  const WordTable* table_ = &joined_;  // of the only group, if there is one
  Count weight_ = 1;
  WordTable joined_;                // words with weighted counts
  std::vector<Count> occurrences_;  // beside them
};

// Words whose second and third bytes are alike (the first is most often a space) are laid side by
// side: they are of one script, mostly of one language, and so a merge finds its words close
// together instead of one on every page of memory.
std::size_t bucket_of(std::string_view word) {
  const auto byte = [&](std::size_t i) -> std::size_t {
    return i < word.size() ? static_cast<unsigned char>(word[i]) : 0;
  };
  return byte(1) << 8 | byte(2);
}

Sequences sequences_of(const WeighedWords& words, const Vocabulary& bytes, std::size_t vocab_size) {
  Sequences sequences(vocab_size);
  std::vector<std::uint64_t> ends(std::size_t{1} << 16);  // of the buckets, in arena words
  words.for_each([&](std::string_view word, Sequences::Counts) {
    if (word.size() > 1) ends[bucket_of(word)] += sequences.words_for(word.size());
  });
  std::uint64_t total = 0;
  for (std::uint64_t& end : ends) end = std::exchange(total, total + end);
  sequences.lay_out(total);
  const std::array<TokenId, 256> ids = ids_of_bytes(bytes);
  words.for_each([&](std::string_view word, Sequences::Counts counts) {
    if (word.size() < 2) return;
    std::uint64_t& end = ends[bucket_of(word)];
    const auto token_at = [&](std::size_t i) { return ids[static_cast<unsigned char>(word[i])]; };
    end = sequences.put(static_cast<Sequences::ChunkAt>(end), word.size(), counts, token_at);
  });
  return sequences;
}

}  // namespace

Trained train_bpe(WordCounter& counter, const std::vector<Count>& weights, const Limits& limits,
                  const MergeRule& rule, const Tick& tick) {
  if (weights.size() < counter.group_count()) {
    throw std::invalid_argument("every group of words needs a weight");
  }
  Vocabulary bytes = byte_vocabulary();
  Sequences sequences;
  Count tokens = 0;
  {
    const WeighedWords words(counter, weights);
    words.for_each([&](std::string_view word, Sequences::Counts counts) {
      tokens += counts.occurrences * word.size();
    });
    sequences = sequences_of(words, bytes, limits.vocab_size);
    counter.clear();  // the words live on as sequences
  }
  MergeLoop loop(std::move(bytes), std::move(sequences), rule, Duplicates::kReuseId);
  const Stopped stopped = loop.run(limits, tick);
  return {loop.vocabulary(), loop.merges(), stopped, tokens - loop.tokens_saved(),
          loop.peak_memory_bytes()};
}

}  // namespace vocabshift
