#include "core/text_encoder.h"

#include <algorithm>
#include <stdexcept>

#include "core/big_memory.h"

namespace vocabshift {

TextEncoder::TextEncoder(Encoder encoder, const Options& options)
    : encoder_(std::move(encoder)),
      raw_tokens_(options.raw_tokens),
      normalized_tokens_(options.normalized_tokens),
      prepend_(options.prepend),
      space_becomes_(options.space_becomes),
      pre_tokenizer_(options.pre_tokenizer) {}

Encoder::Scratch& TextEncoder::scratch(std::size_t thread) {
  while (scratches_.size() <= thread) {
    scratches_.push_back(std::make_unique<Encoder::Scratch>(encoder_));
  }
  return *scratches_[thread];
}

void TextEncoder::encode_normalized(std::string_view text, Encoder::Scratch& scratch,
                                    std::vector<TokenId>& out) const {
  if (!pre_tokenizer_) throw std::logic_error("this encoder has no pre-tokenizer of its own");
  const auto encode_part = [&](std::string_view part) {
    const char* const end = part.data() + part.size();
    pre_tokenizer_->split(
        part, [&](std::string_view piece) { encoder_.encode_piece(piece, end, scratch, out); });
    encoder_.flush(scratch, out);
  };
  if (normalized_tokens_.empty()) return encode_part(text);
  normalized_tokens_.split(text, encode_part,
                           [&](TokenId id, std::string_view) { out.push_back(id); });
}

void TextEncoder::encode(std::string_view text, Encoder::Scratch& scratch,
                         std::vector<TokenId>& out) const {
  const auto encode_part = [&](std::string_view part) {
    if (prepend_.empty() && space_becomes_.empty()) {
      return encode_normalized(part, scratch, out);
    }
    std::string normalized = prepend_;
    for (const char byte : part) {
      if (byte == ' ' && !space_becomes_.empty()) {
        normalized += space_becomes_;
      } else {
        normalized.push_back(byte);
      }
    }
    encode_normalized(normalized, scratch, out);
  };
  if (raw_tokens_.empty()) {
    if (!text.empty()) encode_part(text);
    return;
  }
  raw_tokens_.split(text, encode_part, [&](TokenId id, std::string_view) { out.push_back(id); });
}

TextEncoder::Batch TextEncoder::encode_batch(const DocumentSource& documents, std::size_t threads) {
  const std::size_t count = documents.count();
  std::size_t total = 0;
  for (std::size_t i = 0; i < count; ++i) total += documents.size(i);
  threads = std::max<std::size_t>(1, std::min(threads, total / 4096 + 1));
  std::vector<std::size_t> borders{0};
  std::size_t seen = 0;
  for (std::size_t i = 0; i < count; ++i) {
    seen += documents.size(i);
    while (borders.size() < threads && seen * threads >= total * borders.size()) {
      borders.push_back(i + 1);
    }
  }
  borders.resize(threads, count);
  borders.push_back(count);

  scratch(threads - 1);  // makes them all: threads may not
  Batch batch;
  batch.parts.resize(threads);
  batch.offsets.assign(count + 1, 0);
  parallel_for(threads, [&](std::size_t shard) {
    std::vector<TokenId>& out = batch.parts[shard];
    out.reserve(total / threads / 2);  // a guess: what is not touched costs nothing
    advise_huge_pages(out.data(), out.capacity() * sizeof(TokenId));
    std::string room;
    for (std::size_t i = borders[shard]; i < borders[shard + 1]; ++i) {
      encode(documents.get(i, room), *scratches_[shard], out);
      batch.offsets[i + 1] = static_cast<std::int64_t>(out.size());  // within the shard, as yet
    }
  });
  std::int64_t before = 0;
  for (std::size_t shard = 0; shard < threads; ++shard) {
    for (std::size_t i = borders[shard]; i < borders[shard + 1]; ++i)
      batch.offsets[i + 1] += before;
    before += static_cast<std::int64_t>(batch.parts[shard].size());
  }
  return batch;
}

}  // namespace vocabshift
