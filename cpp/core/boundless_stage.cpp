#include "core/boundless_stage.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "core/stop.h"
#include "core/word_join.h"

namespace vocabshift {

namespace {

constexpr std::size_t kMostCells = std::size_t{1} << 24;

// No accepted merge counts less: see boundless_loop.h.
Count floor_of(const BoundlessStage::Words& words, std::size_t vocab_size, Count min_count) {
  const bool is_full = !words.merges.empty() && words.tokens.size() >= vocab_size;
  return std::max<Count>({is_full ? words.merges.back().count : 1, min_count, 1});
}

void add_run(const std::vector<TokenId>& ids, std::size_t begin, std::size_t end,
             WordTable& table) {
  if (end - begin < 2) return;
  const std::string_view run(reinterpret_cast<const char*>(ids.data() + begin),
                             (end - begin) * sizeof(TokenId));
  table.add_batch(&run, 1);
}

}  // namespace

BoundlessStage::BoundlessStage(Words words, WordsInPieces cutter, std::vector<Count> weights,
                               std::size_t vocab_size, Count min_count, std::size_t expected_words)
    : words_(std::move(words)),
      cutter_(std::move(cutter)),
      weights_(std::move(weights)),
      vocab_size_(vocab_size),
      min_count_(std::max<Count>(min_count, 1)),
      floor_(floor_of(words_, vocab_size, min_count)),
      cells_(std::min(std::bit_ceil(expected_words / 4 + 1024), kMostCells)),
      sketch_(std::make_unique<std::atomic<Count>[]>(cells_)) {
  if (words_.may_join.size() != words_.tokens.size()) {
    throw std::invalid_argument("may_join needs one entry for every token");
  }
}

Count BoundlessStage::weight_of(std::size_t group) const {
  if (!sketch_) throw std::invalid_argument("the stage has trained already");
  if (group >= weights_.size()) {
    throw std::invalid_argument("every group of documents needs a weight");
  }
  return weights_[group];
}

std::size_t BoundlessStage::cell_of(TokenId left, TokenId right) const {
  return hash_pair(Pair{left, right}.key()) & (cells_ - 1);
}

void BoundlessStage::look_up(std::string_view piece, std::span<const std::size_t> word_ends,
                             std::vector<TokenId>& out) const {
  std::size_t begin = 0;
  for (const std::size_t end : word_ends) {
    may_stop(8);
    const TokenId id = words_.tokens.find(piece.substr(begin, end - begin));
    out.push_back(id != kNoToken && words_.may_join[id] ? id : kNoToken);
    begin = end;
  }
}

void BoundlessStage::count_borders(const Documents& documents, const GivenCuts& cuts,
                                   std::size_t group) {
  const Count weight = weight_of(group);
  std::vector<std::vector<TokenId>> ids(cutter_.threads());
  cutter_.for_each_piece(
      documents, cuts, [&](std::size_t thread, std::size_t, auto piece, auto ends) {
        std::vector<TokenId>& words = ids[thread];
        words.clear();
        look_up(piece, ends, words);
        for (std::size_t i = 0; i + 1 < words.size(); ++i) {
          if (words[i] == kNoToken || words[i + 1] == kNoToken) continue;
          sketch_[cell_of(words[i], words[i + 1])].fetch_add(weight, std::memory_order_relaxed);
        }
      });
}

void BoundlessStage::count_runs(const Documents& documents, const GivenCuts& cuts,
                                std::size_t group) {
  weight_of(group);
  if (group >= runs_.size()) runs_.resize(group + 1);
  auto& tables = runs_[group];
  tables.resize(cutter_.threads());
  std::vector<std::vector<TokenId>> ids(cutter_.threads());
  cutter_.for_each_piece(
      documents, cuts, [&](std::size_t thread, std::size_t, auto piece, auto ends) {
        if (!tables[thread]) tables[thread] = std::make_unique<WordTable>();
        std::vector<TokenId>& words = ids[thread];
        words.clear();
        look_up(piece, ends, words);
        std::size_t begin = 0;
        for (std::size_t i = 0; i < words.size(); ++i) {
          if (words[i] == kNoToken) {
            add_run(words, begin, i, *tables[thread]);
            begin = i + 1;
          } else if (i + 1 < words.size() && words[i + 1] != kNoToken &&
                     sketch_[cell_of(words[i], words[i + 1])].load(std::memory_order_relaxed) <
                         floor_) {
            add_run(words, begin, i + 1, *tables[thread]);
            begin = i + 1;
          }
        }
        add_run(words, begin, words.size(), *tables[thread]);
      });
}

BoundlessTrained BoundlessStage::train(const MergeRule& rule, const Tick& tick) {
  sketch_.reset();
  BoundlessLoop loop(words_.tokens, words_.merges, rule, floor_);
  std::vector<TokenId> ids;
  std::vector<GroupTable> tables;
  for (std::size_t group = 0; group < runs_.size(); ++group) {
    for (const auto& table : runs_[group]) {
      if (table) tables.push_back({table.get(), group});
    }
  }
  WordJoin(tables).for_each([&](std::string_view, std::size_t group) { return weights_[group]; },
                            [&](std::string_view run, Count weighted, Count count) {
                              ids.resize(run.size() / sizeof(TokenId));
                              std::memcpy(ids.data(), run.data(), run.size());
                              loop.add_run(ids, weighted, count);
                            });
  runs_.clear();
  return loop.run(vocab_size_, min_count_, tick);
}

}  // namespace vocabshift
