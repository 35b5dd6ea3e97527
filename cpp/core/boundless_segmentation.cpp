#include "core/boundless_segmentation.h"

#include <stdexcept>

namespace vocabshift {

BoundlessSegmentation::BoundlessSegmentation(const Encoder& words, const Encoder& exported,
                                             const std::vector<Merge>& supermerges,
                                             std::vector<bool> may_join,
                                             std::vector<std::uint32_t> lengths,
                                             WordsInPieces cutter)
    : words_(words),
      exported_(exported),
      supermerges_(supermerges.size()),
      may_join_(std::move(may_join)),
      lengths_(std::move(lengths)),
      cutter_(std::move(cutter)) {
  if (may_join_.size() != lengths_.size()) {
    throw std::invalid_argument("may_join and lengths need one entry for every token");
  }
  std::uint32_t rank = 0;
  for (const Merge& merge : supermerges) {
    supermerges_.set({merge.left, merge.right}, rank++, merge.product);
  }
  for (std::size_t i = 0; i < cutter_.threads(); ++i) {
    workers_.push_back(std::make_unique<Worker>(words_, exported_));
  }
}

void BoundlessSegmentation::add(const Documents& documents, const GivenCuts& cuts) {
  cutter_.for_each_piece(
      documents, cuts, [&](std::size_t thread, std::size_t document, auto piece, auto ends) {
        Worker& worker = *workers_[thread];
        encode_boundless(piece, ends, worker);
        worker.exported.clear();
        exported_.encode_piece(piece, worker.pieces, worker.exported);
        exported_.flush(worker.pieces, worker.exported);
        worker.counts.boundless_tokens += worker.boundless.size();
        worker.counts.exported_tokens += worker.exported.size();
        if (worker.boundless != worker.exported && worker.last_differing != document) {
          worker.last_differing = document;
          ++worker.counts.documents_differing;
        }
      });
  counts_.documents += documents.count;
  for (const auto& worker : workers_) {
    counts_.boundless_tokens += worker->counts.boundless_tokens;
    counts_.exported_tokens += worker->counts.exported_tokens;
    counts_.documents_differing += worker->counts.documents_differing;
    worker->counts = {};
    worker->last_differing = static_cast<std::size_t>(-1);
  }
}

void BoundlessSegmentation::encode_boundless(std::string_view piece,
                                             std::span<const std::size_t> word_ends,
                                             Worker& worker) const {
  worker.ids.clear();
  std::size_t begin = 0;
  for (const std::size_t end : word_ends) {
    words_.encode_piece(piece.substr(begin, end - begin), worker.words, worker.ids);
    begin = end;
  }
  words_.flush(worker.words, worker.ids);
  worker.boundless.clear();
  std::size_t next = 0;  // of ids
  begin = 0;
  for (const std::size_t end : word_ends) {
    const TokenId first = worker.ids[next];
    if (lengths_[first] == end - begin && may_join_[first]) {
      worker.run.push_back(first);
      ++next;
    } else {
      flush_run(worker);
      for (std::size_t at = begin; at < end; at += lengths_[worker.ids[next++]]) {
        worker.boundless.push_back(worker.ids[next]);
      }
    }
    begin = end;
  }
  flush_run(worker);
}

void BoundlessSegmentation::flush_run(Worker& worker) const {
  merge_by_rank(supermerges_, worker.run, kNoRank, worker.merging);
  worker.boundless.insert(worker.boundless.end(), worker.run.begin(), worker.run.end());
  worker.run.clear();
}

}  // namespace vocabshift
