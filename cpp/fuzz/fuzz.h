// What the fuzz targets share. A target takes any bytes, and fails by aborting: the core may refuse
// them with one of its exceptions, and must otherwise keep the promise that the target names.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/encode.h"
#include "core/merge_rule.h"
#include "core/pre_tokenize.h"
#include "core/threads.h"
#include "core/utf8.h"

namespace vocabshift::fuzz {

using Input = FuzzedDataProvider;

inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", promise);
  std::abort();
}

// A copy that ends where its memory ends, so that the sanitizer sees each byte that is read too
// far.
class Exact {
 public:
  explicit Exact(std::string_view text) : bytes_(new char[text.size()]), size_(text.size()) {
    text.copy(bytes_.get(), size_);
  }
  operator std::string_view() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_;
};

// The bytes as the core gets them: UTF-8, for its doors refuse all else.
inline std::string as_utf8(std::string text) {
  std::size_t valid = 0;
  for (;;) {
    const std::int64_t bad = first_invalid_utf8(std::string_view(text).substr(valid));
    if (bad == kAllValid) return text;
    valid += static_cast<std::size_t>(bad);
    text[valid] = '?';
  }
}

inline std::string take_text(Input& input, std::size_t most) {
  return as_utf8(input.ConsumeRandomLengthString(most));
}

inline std::string rest_as_text(Input& input) {
  return as_utf8(input.ConsumeRemainingBytesAsString());
}

inline Pattern take_pattern(Input& input) {
  return static_cast<Pattern>(
      input.ConsumeIntegralInRange<int>(0, static_cast<int>(Pattern::kHan)));
}

// Up to three steps of the kinds that tokenizers have.
PreTokenizer take_pre_tokenizer(Input& input);

// One thread, and now and then also two: starting a thread takes longer than the rest.
inline std::vector<std::size_t> take_threads(Input& input) {
  if (input.ConsumeIntegralInRange(0, 31) == 31) return {1, 2};
  return {1};
}

// Merges of any two tokens, in any order, some of them twice, and the tokens that they make; ids
// are the tokens' places.
EncoderModel take_model(Input& input);

// What a product may be.
MergeRule take_rule(Input& input);

// A text as documents: one for each line.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {
    for (const Span line : line_spans(text_)) {
      starts_.push_back(static_cast<std::int64_t>(line.begin));
      ends_.push_back(static_cast<std::int64_t>(line.end));
    }
  }
  Documents documents() const { return {text_, starts_.data(), ends_.data(), starts_.size()}; }
  std::size_t size() const { return starts_.size(); }
  Documents document(std::size_t i) const { return {text_, &starts_[i], &ends_[i], 1}; }

 private:
  Exact text_;
  std::vector<std::int64_t> starts_, ends_;
};

}  // namespace vocabshift::fuzz
