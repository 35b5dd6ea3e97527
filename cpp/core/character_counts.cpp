#include "core/character_counts.h"

#include <algorithm>

#include "core/utf8.h"

namespace vocabshift {

namespace {

constexpr std::size_t kCodePoints = 0x110000;

}  // namespace

std::vector<std::pair<char32_t, Count>> count_characters(const Documents& documents,
                                                         std::size_t threads) {
  const std::size_t shards = std::max<std::size_t>(threads, 1);
  const std::vector<std::size_t> borders = balanced_shards(documents, shards);
  std::vector<std::vector<Count>> counts(shards);
  parallel_for(shards, [&](std::size_t shard) {
    if (borders[shard] == borders[shard + 1]) return;
    std::vector<Count>& mine = counts[shard];
    mine.resize(kCodePoints);
    for (std::size_t i = borders[shard]; i < borders[shard + 1]; ++i) {
      const std::string_view document = documents[i];
      for (std::size_t at = 0; at < document.size();) {
        const Decoded decoded = decode_utf8(document.data() + at);
        ++mine[decoded.code_point];
        at += decoded.length;
      }
    }
  });
  std::vector<std::pair<char32_t, Count>> found;
  for (std::size_t c = 0; c < kCodePoints; ++c) {
    Count count = 0;
    for (const std::vector<Count>& part : counts) count += part.empty() ? 0 : part[c];
    if (count > 0) found.emplace_back(static_cast<char32_t>(c), count);
  }
  return found;
}

}  // namespace vocabshift
