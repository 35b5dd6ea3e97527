#include "core/edit_distance.h"

#include <algorithm>
#include <utility>

#include "core/hash.h"
#include "core/stop.h"

namespace vocabshift {

namespace {

constexpr std::size_t kBits = 64;

// Takes away what both begin with and end with: it costs nothing.
void trim(EditDistance::Symbols& one, EditDistance::Symbols& other) {
  const auto begins = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  const auto n = static_cast<std::size_t>(begins.first - one.begin());
  one = one.subspan(n);
  other = other.subspan(n);
  const auto ends = std::mismatch(one.rbegin(), one.rend(), other.rbegin(), other.rend());
  const auto m = static_cast<std::size_t>(ends.first - one.rbegin());
  one = one.first(one.size() - m);
  other = other.first(other.size() - m);
}

}  // namespace

EditDistance::Places::Places(Symbols pattern) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    Slot& slot = slots_[slot_of(pattern[i])];
    slot.symbol = pattern[i];
    slot.places |= std::uint64_t{1} << i;
  }
}

std::size_t EditDistance::Places::slot_of(std::int64_t symbol) const {
  std::size_t at = hash_pair(static_cast<std::uint64_t>(symbol)) % kSlots;
  while (slots_[at].places != 0 && slots_[at].symbol != symbol) at = (at + 1) % kSlots;
  return at;
}

std::int64_t EditDistance::operator()(Symbols one, Symbols other) {
  may_stop(one.size() + other.size() + 1);
  trim(one, other);
  Symbols pattern = one, text = other;
  if (pattern.size() > text.size()) std::swap(pattern, text);
  if (pattern.empty()) return static_cast<std::int64_t>(text.size());

  // In the row above the pattern each cell is one more than the cell before it.
  deltas_.assign(text.size(), 1);
  for (std::size_t begin = 0; begin < pattern.size(); begin += kBits) {
    const Symbols rows = pattern.subspan(begin, std::min(kBits, pattern.size() - begin));
    const Places places(rows);
    const std::uint64_t last = std::uint64_t{1} << (rows.size() - 1);
    std::uint64_t up = ~std::uint64_t{0}, down = 0;  // rows whose cell is one more, or one less
    for (std::size_t i = 0; i < text.size(); ++i) {
      may_stop(4);
      const std::uint64_t more = deltas_[i] > 0, less = deltas_[i] < 0;  // into the first row
      const std::uint64_t matches = places.of(text[i]) | less;
      const std::uint64_t diagonal = (((matches & up) + up) ^ up) | matches | down;
      std::uint64_t right_up = down | ~(diagonal | up);
      std::uint64_t right_down = diagonal & up;
      deltas_[i] = static_cast<std::int8_t>(((right_up & last) != 0) - ((right_down & last) != 0));
      right_up = (right_up << 1) | more;
      right_down = (right_down << 1) | less;
      up = right_down | ~(diagonal | right_up);
      down = right_up & diagonal;
    }
  }
  auto distance = static_cast<std::int64_t>(pattern.size());  // of the pattern and no text
  for (const std::int8_t delta : deltas_) distance += delta;
  return distance;
}

}  // namespace vocabshift
