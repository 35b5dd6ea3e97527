// A drawn model (merges of any two tokens, in any order, some of them twice) and drawn added
// tokens: a piece gets the ids of a slow reading of the merges, a text the same ids on one thread
// and two, first and again.
#include "core/encode.h"

#include "core/text_encoder.h"
#include "fuzz/fuzz.h"
#include "fuzz/slow.h"

using namespace vocabshift;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  EncoderModel model = fuzz::take_model(input);
  const Vocabulary vocabulary = model.tokens;
  const std::vector<ModelMerge> merges = model.merges;
  const bool skips = model.ignore_merges = input.ConsumeBool();
  const auto encoder = std::make_shared<const Encoder>(std::move(model));

  TextEncoder::Options options;
  for (int left = input.ConsumeIntegralInRange(0, 3); left > 0; --left) {
    const std::string content = fuzz::take_text(input, 6);
    if (content.empty()) continue;
    auto& tokens = input.ConsumeBool() ? options.raw_tokens : options.normalized_tokens;
    tokens.push_back({content, static_cast<TokenId>(900 + left), input.ConsumeBool(),
                      input.ConsumeBool(), input.ConsumeBool()});
  }
  if (input.ConsumeBool()) options.prepend = "\u2581";
  if (input.ConsumeBool()) options.space_becomes = "\u2581";
  options.to_nfc = input.ConsumeBool();
  options.pre_tokenizer = fuzz::take_pre_tokenizer(input);
  auto batches = fuzz::take_threads(input);
  batches.push_back(1);  // again, with what the first has left in its tables
  const std::string text = fuzz::rest_as_text(input);

  Encoder::Scratch scratch(*encoder);
  std::vector<TokenId> ids;
  options.pre_tokenizer->split(text, [&](std::string_view word) {
    const fuzz::Exact piece(word);
    ids.clear();
    encoder->encode_piece(piece, scratch, ids);
    encoder->flush(scratch, ids);
    const TokenId whole = vocabulary.find(word);
    const auto expected = skips && whole != kNoToken ? std::vector<TokenId>{whole}
                                                     : fuzz::slow_merges(vocabulary, merges, word);
    fuzz::require(ids == expected, "the encoder gives the ids of a slow reading");
  });

  const fuzz::Lines lines(text);
  const Documents documents = lines.documents();
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < documents.count; ++i) kept.emplace_back(documents[i]);
  const std::vector<std::string_view> views(kept.begin(), kept.end());
  TextEncoder text_encoder(encoder, options);
  const ViewDocuments source(views);
  std::vector<TokenId> one;
  std::vector<std::int64_t> left;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (!text_encoder.encode(views[i], scratch, one)) left.push_back(static_cast<std::int64_t>(i));
  }
  for (const std::size_t threads : batches) {
    const TextEncoder::Batch batch = text_encoder.encode_batch(source, threads);
    fuzz::require(std::equal(one.begin(), one.end(), batch.ids.begin(), batch.ids.end()),
                  "a batch has the ids of its texts");
    fuzz::require(batch.left == left, "and leaves the same to its caller");
    fuzz::require(batch.offsets.size() == views.size() + 1 &&
                      batch.offsets.back() == static_cast<std::int64_t>(one.size()),
                  "offsets end where the ids end");
  }
  return 0;
}
