// Groups of tokens: what stands in the place of words where a tokenizer encodes a document as a
// whole. The tokens of a document are cut between neighbours that can never be merged; what is
// between two cuts is counted by its ids, for one string may be segmented in two ways: see
// docs/algorithms/continued.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/piece_rule.h"
#include "core/types.h"
#include "core/word_counts.h"

namespace vocabshift {

// Encoded documents: document i has the ids [offsets[i], offsets[i + 1]).
struct EncodedDocuments {
  std::span<const TokenId> ids;
  std::span<const std::int64_t> offsets;
};

class TokenGroups {
 public:
  // `tokens`: texts by id. Those that are `unmergeable` (bytes, control tokens, holes …) or empty
  // are groups by themselves; an id beyond `tokens` is refused.
  TokenGroups(const PieceRule& rule, const std::vector<std::string_view>& tokens,
              const std::vector<TokenId>& unmergeable);

  // Counts the groups as words: the bytes of their ids, in the machine's order. Returns how many
  // groups there are. std::invalid_argument for ids that are not of the vocabulary.
  Count add_to(WordCounter& counter, const EncodedDocuments& documents, std::size_t group) const;

  // The same without keeping them.
  Count count(const EncodedDocuments& documents, std::size_t threads) const;

 private:
  // Calls visit(ids of a group) for every group of a document.
  template <class Visit>
  void cut(std::span<const TokenId> ids, Visit&& visit) const;
  void check(const EncodedDocuments& documents) const;

  PieceRule rule_;
  std::vector<PieceShape> shapes_;  // by id
};

// The ids that a group's bytes spell; std::invalid_argument where it is no group of such ids.
void read_group(std::string_view bytes, std::size_t vocab_size, std::vector<TokenId>& ids);

}  // namespace vocabshift
