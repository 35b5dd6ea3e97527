#include "core/train.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>

namespace vocabshift {

namespace {

// Words in memory cost about this many times what their tokens take: pairs, their places, the
// queue.
constexpr std::size_t kLoopFactor = 3;

std::array<TokenId, 256> ids_of_bytes(const Vocabulary& bytes) {
  std::array<TokenId, 256> ids;
  for (TokenId id = 0; id < 256; ++id) ids[static_cast<unsigned char>(bytes[id][0])] = id;
  return ids;
}

// Turns words into the sequences that are merged.
class SequenceBuilder {
 public:
  SequenceBuilder(const Vocabulary& bytes, const Encoder* encoder)
      : ids_(encoder ? std::array<TokenId, 256>{} : ids_of_bytes(bytes)), encoder_(encoder) {}

  void add(std::string_view word, Count weight, Count occurrences) {
    buffer_.clear();
    if (encoder_) {
      encoder_->encode_piece(word, scratch(), buffer_);
      encoder_->flush(scratch(), buffer_);
    } else {
      for (const char byte : word) buffer_.push_back(ids_[static_cast<unsigned char>(byte)]);
    }
    tokens += occurrences * buffer_.size();
    if (buffer_.size() > 1) sequences.add(buffer_, weight, occurrences);
  }

  Sequences sequences;
  Count tokens = 0;

 private:
  Encoder::Scratch& scratch() {
    if (!scratch_) scratch_ = std::make_unique<Encoder::Scratch>();
    return *scratch_;
  }

  std::array<TokenId, 256> ids_;
  const Encoder* encoder_;
  std::unique_ptr<Encoder::Scratch> scratch_;
  std::vector<TokenId> buffer_;
};

std::size_t arena_words(std::string_view word) {
  return word.size() + (word.size() / Sequences::kChunkTokens + 1) * Sequences::kHeader;
}

// Room for the sequences of all words; memory that stays unused is never touched.
std::size_t most_arena_words(WordCounter& counter) {
  const WordCounter::Bound bound = counter.bound();
  return bound.bytes + (bound.bytes / Sequences::kChunkTokens + bound.words) * Sequences::kHeader;
}

// XLM-R's smoothing of the words of the target scripts: count ** alpha, scaled to the old sum.
class Smoothing {
 public:
  template <class ForEachWord>
  Smoothing(const WordWeights& weights, ForEachWord&& for_each_word)
      : alpha_(weights.smoothing), scripts_(weights.scripts) {
    if (alpha_ == 0) return;
    // Integer sums: the order of the words cannot change them.
    Count before = 0, after = 0;
    for_each_word([&](std::string_view word, Count weighted, Count) {
      if (!scripts_.in_word(word)) return;
      before += weighted;
      after += power(weighted);
    });
    if (after > 0) scale_ = static_cast<double>(before) / static_cast<double>(after);
  }

  Count operator()(std::string_view word, Count weighted) const {
    if (alpha_ == 0 || !scripts_.in_word(word)) return weighted;
    const double scaled = static_cast<double>(power(weighted)) * scale_;
    return std::max<Count>(1, static_cast<Count>(std::llround(scaled)));
  }

 private:
  Count power(Count count) const {
    return static_cast<Count>(std::llround(std::pow(static_cast<double>(count), alpha_) * 4096));
  }

  double alpha_;
  const TargetScripts& scripts_;
  double scale_ = 1;
};

// The least weighted count that a word must have so that all of them fit into memory; 0 for any.
template <class ForEachWord>
Count least_count_that_fits(ForEachWord&& for_each_word, std::size_t memory_bytes) {
  if (memory_bytes == 0) return 0;
  std::map<Count, std::size_t, std::greater<>> words_by_count;  // count -> arena words
  for_each_word([&](std::string_view word, Count weighted, Count) {
    words_by_count[weighted] += arena_words(word);
  });
  std::size_t room = memory_bytes / sizeof(std::uint32_t) / kLoopFactor;
  Count least = 0;
  for (const auto& [count, words] : words_by_count) {
    if (words > room) return count + 1;
    room -= words;
    least = count;
  }
  return least;
}

}  // namespace

Trained train_bpe(WordCounter& counter, const WordWeights& weights, const Limits& limits,
                  const MergeRule& rule, std::optional<Start> start, std::size_t memory_bytes,
                  const Tick& tick) {
  if (weights.of_group.size() < counter.group_count()) {
    throw std::invalid_argument("every group of words needs a weight");
  }
  const bool by_script = !weights.scripts.empty() && weights.target != weights.unit;
  const auto weight_of = [&](std::string_view word, std::size_t group) {
    const bool is_target = by_script && weights.scripts.in_word(word);
    return weights.of_group[group] * (is_target ? weights.target : weights.unit);
  };
  const auto for_each_word = [&](auto&& visit) { counter.for_each_word(weight_of, visit); };
  const Smoothing smoothed(weights, for_each_word);
  const Count least = least_count_that_fits(for_each_word, memory_bytes);
  Count dropped_words = 0, dropped_occurrences = 0;
  Vocabulary vocabulary = start ? std::move(start->vocabulary) : byte_vocabulary();
  SequenceBuilder builder(vocabulary, start ? start->encoder : nullptr);
  if (!start && least == 0) builder.sequences.reserve(most_arena_words(counter));
  for_each_word([&](std::string_view word, Count weighted, Count occurrences) {
    if (weighted < least) {
      ++dropped_words;
      dropped_occurrences += occurrences;
    } else {
      builder.add(word, smoothed(word, weighted), occurrences);
    }
  });
  counter.clear();  // the words live on as sequences
  MergeLoop loop(std::move(vocabulary), std::move(builder.sequences), rule, Duplicates::kReuseId);
  const Stopped stopped = loop.run(limits, tick);
  return {loop.vocabulary(),
          loop.merges(),
          stopped,
          builder.tokens - loop.tokens_saved(),
          loop.peak_memory_bytes(),
          1,
          dropped_words,
          dropped_occurrences};
}

}  // namespace vocabshift
