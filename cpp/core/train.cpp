#include "core/train.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>

#include "core/merge_by_rank.h"
#include "core/segmenter.h"

namespace vocabshift {

namespace {

// With pairs, their places and the queue, words cost 7/2 times what their tokens take (measured:
// 255 MB for 73 MB of tokens).
constexpr std::size_t kLoopNumerator = 7, kLoopDenominator = 2;

// Words whose second and third bytes are alike (the first is most often a space) are laid side by
// side: they are of one script, mostly of one language, and so a merge finds its words close
// together instead of one on every page of memory.
std::size_t bucket_of(std::string_view word) {
  const auto byte = [&](std::size_t i) -> std::size_t {
    return i < word.size() ? static_cast<unsigned char>(word[i]) : 0;
  };
  return byte(1) << 8 | byte(2);
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

// Lays words out as sequences, in two passes over the same words in the same order: plan, then put.
class Layout {
 public:
  explicit Layout(std::size_t token_limit) : sequences_(token_limit) {}

  void plan(std::string_view word, std::size_t tokens) {
    if (tokens > 1) ends_[bucket_of(word)] += sequences_.words_for(tokens);
  }
  void end_plan() {
    std::uint64_t total = 0;
    for (std::uint64_t& end : ends_) end = std::exchange(total, total + end);
    sequences_.lay_out(total);
  }
  void put(std::string_view word, std::span<const TokenId> tokens, Sequences::Counts counts) {
    if (tokens.size() < 2) return;
    std::uint64_t& end = ends_[bucket_of(word)];
    const auto token_at = [&](std::size_t i) { return tokens[i]; };
    end = sequences_.put(static_cast<Sequences::ChunkAt>(end), tokens.size(), counts, token_at);
  }
  Sequences take() { return std::move(sequences_); }

 private:
  Sequences sequences_;
  std::vector<std::uint64_t> ends_ = std::vector<std::uint64_t>(1 << 16);  // of the buckets, words
};

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
      if (__builtin_add_overflow(before, weighted, &before) ||
          __builtin_add_overflow(after, power(weighted), &after)) {
        WordSum::overflow();
      }
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
    const double power = std::pow(static_cast<double>(count), alpha_) * 4096;
    if (!(power < 0x1p62)) WordSum::overflow();
    return static_cast<Count>(std::llround(power));
  }

  double alpha_;
  const TargetScripts& scripts_;
  double scale_ = 1;
};

// The least weighted count that a word must have so that all of them fit into memory; 0 for any.
template <class ForEachWord>
Count least_count_that_fits(ForEachWord&& for_each_word, std::size_t vocab_size,
                            std::size_t bytes_per_token, std::size_t memory_bytes) {
  if (memory_bytes == 0) return 0;
  const Sequences sizes(vocab_size);
  std::map<Count, std::size_t, std::greater<>> words_by_count;  // count -> arena words
  for_each_word([&](std::string_view word, Count weighted, Count) {
    words_by_count[weighted] += sizes.words_for(word.size() / bytes_per_token);
  });
  std::size_t room = memory_bytes / sizeof(std::uint32_t) / kLoopNumerator * kLoopDenominator;
  for (const auto& [count, words] : words_by_count) {
    if (words > room) return count + 1;
    room -= words;
  }
  return 0;
}

}  // namespace

Trained train_bpe(WordCounter& counter, const WordWeights& weights, const Limits& limits,
                  const MergeRule& rule, std::optional<Start> start, std::size_t memory_bytes,
                  const Tick& tick) {
  if (weights.of_group.size() < counter.group_count()) {
    throw std::invalid_argument("every group of words needs a weight");
  }
  for (const Count weight : weights.of_group) {
    Count ignored;
    if (__builtin_mul_overflow(weight, std::max(weights.unit, weights.target), &ignored)) {
      WordSum::overflow();
    }
  }
  const bool by_script = !weights.scripts.empty() && weights.target != weights.unit;
  const auto weight_of = [&](std::string_view word, std::size_t group) {
    const bool is_target = by_script && weights.scripts.in_word(word);
    Count weight;
    if (__builtin_mul_overflow(weights.of_group[group], is_target ? weights.target : weights.unit,
                               &weight)) {
      WordSum::overflow();
    }
    return weight;
  };
  const auto for_each_word = [&](auto&& visit) { counter.for_each_word(weight_of, visit); };
  const Smoothing smoothed(weights, for_each_word);
  const std::size_t known = start ? start->vocabulary.size() : 0;
  const std::size_t vocab_size = std::max(limits.vocab_size, known);
  const bool are_groups = start && !start->encoder;
  const Count least = least_count_that_fits(for_each_word, vocab_size,
                                            are_groups ? sizeof(TokenId) : 1, memory_bytes);
  Vocabulary vocabulary = start ? std::move(start->vocabulary) : byte_vocabulary();
  // Under a budget words may be left out of a pass, and there is no room to remember anything.
  const bool remember = start && start->encoder && memory_bytes == 0;
  std::optional<WordTokens> words(std::in_place,
                                  are_groups
                                      ? Segmenter(vocabulary.size())
                                      : Segmenter(vocabulary, start ? start->encoder : nullptr),
                                  remember);
  Trained trained{};
  Count of_all = 0;                      // the sum of all pairs' counts is below it
  Layout layout(vocabulary.size() + 1);  // later tokens may need more room: MergeLoop makes it
  for_each_word([&](std::string_view word, Count weighted, Count occurrences) {
    if (weighted < least) {
      ++trained.dropped_words;
      trained.dropped_occurrences += occurrences;
    } else {
      const std::size_t tokens = words->count(word);
      trained.tokens += occurrences * tokens;
      layout.plan(word, tokens);
      Count product;
      if (__builtin_mul_overflow(weighted, tokens, &product) ||
          __builtin_add_overflow(of_all, product, &of_all)) {
        WordSum::overflow();
      }
    }
  });
  layout.end_plan();
  words->restart();
  for_each_word([&](std::string_view word, Count weighted, Count occurrences) {
    if (weighted >= least)
      layout.put(word, (*words)(word), {smoothed(word, weighted), occurrences});
  });
  if (remember) words.reset();
  const bool keep_words = start && start->keep_words;
  // The words live on as sequences.
  if (trained.dropped_words == 0 && !keep_words) counter.clear();
  MergeLoop loop(std::move(vocabulary), layout.take(), rule,
                 start ? start->duplicates : Duplicates::kReuseId,
                 start ? std::move(start->held) : std::vector<bool>());
  trained.stopped = loop.run(limits, tick);
  trained.vocabulary = loop.vocabulary();
  trained.merges = loop.merges();
  trained.tokens -= loop.tokens_saved();
  trained.peak_memory_bytes = loop.peak_memory_bytes();
  trained.bound = 1;
  if (trained.dropped_words > 0) trained.dropped_below = least;
  if (trained.dropped_words > 0) {
    MergeTable merges(loop.merges().size());
    for (std::uint32_t rank = 0; rank < loop.merges().size(); ++rank) {
      const Merge& merge = loop.merges()[rank];
      merges.set({merge.left, merge.right}, rank, merge.product);
    }
    MergeScratch scratch;
    std::vector<TokenId> tokens;
    for_each_word([&](std::string_view word, Count weighted, Count occurrences) {
      if (weighted >= least) return;
      const std::span<const TokenId> segmented = (*words)(word);
      tokens.assign(segmented.begin(), segmented.end());
      merge_by_rank(merges, tokens, kNoRank, scratch);
      trained.tokens += occurrences * tokens.size();
    });
    if (!keep_words) counter.clear();
  }
  return trained;
}

}  // namespace vocabshift
