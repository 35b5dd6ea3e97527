#include "core/train.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>

#include "core/merge_by_rank.h"
#include "core/platform.h"
#include "core/segmenter.h"
#include "core/word_layout.h"

namespace vocabshift {

namespace {

// With pairs, their places and the queue, words cost 7/2 times what their tokens take (measured:
// 255 MB for 73 MB of tokens).
constexpr std::size_t kLoopNumerator = 7, kLoopDenominator = 2;
// Parity-aware BPE keeps all pairs (measured: 135 MB for 26 MB of tokens, 240 for 59).
constexpr std::size_t kParityNumerator = 12;

// XLM-R's smoothing of the words of the target scripts: count ** alpha, scaled to the old sum.
class Smoothing {
 public:
  template <class ForEachWord>
  Smoothing(const WordWeights& weights, ForEachWord&& for_each_word)
      : alpha_(weights.smoothing), scripts_(weights.scripts) {
    if (alpha_ == 0) return;
    // Integer sums: the order of the words cannot change them.
    Count before = 0, after = 0;
    for_each_word([&](std::string_view word, Count weighted, Count, std::uint32_t) {
      if (!scripts_.in_word(word)) return;
      if (add_overflows(before, weighted, &before) ||
          add_overflows(after, power(weighted), &after)) {
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

// The least weighted count that a word must have so that all of them fit into memory, together with
// the words of sections from `sections`, which are never left out; 0 for any.
template <class ForEachWord>
Count least_count_that_fits(ForEachWord&& for_each_word, std::size_t vocab_size,
                            std::size_t bytes_per_token, std::size_t memory_bytes,
                            std::uint32_t sections, std::size_t loop_numerator) {
  if (memory_bytes == 0) return 0;
  const Sequences sizes(vocab_size);
  std::map<Count, std::size_t, std::greater<>> words_by_count;  // count -> arena words
  std::size_t kept = 0;
  for_each_word([&](std::string_view word, Count weighted, Count, std::uint32_t section) {
    (section < sections ? words_by_count[weighted] : kept) +=
        sizes.words_for(word.size() / bytes_per_token);
  });
  std::size_t room = memory_bytes / sizeof(std::uint32_t) / loop_numerator * kLoopDenominator;
  room -= std::min(room, kept);
  for (const auto& [count, words] : words_by_count) {
    if (words > room) return count + 1;
    room -= words;
  }
  return 0;
}

// Calls visit(word, weighted count, occurrences, section) for the words of every group, those of
// parallel text in sections after the languages'.
template <class WeightOf, class Visit>
void for_each_word_of_languages(const Parity& parity, WordCounter& counter, WeightOf&& weight_of,
                                Visit&& visit) {
  const auto visit_all = [](WordCounter& words, auto&& visit_word) {
    if (words.spilled()) {
      return words.for_each_sorted_record([&](const WordRecord& record) {
        visit_word(record.word, record.count, std::size_t{record.group});
      });
    }
    for (std::size_t group = 0; group < words.group_count(); ++group) {
      words.for_each_word_of(
          group, [&](std::string_view word, Count count) { visit_word(word, count, group); });
    }
  };
  visit_all(counter, [&](std::string_view word, Count count, std::size_t group) {
    WordSum sum;
    sum.add(count, weight_of(word, group));
    visit(word, sum.weighted, count, parity.of_group[group]);
  });
  if (!parity.parallel) return;
  const auto languages = static_cast<std::uint32_t>(parity.languages);
  visit_all(*parity.parallel, [&](std::string_view word, Count count, std::size_t group) {
    visit(word, count, count, languages + parity.of_parallel_group[group]);
  });
}

void check(const Parity& parity, const WordCounter& counter) {
  const auto is_one = [&](std::uint32_t language) { return language < parity.languages; };
  const std::size_t parallel = parity.parallel ? parity.parallel->group_count() : 0;
  if (parity.of_group.size() < counter.group_count() ||
      parity.of_parallel_group.size() < parallel || !std::ranges::all_of(parity.of_group, is_one) ||
      !std::ranges::all_of(parity.of_parallel_group, is_one)) {
    throw std::invalid_argument("every group of words needs a language");
  }
  if (parity.languages > Sequences::kSections / 2) {
    throw std::invalid_argument("too many languages");
  }
}

}  // namespace

Trained train_bpe(WordCounter& counter, const WordWeights& weights, const Limits& limits,
                  const MergeRule& rule, std::optional<Start> start, std::size_t memory_bytes,
                  const Tick& tick, bool keep_words, const Parity* parity) {
  if (weights.of_group.size() < counter.group_count()) {
    throw std::invalid_argument("every group of words needs a weight");
  }
  if (parity) check(*parity, counter);
  for (const Count weight : weights.of_group) {
    Count ignored;
    if (multiply_overflows(weight, std::max(weights.unit, weights.target), &ignored)) {
      WordSum::overflow();
    }
  }
  const bool by_script = !weights.scripts.empty() && weights.target != weights.unit;
  const auto weight_of = [&](std::string_view word, std::size_t group) {
    const bool is_target = by_script && weights.scripts.in_word(word);
    Count weight;
    if (multiply_overflows(weights.of_group[group], is_target ? weights.target : weights.unit,
                           &weight)) {
      WordSum::overflow();
    }
    return weight;
  };
  // Words with the section that they are to be in.
  const auto for_each_word = [&](auto&& visit) {
    if (parity) return for_each_word_of_languages(*parity, counter, weight_of, visit);
    counter.for_each_word(weight_of, [&](std::string_view word, Count weighted, Count occurrences) {
      visit(word, weighted, occurrences, 0u);
    });
  };
  // Sections of words that are trained on; others are only measured.
  const auto sections = parity ? static_cast<std::uint32_t>(parity->languages) : 1;
  const Smoothing smoothed(weights, for_each_word);
  const std::size_t known = start ? start->vocabulary.size() : 0;
  const std::size_t vocab_size = std::max(limits.vocab_size, known);
  const bool are_groups = start && !start->encoder;
  const Count least =
      least_count_that_fits(for_each_word, vocab_size, are_groups ? sizeof(TokenId) : 1,
                            memory_bytes, sections, parity ? kParityNumerator : kLoopNumerator);
  Vocabulary vocabulary = start ? std::move(start->vocabulary) : byte_vocabulary();
  // Under a budget words may be left out of a pass, and there is no room to remember anything.
  const bool remember = start && start->encoder && memory_bytes == 0;
  const std::size_t n_shards =
      parity || counter.spilled()
          ? 1
          : std::clamp<std::size_t>(
                counter.stored_words() / 4 / std::max<std::size_t>(limits.chunks_per_thread, 1), 1,
                std::max<std::size_t>(limits.threads, 1));
  std::vector<WordShard> shards;
  for (std::size_t i = 0; i < n_shards; ++i) {
    shards.emplace_back(are_groups ? Segmenter(vocabulary.size())
                                   : Segmenter(vocabulary, start ? start->encoder : nullptr),
                        remember, sections);
  }
  const auto for_each_of_shards = [&](auto&& visit) {
    if (n_shards > 1) {
      return counter.for_each_word_of_shards(
          n_shards, weight_of,
          [&](std::size_t shard, std::string_view word, Count weighted, Count occurrences) {
            visit(shard, word, weighted, occurrences, 0u);
          });
    }
    for_each_word([&](std::string_view word, Count weighted, Count occurrences,
                      std::uint32_t section) { visit(0, word, weighted, occurrences, section); });
  };
  Trained trained{};
  // Later tokens may need more room: MergeLoop makes it.
  Layout layout(vocabulary.size() + 1, n_shards);
  for_each_of_shards([&](std::size_t shard, std::string_view word, Count weighted,
                         Count occurrences, std::uint32_t section) {
    WordShard& into = shards[shard];
    if (weighted < least && section < sections) {
      ++into.dropped_words;
      into.dropped_occurrences += occurrences;
      return;
    }
    const std::size_t tokens = into.words.count(word);
    into.tokens_of[section] += occurrences * tokens;
    if (parity) into.characters_of[section] += occurrences * count_characters_of(word);
    if (into.are_plain) {
      into.are_plain = Sequences::is_plain({smoothed(word, weighted), occurrences});
    }
    layout.plan(shard, word, tokens);
    Count product;
    if (multiply_overflows(weighted, tokens, &product) ||
        add_overflows(into.of_all, product, &into.of_all)) {
      WordSum::overflow();
    }
  });
  layout.end_plan();
  bool may_put_together = n_shards > 1;
  Count of_all = 0;  // the sum of all pairs' counts is below it
  for (WordShard& shard : shards) {
    shard.words.restart();
    may_put_together &= shard.are_plain;
    trained.dropped_words += shard.dropped_words;
    trained.dropped_occurrences += shard.dropped_occurrences;
    for (std::uint32_t section = 0; section < sections; ++section) {
      trained.tokens += shard.tokens_of[section];
    }
    if (add_overflows(of_all, shard.of_all, &of_all)) WordSum::overflow();
  }
  std::mutex one_by_one;
  for_each_of_shards([&](std::size_t shard, std::string_view word, Count weighted,
                         Count occurrences, std::uint32_t section) {
    if (weighted < least && section < sections) return;
    const Sequences::Counts counts{smoothed(word, weighted), occurrences};
    const std::span<const TokenId> tokens = shards[shard].words(word);
    std::unique_lock lock(one_by_one, std::defer_lock);
    if (n_shards > 1 && !may_put_together) lock.lock();
    layout.put(shard, word, tokens, counts, section);
  });
  const std::vector<Count> tokens_of = std::move(shards[0].tokens_of);
  const std::vector<Count> characters_of = std::move(shards[0].characters_of);
  if (remember) shards.clear();
  // The words live on as sequences.
  if (trained.dropped_words == 0 && !keep_words) counter.clear();
  MergeLoop loop(std::move(vocabulary), layout.take(), rule,
                 start ? start->duplicates : Duplicates::kReuseId,
                 start ? std::move(start->held) : std::vector<bool>());
  if (parity) {
    const auto split = static_cast<std::ptrdiff_t>(sections);
    std::vector<Count> tokens(tokens_of.begin(), tokens_of.begin() + split);
    std::vector<Count> lengths(characters_of.begin(), characters_of.begin() + split);
    if (parity->parallel) {
      tokens.assign(tokens_of.begin() + split, tokens_of.end());
      lengths.assign(sections, 1);
    }
    if (trained.dropped_words > 0 && std::ranges::count(lengths, Count{0}) > 0) {
      throw std::invalid_argument(
          "the memory budget has room for no word of one of the languages; give more, or more of "
          "its text");
    }
    LanguageChoice choice(std::move(tokens), std::move(lengths), parity->window);
    trained.stopped = loop.run_by_language(limits, choice, parity->parallel != nullptr, tick);
    trained.served = loop.served();
    trained.measured_tokens = choice.tokens();
    for (std::uint32_t language = 0; language < sections; ++language) {
      trained.language_tokens.push_back(tokens_of[language] - loop.saved_by_language()[language]);
    }
  } else {
    trained.stopped = loop.run(limits, tick);
  }
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
    for_each_word(
        [&](std::string_view word, Count weighted, Count occurrences, std::uint32_t section) {
          if (weighted >= least || section >= sections) return;
          const std::span<const TokenId> segmented = shards[0].words(word);
          tokens.assign(segmented.begin(), segmented.end());
          merge_by_rank(merges, tokens, kNoRank, scratch);
          trained.tokens += occurrences * tokens.size();
        });
    if (!keep_words) counter.clear();
  }
  return trained;
}

}  // namespace vocabshift
