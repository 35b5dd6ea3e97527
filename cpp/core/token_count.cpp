#include "core/token_count.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace vocabshift {

Count count_tokens(const Encoder& encoder, const PreTokenizer& pre_tokenizer,
                   const Documents& documents, std::size_t threads) {
  const std::size_t shards = std::max<std::size_t>(threads, 1);
  const std::vector<std::size_t> borders = balanced_shards(documents, shards);
  std::vector<Count> tokens(shards);
  parallel_for(shards, [&](std::size_t shard) {
    Encoder::Scratch scratch(encoder);
    std::vector<TokenId> ids;
    for (std::size_t i = borders[shard]; i < borders[shard + 1]; ++i) {
      pre_tokenizer.split(
          documents[i], [&](std::string_view piece) { encoder.encode_piece(piece, scratch, ids); });
      encoder.flush(scratch, ids);
      tokens[shard] += ids.size();
      ids.clear();
    }
  });
  return std::accumulate(tokens.begin(), tokens.end(), Count{0});
}

}  // namespace vocabshift
