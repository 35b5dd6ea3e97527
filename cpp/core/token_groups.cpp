#include "core/token_groups.h"

#include <atomic>
#include <cstring>
#include <numeric>
#include <stdexcept>

namespace vocabshift {

TokenGroups::TokenGroups(const PieceRule& rule, const std::vector<std::string_view>& tokens,
                         const std::vector<TokenId>& unmergeable)
    : rule_(rule) {
  shapes_.reserve(tokens.size());
  for (const std::string_view token : tokens) {
    shapes_.push_back(rule_.shape_of(token));
    shapes_.back().is_possible &= !token.empty();  // with one, a merge would make what it merges
  }
  for (const TokenId id : unmergeable) {
    if (id >= shapes_.size()) throw std::invalid_argument("an id is not of the vocabulary");
    shapes_[id].is_possible = false;
  }
}

template <class Visit>
void TokenGroups::cut(std::span<const TokenId> ids, Visit&& visit) const {
  for (std::size_t begin = 0; begin < ids.size();) {
    std::size_t end = begin + 1;
    while (end < ids.size() && rule_.join(shapes_[ids[end - 1]], shapes_[ids[end]]).is_possible) {
      ++end;
    }
    visit(ids.subspan(begin, end - begin));
    begin = end;
  }
}

void TokenGroups::check(const EncodedDocuments& documents) const {
  for (std::size_t i = 0; i < documents.offsets.size(); ++i) {
    const std::int64_t before = i == 0 ? 0 : documents.offsets[i - 1];
    if (documents.offsets[i] < before ||
        static_cast<std::size_t>(documents.offsets[i]) > documents.ids.size()) {
      throw std::invalid_argument("offsets must rise and lie within the ids");
    }
  }
  for (const TokenId id : documents.ids) {
    if (id >= shapes_.size()) throw std::invalid_argument("an id is not of the vocabulary");
  }
}

namespace {

// The same documents as byte spans, for what is shared out among threads by bytes.
struct ByteSpans {
  explicit ByteSpans(const EncodedDocuments& encoded) {
    for (const std::int64_t offset : encoded.offsets) {
      at.push_back(offset * static_cast<std::int64_t>(sizeof(TokenId)));
    }
    documents = {{reinterpret_cast<const char*>(encoded.ids.data()), encoded.ids.size_bytes()},
                 at.data(),
                 at.data() + 1,
                 at.empty() ? 0 : at.size() - 1};
  }
  std::vector<std::int64_t> at;
  Documents documents;
};

// Only of a span that began as ids.
std::span<const TokenId> ids_of(std::string_view bytes) {
  return {reinterpret_cast<const TokenId*>(bytes.data()), bytes.size() / sizeof(TokenId)};
}

}  // namespace

Count TokenGroups::add_to(WordCounter& counter, const EncodedDocuments& documents,
                          std::size_t group) const {
  check(documents);
  std::atomic<Count> groups{0};
  const ByteSpans spans(documents);
  counter.add_cut(
      spans.documents,
      [&](std::string_view document, const WordCounter::Visit& visit) {
        Count here = 0;
        cut(ids_of(document), [&](std::span<const TokenId> ids) {
          visit({reinterpret_cast<const char*>(ids.data()), ids.size_bytes()});
          ++here;
        });
        groups += here;
      },
      group);
  return groups;
}

Count TokenGroups::count(const EncodedDocuments& documents, std::size_t threads) const {
  check(documents);
  const std::size_t shards = std::max<std::size_t>(threads, 1);
  const ByteSpans spans(documents);
  const std::vector<std::size_t> borders = balanced_shards(spans.documents, shards);
  std::vector<Count> groups(shards);
  parallel_for(shards, [&](std::size_t shard) {
    Count here = 0;
    for (std::size_t i = borders[shard]; i < borders[shard + 1]; ++i) {
      cut(ids_of(spans.documents[i]), [&](std::span<const TokenId>) { ++here; });
    }
    groups[shard] = here;
  });
  return std::accumulate(groups.begin(), groups.end(), Count{0});
}

void read_group(std::string_view bytes, std::size_t vocab_size, std::vector<TokenId>& ids) {
  if (bytes.size() % sizeof(TokenId) != 0) {
    throw std::invalid_argument("a counted word is no group of token ids");
  }
  ids.resize(bytes.size() / sizeof(TokenId));
  std::memcpy(ids.data(), bytes.data(), bytes.size());
  for (const TokenId id : ids) {
    if (id >= vocab_size) throw std::invalid_argument("an id is not of the vocabulary");
  }
}

}  // namespace vocabshift
