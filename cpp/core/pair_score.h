// What the queue maximises: a pair's count, or OBPE's count that rewards languages with a common
// vocabulary.
//
// OBPE ("Overlap-based Vocabulary Generation Improves Cross-lingual Transfer", Patil, Talukdar,
// Sarawagi, ACL 2022): of a pair that occurs f_L times in language L
//   alpha * sum_L f_L + (1 - alpha) * sum_(low k) max_(high h) mean_p(f_h, f_k)
// with the generalized mean of power p < 0, which is 0 where one of the two does not have the pair;
// p = -infinity: the smaller of the two, the paper's definition. -2 is the authors' code.
//
// Exactly, so that equal scores tie everywhere: all in double precision, low languages summed in
// the order of their numbers, mean_p(x, y) = s * ((1 + (l/s)**p) / 2) ** (1/p) with s the smaller,
// l the larger.
#pragma once

#include <cstddef>
#include <vector>

#include "core/types.h"

namespace vocabshift {

class PairScore {
 public:
  // The count itself, of one language.
  PairScore() = default;
  // is_high: by language. alpha in (0, 1], power below 0.
  PairScore(std::vector<bool> is_high, double alpha, double power);

  std::size_t languages() const { return languages_; }
  // A number whose order is the order of scores; 0 for no score. `counts` by language.
  Count operator()(const Count* counts) const;

 private:
  double mean(Count high, Count low) const;

  std::size_t languages_ = 1;
  bool is_count_ = true;
  std::vector<std::size_t> high_, low_;  // languages
  double alpha_ = 1;
  double power_ = 0;
};

}  // namespace vocabshift
