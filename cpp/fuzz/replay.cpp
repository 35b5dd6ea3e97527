// Training that goes on from a drawn model: the merges of a slow reading, on one thread and two;
// replayed on the same words they end where training ended, and so do both lists as one.
#include "core/replay.h"

#include <map>

#include "core/train.h"
#include "fuzz/fuzz.h"
#include "fuzz/slow.h"

using namespace vocabshift;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  EncoderModel model = fuzz::take_model(input);
  const Vocabulary base = model.tokens;
  const std::vector<ModelMerge> old = model.merges;
  const Encoder encoder(std::move(model));
  const PreTokenizer pre_tokenizer = fuzz::take_pre_tokenizer(input);
  const MergeRule rule = fuzz::take_rule(input);
  const Duplicates duplicates =
      std::array{Duplicates::kReuseId, Duplicates::kRefusePair,
                 Duplicates::kReuseUnheld}[input.ConsumeIntegralInRange<std::size_t>(0, 2)];
  Limits limits{.vocab_size = base.size() + input.ConsumeIntegralInRange<std::size_t>(0, 60),
                .min_frequency = input.ConsumeIntegralInRange<Count>(1, 3),
                .chunks_per_thread = 1};
  const std::vector<Count> weights{1, input.ConsumeIntegralInRange<Count>(1, 3)};
  const auto runs = fuzz::take_threads(input);
  const fuzz::Lines lines(fuzz::rest_as_text(input));

  std::vector<bool> held(base.size());
  for (const ModelMerge& merge : old) held[merge.left] = held[merge.right] = true;
  std::map<std::string, std::array<Count, 2>> counts;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    pre_tokenizer.split(lines.documents()[i],
                        [&](std::string_view word) { ++counts[std::string(word)][i % 2]; });
  }
  std::vector<fuzz::SlowWord> words;
  for (const auto& [word, by_group] : counts) {
    words.push_back(
        {fuzz::slow_merges(base, old, word), by_group[0] * weights[0] + by_group[1] * weights[1]});
  }
  Vocabulary vocabulary = base;
  const std::vector<Merge> expected =
      fuzz::learn_slowly(vocabulary, words, limits, rule, duplicates, held);
  Count tokens_left = 0;
  auto own = words.begin();
  for (const auto& [word, by_group] : counts) {
    fuzz::require(fuzz::text_of(vocabulary, own->ids) == word, "the tokens of a word spell it");
    tokens_left += (by_group[0] + by_group[1]) * own++->ids.size();
  }

  std::vector<ModelMerge> merges;
  for (const Merge& merge : expected) merges.push_back({merge.left, merge.right, merge.product});
  for (const std::size_t threads : runs) {
    WordCounter counter(pre_tokenizer, threads);
    for (std::size_t i = 0; i < lines.size(); ++i) counter.add(lines.document(i), i % 2);
    limits.threads = threads;
    const Trained trained = train_bpe(counter, {.of_group = weights}, limits, rule,
                                      Start{&encoder, base, duplicates, held}, 0, {}, true);
    fuzz::require(fuzz::are_equal(trained.merges, expected), "the merges of a slow reading");
    fuzz::require(trained.tokens == tokens_left, "as many tokens are left");

    const std::vector<Replay> replays = replay_merges(counter, &encoder, merges, {});
    Count replayed = 0;
    for (std::size_t group = 0; group < replays.size(); ++group) {
      Replay slow;
      slow.happened.resize(merges.size());
      for (const auto& [word, by_group] : counts) {
        std::vector<TokenId> ids = fuzz::slow_merges(base, old, word);
        slow.words += by_group[group];
        slow.tokens += by_group[group] * ids.size();
        fuzz::merge_slowly(merges, ids, &slow.happened, by_group[group]);
        replayed += by_group[group] * ids.size();
      }
      fuzz::require(replays[group].words == slow.words && replays[group].tokens == slow.tokens,
                    "a replay counts what stands there");
      fuzz::require(replays[group].happened == slow.happened, "and what each merge does");
    }
    if (duplicates != Duplicates::kReuseId) {
      fuzz::require(replayed == tokens_left, "replayed merges end where training ended");
    }
  }
  if (duplicates == Duplicates::kReuseId) return 0;
  std::vector<ModelMerge> all = old;
  all.insert(all.end(), merges.begin(), merges.end());
  EncoderModel extended;
  extended.tokens = vocabulary;
  extended.merges = all;
  for (TokenId id = 0; id < vocabulary.size(); ++id) extended.ids.push_back(id);
  const Encoder both(std::move(extended));
  Encoder::Scratch scratch(both);
  std::vector<TokenId> ids;
  own = words.begin();
  for (const auto& [word, by_group] : counts) {
    ids.clear();
    both.encode_piece(word, scratch, ids);
    both.flush(scratch, ids);
    fuzz::require(ids == own++->ids, "old and new merges as one list do the same");
  }
  return 0;
}
