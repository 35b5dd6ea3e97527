// BoundlessBPE on drawn text: both kinds of merges are those of a slow reading, which counts all
// pairs anew after each, on one thread and two; and its own encoding ends where training ended.
#include <map>

#include "core/boundless_segmentation.h"
#include "core/boundless_stage.h"
#include "core/train.h"
#include "fuzz/fuzz.h"
#include "fuzz/slow.h"

using namespace vocabshift;

namespace {

// A word, or several that supermerges have joined, which are one token.
struct Unit {
  std::vector<TokenId> ids;
  bool may_join;

  bool is_whole() const { return may_join && ids.size() == 1; }
};

struct Piece {
  std::vector<Unit> units;
  Count weight;
};

struct Taken {
  Merge merge;
  bool is_super;
};

class Slow {
 public:
  Vocabulary tokens = byte_vocabulary();
  std::vector<Piece> pieces = {};
  std::vector<Taken> taken = {};

  // `by_words`: what word merges alone make, which no supermerge may.
  void train(std::size_t vocab_size, Count min_count, const MergeRule& of_words,
             const MergeRule& of_supers, const Vocabulary& by_words) {
    while (tokens.size() < vocab_size) {
      Taken best{{kNoToken, kNoToken, kNoToken, 0}, false};
      for (const auto& [key, count] : pairs()) {
        const auto& [pair, is_super] = key;
        const TokenId left = static_cast<TokenId>(pair >> 32), right = static_cast<TokenId>(pair);
        if (count < min_count || count <= best.merge.count) continue;
        const std::string product = std::string(tokens[left]) + std::string(tokens[right]);
        if (!(is_super ? of_supers : of_words).allows(product)) continue;
        if (is_super && (tokens.find(product) != kNoToken || by_words.find(product) != kNoToken)) {
          continue;
        }
        best = {{left, right, kNoToken, count}, is_super};
      }
      if (best.merge.count == 0) return;
      best.merge.product =
          tokens.add(std::string(tokens[best.merge.left]) + std::string(tokens[best.merge.right]));
      taken.push_back(best);
      apply(best);
    }
  }

 private:
  // In the order that decides ties.
  std::map<std::pair<std::uint64_t, bool>, Count> pairs() const {
    std::map<std::pair<std::uint64_t, bool>, Count> counts;
    for (const Piece& piece : pieces) {
      for (std::size_t i = 0; i < piece.units.size(); ++i) {
        const std::vector<TokenId>& ids = piece.units[i].ids;
        for (std::size_t j = 0; j + 1 < ids.size(); ++j) {
          counts[{Pair{ids[j], ids[j + 1]}.key(), false}] += piece.weight;
        }
        if (i + 1 == piece.units.size()) continue;
        const Unit& next = piece.units[i + 1];
        if (!piece.units[i].is_whole() || !next.is_whole()) continue;
        counts[{Pair{ids[0], next.ids[0]}.key(), true}] += piece.weight;
      }
    }
    return counts;
  }

