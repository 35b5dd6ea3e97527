#include "core/superwords.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace vocabshift {

namespace {

constexpr Count kBoundStep = 4;  // a bound that was too high falls by this factor

std::size_t cell_of(TokenId left, TokenId right, std::size_t cells) {
  return hash_pair(Pair{left, right}.key()) & (cells - 1);
}

// The count of about the k-th most frequent border: merges find a few pairs for every border that
// is frequent from the start, so the last of k merges counts more than that.
Count guess_bound(const std::vector<Count>& sketch, std::size_t k) {
  std::vector<Count> counts;
  counts.reserve(sketch.size() / 2);
  for (const Count count : sketch) {
    if (count > 1) counts.push_back(count);
  }
  if (counts.size() <= k) return 1;
  std::nth_element(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(k), counts.end(),
                   std::greater<Count>());
  return counts[k];
}

void add_run(const TokenId* begin, const TokenId* end, std::vector<std::string_view>& batch,
             WordTable& runs) {
  if (end - begin < 2) return;
  batch.emplace_back(reinterpret_cast<const char*>(begin),
                     static_cast<std::size_t>(end - begin) * sizeof(TokenId));
  if (batch.size() == WordTable::kBatch) {
    runs.add_batch(batch.data(), batch.size());
    batch.clear();
  }
}

}  // namespace

SuperwordStage::SuperwordStage(const Encoder& encoder, PreTokenizer pre_tokenizer,
                               std::size_t threads)
    : encoder_(encoder), pre_tokenizer_(std::move(pre_tokenizer)) {
  for (std::size_t i = 0; i < std::max<std::size_t>(threads, 1); ++i) {
    scratches_.push_back(std::make_unique<Encoder::Scratch>());
  }
}

void SuperwordStage::add(const Documents& documents, std::size_t group) {
  if (group >= groups_.size()) groups_.resize(group + 1);
  const std::size_t threads = scratches_.size();
  const std::vector<std::size_t> borders = balanced_shards(documents, threads);
  std::vector<Block> blocks(threads);
  std::vector<Count> tokens(threads);
  parallel_for(threads, [&](std::size_t shard) {
    Block& block = blocks[shard];
    for (std::size_t i = borders[shard]; i < borders[shard + 1]; ++i) {
      pre_tokenizer_.split(documents[i], [&](std::string_view piece) {
        const std::size_t before = block.size();
        encoder_.encode_piece(piece, *scratches_[shard], block);
        encoder_.flush(*scratches_[shard], block);
        tokens[shard] += block.size() - before;
        if (block.size() < before + 2) {
          block.resize(before);
        } else {
          block.push_back(kNoToken);
        }
      });
    }
    block.shrink_to_fit();
  });
  for (std::size_t shard = 0; shard < threads; ++shard) {
    tokens_ += tokens[shard];
    if (!blocks[shard].empty()) groups_[group].push_back(std::move(blocks[shard]));
  }
}

std::vector<Count> SuperwordStage::sketch_borders(const std::vector<Count>& weights) const {
  const std::size_t cells = std::bit_ceil(static_cast<std::size_t>(tokens_) / 4 + 1024);
  std::vector<Count> sketch(cells);
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const Block& block : groups_[group]) {
      for (std::size_t i = 0; i + 1 < block.size(); ++i) {
        if (block[i] == kNoToken || block[i + 1] == kNoToken) continue;
        sketch[cell_of(block[i], block[i + 1], cells)] += weights[group];
      }
    }
  }
  return sketch;
}

Sequences SuperwordStage::count_runs(const std::vector<Count>& sketch, Count bound,
                                     const std::vector<Count>& weights, const Tick& tick) const {
  Sequences sequences;
  std::vector<TokenId> tokens;
  std::vector<std::string_view> batch;
  std::size_t done = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    WordTable runs;
    for (const Block& block : groups_[group]) {
      const TokenId* begin = block.data();
      const TokenId* const end = begin + block.size();
      for (const TokenId* at = begin; at < end; ++at) {
        if (*at == kNoToken) {
          add_run(begin, at, batch, runs);
          begin = at + 1;
        } else if (at[1] != kNoToken && sketch[cell_of(at[0], at[1], sketch.size())] < bound) {
          add_run(begin, at + 1, batch, runs);
          begin = at + 1;
        }
      }
      runs.add_batch(batch.data(), batch.size());
      batch.clear();
      if (tick) tick(done += block.size(), 0);
    }
    runs.for_each([&](std::string_view run, Count count) {
      tokens.resize(run.size() / sizeof(TokenId));
      std::memcpy(tokens.data(), run.data(), run.size());
      sequences.add(tokens, count * weights[group], count);
    });
  }
  return sequences;
}

Trained SuperwordStage::train(const Vocabulary& vocabulary, const std::vector<Count>& weights,
                              const Limits& limits, const MergeRule& rule, const Tick& tick) {
  if (weights.size() < groups_.size()) {
    throw std::invalid_argument("every group of documents needs a weight");
  }
  const std::vector<Count> sketch = sketch_borders(weights);
  const std::size_t wanted =
      limits.vocab_size - std::min<std::size_t>(limits.vocab_size, vocabulary.size());
  Count bound = guess_bound(sketch, 2 * wanted + 64);
  for (;;) {
    bound = std::max<Count>({bound, limits.min_frequency, 1});
    MergeLoop loop(vocabulary, count_runs(sketch, bound, weights, tick), rule,
                   Duplicates::kRefusePair);
    const Stopped stopped = loop.run({limits.vocab_size, limits.min_frequency, bound}, tick);
    if (stopped != Stopped::kFloor) {
      return {loop.vocabulary(), loop.merges(), stopped, tokens_ - loop.tokens_saved(),
              loop.peak_memory_bytes() + sketch.size() * sizeof(Count)};
    }
    bound /= kBoundStep;
  }
}

}  // namespace vocabshift
