// Large arrays filled in parts: a new gigabyte takes the system a second to hand out, and a Ctrl-C
// must not wait for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "core/stop.h"

namespace vocabshift {

inline constexpr std::size_t kFilledAtOnce = 1 << 16;  // bytes, between two checks

// So many of one value.
template <class Vector>
Vector filled(std::size_t count, const typename Vector::value_type& value) {
  constexpr std::size_t kPart = std::max<std::size_t>(1, kFilledAtOnce / sizeof(value));
  Vector vector;
  vector.reserve(count);
  while (vector.size() < count) {
    const std::size_t part = std::min(kPart, count - vector.size());
    vector.insert(vector.end(), part, value);
    may_stop(part * sizeof(value));
  }
  return vector;
}

template <class T>
void append_in_parts(std::vector<T>& to, std::span<const T> values) {
  constexpr std::size_t kPart = kFilledAtOnce / sizeof(T);
  const std::size_t needed = to.size() + values.size();
  if (needed > to.capacity()) to.reserve(std::max(needed, 2 * to.capacity()));
  while (!values.empty()) {
    const auto part = values.first(std::min(kPart, values.size()));
    to.insert(to.end(), part.begin(), part.end());
    values = values.subspan(part.size());
    may_stop(part.size_bytes());
  }
}

}  // namespace vocabshift
