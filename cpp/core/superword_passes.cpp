#include "core/superword_passes.h"

#include "core/platform.h"
#include "core/superword_runs.h"

namespace vocabshift {

BorderPass::BorderPass(SuperwordText text, std::vector<Count> weights, std::size_t cells)
    : text_(std::move(text)), weights_(std::move(weights)), sketch_(cells) {}

void BorderPass::add(const Documents& documents, std::size_t group) {
  if (group >= weights_.size()) throw std::invalid_argument("every group needs a weight");
  Count tokens = 0;
  for (const auto& block : text_.encode(documents, nullptr, tokens)) {
    text_.for_each_piece(block, [&](std::span<const TokenId> piece, Count factor) {
      Count count;
      if (multiply_overflows(weights_[group], factor, &count)) WordSum::overflow();
      sketch_.add(piece, count);
    });
  }
}

void RunPass::Found::clear() {
  runs.clear();
  starts.clear();
  ends.clear();
  counts.clear();
}

void RunPass::Found::add(std::span<const TokenId> run, Count factor, bool is_weighted) {
  const std::string_view bytes(reinterpret_cast<const char*>(run.data()), run.size_bytes());
  const auto append = [&](Count count) {
    ends.push_back(static_cast<std::int64_t>(runs.size()));
    counts.push_back(count);
  };
  starts.push_back(static_cast<std::int64_t>(runs.size()));
  runs.append(bytes);
  append(is_weighted ? 1 : factor);
  if (!is_weighted) return;
  starts.push_back(static_cast<std::int64_t>(runs.size()));
  runs.append(bytes);
  runs.push_back(CountedRuns::kWeightMark);
  append(factor);
}

void RunPass::add(const Documents& documents, std::size_t group, WordCounter& counter) {
  const auto& blocks = text_.encode(documents, nullptr, tokens_);
  const bool is_weighted = text_.options().sentences.has_value();
  found_.resize(blocks.size());
  parallel_for(blocks.size(), [&](std::size_t i) {
    found_[i].clear();
    text_.for_each_piece(blocks[i], [&](std::span<const TokenId> piece, Count factor) {
      cutter_.for_each_run(
          piece, [&](std::span<const TokenId> run) { found_[i].add(run, factor, is_weighted); });
    });
  });
  for (const Found& found : found_) {
    const Documents runs{found.runs, found.starts.data(), found.ends.data(), found.ends.size()};
    counter.add_words(runs, found.counts.data(), group);
  }
}

}  // namespace vocabshift
