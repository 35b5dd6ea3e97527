// Pre-tokens are the text, in order and none empty, whatever the steps and the text are.
#include "fuzz/fuzz.h"

using namespace vocabshift;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const PreTokenizer pre_tokenizer = fuzz::take_pre_tokenizer(input);
  const fuzz::Exact text(fuzz::rest_as_text(input));
  const std::string_view whole = text;
  std::size_t at = 0;
  pre_tokenizer.split(whole, [&](std::string_view pre_token) {
    fuzz::require(!pre_token.empty(), "no pre-token is empty");
    fuzz::require(pre_token.data() == whole.data() + at, "pre-tokens follow one another");
    fuzz::require(first_invalid_utf8(pre_token) == kAllValid, "pre-tokens are whole characters");
    at += pre_token.size();
  });
  fuzz::require(at == whole.size(), "pre-tokens are the whole text");
  return 0;
}
