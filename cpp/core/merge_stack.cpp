#include "core/merge_stack.h"

#include <stdexcept>

namespace vocabshift {

MergeStack::MergeStack(std::size_t max_tokens)
    : max_tokens_(max_tokens), vocabulary_(byte_vocabulary()), table_(max_tokens) {
  for (TokenId id = 0; id < 256; ++id) {
    ids_of_bytes_[static_cast<unsigned char>(vocabulary_[id][0])] = id;
  }
}

std::size_t MergeStack::push(std::string_view token) {
  symbols_.clear();
  for (const char byte : token) symbols_.push_back(ids_of_bytes_[static_cast<unsigned char>(byte)]);
  merge_by_rank(table_, symbols_, kNoRank, scratch_);
  if (symbols_.size() != 2) return symbols_.size();
  if (vocabulary_.size() >= max_tokens_) throw std::length_error("the merge stack is full");
  const Pair pair{symbols_[0], symbols_[1]};
  const TokenId product = vocabulary_.add(token);
  table_.set(pair, static_cast<std::uint32_t>(merges_.size()), product);
  merges_.push_back({pair.left, pair.right, product, 0});
  return 2;
}

}  // namespace vocabshift
