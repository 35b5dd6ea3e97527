// THE tie-break rule, written here and nowhere else: the highest count first; among equal counts
// the smaller (left_id, right_id). Source: BpeTrainer of `tokenizers`; method.md section 1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/types.h"

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

class MergeQueue {
 public:
  void assign(std::vector<Candidate>&& candidates) {
    heap_ = std::move(candidates);
    std::make_heap(heap_.begin(), heap_.end());
  }
  void push(Candidate candidate) {
    heap_.push_back(candidate);
    std::push_heap(heap_.begin(), heap_.end());
  }
  Candidate pop() {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate top = heap_.back();
    heap_.pop_back();
    return top;
  }
  bool empty() const { return heap_.empty(); }
  const Candidate& top() const { return heap_.front(); }
  std::size_t memory_bytes() const { return heap_.capacity() * sizeof(Candidate); }

 private:
  std::vector<Candidate> heap_;
};

}  // namespace vocabshift
