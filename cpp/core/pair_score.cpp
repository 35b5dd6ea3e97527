#include "core/pair_score.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace vocabshift {

PairScore::PairScore(std::vector<bool> is_high, double alpha, double power)
    : languages_(is_high.size()), is_count_(false), alpha_(alpha), power_(power) {
  for (std::size_t i = 0; i < is_high.size(); ++i) (is_high[i] ? high_ : low_).push_back(i);
  if (high_.empty() || low_.empty()) {
    throw std::invalid_argument("need a language of high and one of low resources");
  }
  if (!(alpha > 0 && alpha <= 1)) throw std::invalid_argument("alpha must be in (0, 1]");
  if (!(power < 0)) throw std::invalid_argument("the power must be below 0");
}

Count PairScore::operator()(const Count* counts) const {
  if (is_count_) return *counts;
  Count all = 0;
  for (std::size_t i = 0; i < languages_; ++i) all += counts[i];
  double overlap = 0;
  for (const std::size_t low : low_) {
    if (counts[low] == 0) continue;
    double best = 0;
    for (const std::size_t high : high_) {
      if (counts[high] > 0) best = std::max(best, mean(counts[high], counts[low]));
    }
    overlap += best;
  }
  // The bits of doubles that are not negative are in the order of the numbers.
  return std::bit_cast<Count>(alpha_ * static_cast<double>(all) + (1 - alpha_) * overlap);
}

double PairScore::mean(Count high, Count low) const {
  const auto smaller = static_cast<double>(std::min(high, low));
  if (std::isinf(power_)) return smaller;
  const double ratio = static_cast<double>(std::max(high, low)) / smaller;
  return smaller * std::pow((1 + std::pow(ratio, power_)) / 2, 1 / power_);
}

}  // namespace vocabshift
