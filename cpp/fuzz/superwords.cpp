// Two stages of training on drawn text: the second makes the same superwords on one thread and two;
// each is made of two tokens that were there.
#include "core/superwords.h"

#include "core/train.h"
#include "core/word_counts.h"
#include "fuzz/fuzz.h"

using namespace vocabshift;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const Pattern words = fuzz::take_pattern(input);
  const std::size_t first_size = 256 + input.ConsumeIntegralInRange<std::size_t>(0, 100);
  const std::size_t more = input.ConsumeIntegralInRange<std::size_t>(0, 100);
  MergeRule rule;
  rule.max_words = input.ConsumeIntegralInRange<std::size_t>(0, 4);
  rule.max_token_bytes = input.ConsumeIntegralInRange<std::size_t>(0, 16);
  const Count min_frequency = input.ConsumeIntegralInRange<Count>(1, 3);
  const bool is_period = input.ConsumeBool();
  const auto runs = fuzz::take_threads(input);
  const fuzz::Lines lines(fuzz::rest_as_text(input));
  const Tick tick = [](std::uint64_t, std::uint64_t) {};

  WordCounter counter(PreTokenizer({words}), 1);
  counter.add(lines.documents(), 0);
  const Trained first =
      train_bpe(counter, {.of_group = {1}}, {.vocab_size = first_size}, {}, std::nullopt, 0, tick);
  EncoderModel model;
  model.tokens = first.vocabulary;
  for (TokenId id = 0; id < first.vocabulary.size(); ++id) model.ids.push_back(id);
  for (const Merge& merge : first.merges) {
    model.merges.push_back({merge.left, merge.right, merge.product});
  }
  const Encoder encoder(std::move(model));
  const PreTokenizer sentences(
      {Pattern::kBoundaries, SentencePolicy({U'?', U'\u0964'}, is_period)});
  std::vector<Trained> found;
  for (const std::size_t threads : runs) {
    SuperwordText text(encoder, first.vocabulary, sentences, {threads, std::nullopt, false});
    SuperwordStage stage(std::move(text), TokenStore());
    stage.add(lines.documents(), nullptr, 0);
    stage.finish();
    found.push_back(stage.train({1},
                                {.vocab_size = first.vocabulary.size() + more,
                                 .min_frequency = min_frequency,
                                 .threads = threads,
                                 .chunks_per_thread = 1},
                                rule, 0, tick));
  }
  fuzz::require(found[0].merges.size() == found.back().merges.size(), "two threads learn as many");
  for (std::size_t i = 0; i < found[0].merges.size(); ++i) {
    const Merge &a = found[0].merges[i], &b = found.back().merges[i];
    const auto& own = found[0].vocabulary;
    fuzz::require(a.left == b.left && a.right == b.right && a.count == b.count, "and the same");
    fuzz::require(std::string(own[a.left]) + std::string(own[a.right]) == own[a.product],
                  "a superword is its two parts' bytes");
    fuzz::require(rule.allows(own[a.product]), "the rule allows each product");
    fuzz::require(a.count >= min_frequency, "none is rarer than was asked for");
  }
  return 0;
}
