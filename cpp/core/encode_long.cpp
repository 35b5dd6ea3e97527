// Encoding long words: each part between two sure borders by itself.
#include "core/encode.h"

namespace vocabshift {

const SureBorders& Encoder::borders() const {
  std::call_once(borders_once_,
                 [&] { borders_.emplace(byte_ids_, merges_, cutter_.crossing_rank()); });
  return *borders_;
}

void Encoder::merge_all(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  std::vector<TokenId>& symbols = scratch.ids_;
  symbols.clear();
  symbols_of(word, symbols);
  merge_by_rank(merges_, symbols, cutter_.crossing_rank(), scratch.merging_);
  out.insert(out.end(), symbols.begin(), symbols.end());
}

void Encoder::encode_long(std::string_view word, Scratch& scratch,
                          std::vector<TokenId>& out) const {
  const auto encode_part = [&](std::string_view part, const SureBorders::Known* known,
                               std::size_t count) {
    if (!tree_.usable() || !tree_.fits(part)) {
      merge_all(part, scratch, out);
    } else if (count > 0) {
      tree_.encode(known, count, out);
    } else {
      tree_.encode(part, scratch.tree_, out);
    }
  };
  borders().split(word, encode_part);
}

}  // namespace vocabshift
