// The two long values of any file are read or refused; what is read is written so that it is read
// again as the same.
#include "json/model_json.h"

#include "fuzz/fuzz.h"

using namespace vocabshift;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Exact text({reinterpret_cast<const char*>(data), size});
  const std::string_view whole = text;
  const auto found = read_model_json(whole, 1u << 24);
  if (!found) return 0;
  fuzz::require(found->vocab.end <= found->merges.begin && found->merges.end <= size,
                "both values are in the text, the vocabulary first");
  const std::string vocab = vocab_json(found->strings), merges = merges_json(found->strings);
  const std::string written =
      "{\"model\":{\"type\":\"BPE\",\"vocab\":" + vocab + ",\"merges\":" + merges + "}}";
  const auto again = read_model_json(written, 1u << 24);
  fuzz::require(again.has_value(), "what is written can be read");
  fuzz::require(vocab_json(again->strings) == vocab && merges_json(again->strings) == merges,
                "and is the same");
  return 0;
}
