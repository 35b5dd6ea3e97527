// BPE learned from drawn text: a merge makes what its name says, counts do not rise, two threads
// learn the same, and the encoder cuts every word as a slow reading of the merges does.
#include "core/train.h"

#include "core/encode.h"
#include "core/word_counts.h"
#include "fuzz/fuzz.h"
#include "fuzz/slow.h"

using namespace vocabshift;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const PreTokenizer pre_tokenizer = fuzz::take_pre_tokenizer(input);
  MergeRule rule;
  rule.max_token_bytes = input.ConsumeIntegralInRange<std::size_t>(0, 12);
  rule.whole_characters = input.ConsumeBool();
  const Limits limits{.vocab_size = 256 + input.ConsumeIntegralInRange<std::size_t>(0, 300),
                      .min_frequency = input.ConsumeIntegralInRange<Count>(1, 3)};
  const std::size_t memory = input.ConsumeBool() ? 0 : 1 << 12;
  const auto runs = fuzz::take_threads(input);
  const std::string text = fuzz::rest_as_text(input);
  const fuzz::Lines lines(text);
  std::vector<Trained> found;
  for (const std::size_t threads : runs) {
    WordCounter counter(pre_tokenizer, threads);
    counter.add(lines.documents(), 0);
    Limits own = limits;
    own.threads = threads;
    own.chunks_per_thread = 1;  // so that short texts are shared too
    found.push_back(train_bpe(counter, {.of_group = {1}}, own, rule, std::nullopt, memory,
                              [](std::uint64_t, std::uint64_t) {}));
  }
  const Trained& trained = found[0];
  fuzz::require(trained.merges.size() == found.back().merges.size(), "two threads learn as many");
  EncoderModel model;
  std::vector<ModelMerge> merges;
  for (std::size_t i = 0; i < trained.merges.size(); ++i) {
    const Merge& merge = trained.merges[i];
    const Merge& other = found.back().merges[i];
    fuzz::require(merge.left == other.left && merge.right == other.right, "and the same");
    const auto& own = trained.vocabulary;
    fuzz::require(
        std::string(own[merge.left]) + std::string(own[merge.right]) == own[merge.product],
        "a merge makes its two parts' bytes");
    fuzz::require(i == 0 || memory != 0 || merge.count <= trained.merges[i - 1].count,
                  "counts do not rise");
    fuzz::require(rule.allows(own[merge.product]), "the rule allows each product");
    merges.push_back({merge.left, merge.right, merge.product});
  }
  model.tokens = trained.vocabulary;
  for (TokenId id = 0; id < trained.vocabulary.size(); ++id) model.ids.push_back(id);
  model.merges = merges;
  const Encoder encoder(std::move(model));
  Encoder::Scratch scratch(encoder);
  std::vector<TokenId> ids, all;
  Count tokens = 0;
  const Documents documents = lines.documents();
  for (std::size_t i = 0; i < documents.count; ++i) {
    const fuzz::Exact line(documents[i]);
    pre_tokenizer.split(line, [&](std::string_view word) {
      ids.clear();
      encoder.encode_piece(word, scratch, ids);
      encoder.flush(scratch, ids);
      fuzz::require(ids == fuzz::slow_merges(trained.vocabulary, merges, word),
                    "the encoder gives the ids of a slow reading");
      tokens += ids.size();
    });
  }
  fuzz::require(memory != 0 || tokens == trained.tokens,
                "training counts the tokens that it leaves");
  return 0;
}