  void apply(const Taken& step) {
    const Pair pair{step.merge.left, step.merge.right};
    for (Piece& piece : pieces) {
      if (!step.is_super) {
        for (Unit& unit : piece.units) fuzz::replace_pair(unit.ids, pair, step.merge.product);
        continue;
      }
      std::vector<Unit> units;
      for (std::size_t i = 0; i < piece.units.size(); ++i) {
        const bool joins = i + 1 < piece.units.size() && piece.units[i].is_whole() &&
                           piece.units[i + 1].is_whole() && piece.units[i].ids[0] == pair.left &&
                           piece.units[i + 1].ids[0] == pair.right;
        units.push_back(joins ? Unit{{step.merge.product}, true} : piece.units[i]);
        i += joins;
      }
      piece.units = units;
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const PreTokenizer cut_pieces = fuzz::take_pre_tokenizer(input);
  const PreTokenizer cut_words({fuzz::take_pattern(input)});
  MergeRule of_words;
  of_words.max_token_bytes = input.ConsumeIntegralInRange<std::size_t>(0, 12);
  MergeRule of_supers = of_words;
  of_supers.max_words = input.ConsumeIntegralInRange<std::size_t>(0, 4);
  if (input.ConsumeBool()) of_supers.forbidden = {"a b", " a a", " the cat"};
  const std::size_t vocab_size = 256 + input.ConsumeIntegralInRange<std::size_t>(0, 80);
  const Count min_count = input.ConsumeIntegralInRange<Count>(1, 3);
  const char never_joins = input.ConsumeIntegral<char>();
  const std::vector<Count> weights{1, input.ConsumeIntegralInRange<Count>(1, 3)};
  const auto runs = fuzz::take_threads(input);
  const fuzz::Lines lines(fuzz::rest_as_text(input));
  const auto may_join = [&](std::string_view word) {
    return word.find(never_joins) == std::string_view::npos;
  };

  Slow slow;
  WordCounter counter(PreTokenizer(std::vector<PreTokenizer::Step>{}), 1);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t group = i % weights.size();
    cut_pieces.split(lines.documents()[i], [&](std::string_view piece) {
      slow.pieces.push_back({{}, weights[group]});
      cut_words.split(piece, [&](std::string_view word) {
        slow.pieces.back().units.push_back({fuzz::ids_of_bytes(slow.tokens, word), may_join(word)});
        const std::int64_t start = 0, end = static_cast<std::int64_t>(word.size());
        const Count once = 1;
        counter.add_words({word, &start, &end, 1}, &once, group);
      });
    });
  }
  const Trained words = train_bpe(counter, {.of_group = weights},
                                  {.vocab_size = vocab_size, .min_frequency = min_count}, of_words,
                                  std::nullopt, 0, {});
  slow.train(vocab_size, min_count, of_words, of_supers, words.vocabulary);
  std::vector<bool> joins;
  for (TokenId id = 0; id < words.vocabulary.size(); ++id) {
    joins.push_back(may_join(words.vocabulary[id]));
  }
  for (const std::size_t threads : runs) {
    const WordsInPieces cutter(cut_pieces, cut_words, threads);
    BoundlessStage stage({words.vocabulary, words.merges, joins}, cutter, weights, vocab_size,
                         min_count, lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      stage.count_borders(lines.document(i), {}, i % weights.size());
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
      stage.count_runs(lines.document(i), {}, i % weights.size());
    }
    const BoundlessTrained trained = stage.train(of_supers, {});
    fuzz::require(trained.merges.size() == slow.taken.size(), "as many merges as a slow reading");
    for (std::size_t i = 0; i < slow.taken.size(); ++i) {
      const Merge &own = trained.merges[i], &other = slow.taken[i].merge;
      fuzz::require(own.left == other.left && own.right == other.right &&
                        own.product == other.product && own.count == other.count &&
                        trained.is_supermerge[i] == slow.taken[i].is_super,
                    "and the same");
    }
    EncoderModel of_word_merges, of_all;
    std::vector<Merge> supermerges;
    of_word_merges.tokens = of_all.tokens = trained.vocabulary;
    std::vector<std::uint32_t> lengths;
    std::vector<bool> all_join;
    for (TokenId id = 0; id < trained.vocabulary.size(); ++id) {
      of_all.ids.push_back(id);
      lengths.push_back(static_cast<std::uint32_t>(trained.vocabulary[id].size()));
      all_join.push_back(may_join(trained.vocabulary[id]));
    }
    of_word_merges.ids = of_all.ids;
    for (std::size_t i = 0; i < trained.merges.size(); ++i) {
      const Merge& merge = trained.merges[i];
      of_all.merges.push_back({merge.left, merge.right, merge.product});
      if (trained.is_supermerge[i]) {
        supermerges.push_back(merge);
      } else {
        of_word_merges.merges.push_back(of_all.merges.back());
      }
    }
    const Encoder by_words(std::move(of_word_merges)), exported(std::move(of_all));
    BoundlessSegmentation segmentation(by_words, exported, supermerges, all_join, lengths, cutter);
    segmentation.add(lines.documents(), {});
    Count tokens = 0;
    for (const Piece& piece : slow.pieces) {
      for (const Unit& unit : piece.units) tokens += unit.ids.size();
    }
    fuzz::require(segmentation.counts().boundless_tokens == tokens,
                  "its own encoding ends where training ended");
    fuzz::require(segmentation.counts().documents == lines.size(), "every document is counted");
  }
  return 0;
}
