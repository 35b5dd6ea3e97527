#include "core/threads.h"

namespace vocabshift {

std::vector<std::size_t> balanced_shards(const Documents& documents, std::size_t shards) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < documents.count; ++i)
    total += documents.ends[i] - documents.starts[i];
  std::vector<std::size_t> borders{0};
  std::int64_t seen = 0;
  for (std::size_t i = 0; i < documents.count && borders.size() < shards; ++i) {
    seen += documents.ends[i] - documents.starts[i];
    while (borders.size() < shards && seen * static_cast<std::int64_t>(shards) >=
                                          total * static_cast<std::int64_t>(borders.size())) {
      borders.push_back(i + 1);
    }
  }
  borders.resize(shards, documents.count);
  borders.push_back(documents.count);
  return borders;
}

}  // namespace vocabshift
