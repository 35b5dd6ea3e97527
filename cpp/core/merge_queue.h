// THE tie-break rule, written here and nowhere else: the highest count first; among equal counts
// the smaller (left, right), compared by ids or by spelling. Sources: by ids, BpeTrainer of
// `tokenizers` (docs/algorithms/bpe.md); by spelling, the continued BPE of "Teaching Old Tokenizers
// New Words" (arXiv 2512.03989; its toolkit's heap of (-count, (left, right)) with Python strings);
// the larger spelling, the authors' Parity-aware BPE (arXiv 2508.04796: max of (count, pair)).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/types.h"
#include "core/vocabulary.h"

namespace vocabshift {

// A pair with the count it had when it was queued. Counts only fall after that, so a stale entry
// stands too far ahead, never too far behind: whoever pops it compares and queues it again.
struct Candidate {
  Count count;
  std::uint64_t key;  // Pair::key(); numeric order is the order of (left, right)

  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.count != b.count ? a.count < b.count : a.key > b.key;
  }
};

enum class TieBreak {
  kIds,
  kByteImages,      // strings in the byte-level image, by code point
  kTexts,           // UTF-8, by code point (which is the order of bytes)
  kLastByteImages,  // kByteImages, but the larger pair first (Parity-aware BPE)
};

// Compares token strings code point by code point, as the vocabulary spells them.
class Spelling {
 public:
  Spelling(const Vocabulary& vocabulary, TieBreak by) : vocabulary_(&vocabulary) {
    for (std::size_t byte = 0; byte < 256; ++byte) places_[byte] = static_cast<unsigned char>(byte);
    if (by == TieBreak::kTexts) return;
    const Vocabulary bytes = byte_vocabulary();  // in the order of their images' code points
    for (TokenId id = 0; id < 256; ++id) {
      places_[static_cast<unsigned char>(bytes[id][0])] = static_cast<unsigned char>(id);
    }
  }

  bool is_before(std::uint64_t a, std::uint64_t b) const {
    const int left = compare(static_cast<TokenId>(a >> 32), static_cast<TokenId>(b >> 32));
    return left != 0 ? left < 0 : compare(static_cast<TokenId>(a), static_cast<TokenId>(b)) < 0;
  }

 private:
  int compare(TokenId a, TokenId b) const {
    if (a == b) return 0;
    const std::string_view left = (*vocabulary_)[a], right = (*vocabulary_)[b];
    const std::size_t size = std::min(left.size(), right.size());
    for (std::size_t i = 0; i < size; ++i) {
      const int place = places_[static_cast<unsigned char>(left[i])];
      const int other = places_[static_cast<unsigned char>(right[i])];
      if (place != other) return place - other;
    }
    return left.size() < right.size() ? -1 : left.size() > right.size();
  }

  const Vocabulary* vocabulary_;
  std::array<unsigned char, 256> places_;
};

class MergeQueue {
 public:
  // From now on ties go by the spelling of tokens in `vocabulary`, which must outlive the queue
  // and may grow. Only while the queue is empty.
  void order_by(const Vocabulary& vocabulary, TieBreak by) {
    spelling_.reset();
    if (by != TieBreak::kIds) spelling_.emplace(vocabulary, by);
    last_first_ = by == TieBreak::kLastByteImages;
  }

  void assign(std::vector<Candidate>&& candidates) {
    heap_ = std::move(candidates);
    ordered([&](auto less) { std::make_heap(heap_.begin(), heap_.end(), less); });
  }
  void push(Candidate candidate) {
    heap_.push_back(candidate);
    ordered([&](auto less) { std::push_heap(heap_.begin(), heap_.end(), less); });
  }
  Candidate pop() {
    ordered([&](auto less) { std::pop_heap(heap_.begin(), heap_.end(), less); });
    const Candidate top = heap_.back();
    heap_.pop_back();
    return top;
  }
  bool empty() const { return heap_.empty(); }
  const Candidate& top() const { return heap_.front(); }
  std::size_t memory_bytes() const { return heap_.capacity() * sizeof(Candidate); }

 private:
  template <class F>
  void ordered(F&& act) {
    if (!spelling_) return act(std::less<Candidate>());
    act([this](const Candidate& a, const Candidate& b) {
      if (a.count != b.count) return a.count < b.count;
      return last_first_ ? spelling_->is_before(a.key, b.key) : spelling_->is_before(b.key, a.key);
    });
  }

  std::vector<Candidate> heap_;
  std::optional<Spelling> spelling_;
  bool last_first_ = false;
};

}  // namespace vocabshift
