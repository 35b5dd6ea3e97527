// Vectors, merges and tokens of the core as arrays and lists of Python, and back.
#pragma once

#include <pybind11/numpy.h>

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings/register.h"
#include "core/types.h"
#include "core/vocabulary.h"

namespace vocabshift::bindings {

using IntArray = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;
using TokenArray = py::array_t<TokenId, py::array::c_style | py::array::forcecast>;
using CountArray = py::array_t<Count, py::array::c_style | py::array::forcecast>;

// Hands a vector to NumPy without copying it.
template <typename T, typename A>
py::array_t<T> to_array(std::vector<T, A>&& values) {
  auto owned = std::make_unique<std::vector<T, A>>(std::move(values));
  const auto size = static_cast<py::ssize_t>(owned->size());
  const T* const data = owned->data();
  const py::capsule owner(owned.get(), [](void* p) { delete static_cast<std::vector<T, A>*>(p); });
  owned.release();  // only now: before, whatever threw would have leaked it
  return py::array_t<T>(size, data, owner);
}

// (n, 3) uint32 of anything with a left, a right and a product.
template <class Row>
py::array_t<TokenId> rows_of(const std::vector<Row>& merges) {
  py::array_t<TokenId> array({static_cast<py::ssize_t>(merges.size()), py::ssize_t{3}});
  auto view = array.template mutable_unchecked<2>();
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto row = static_cast<py::ssize_t>(i);
    view(row, 0) = merges[i].left;
    view(row, 1) = merges[i].right;
    view(row, 2) = merges[i].product;
  }
  return array;
}

// Merges from (n, 3) ids, for which is_known(id) must hold.
template <class Merge, class IsKnown>
std::vector<Merge> merges_of(const TokenArray& rows, IsKnown&& is_known) {
  if (rows.ndim() != 2 || rows.shape(1) != 3) {
    throw std::invalid_argument("merges must have shape (n, 3)");
  }
  std::vector<Merge> merges;
  merges.reserve(static_cast<std::size_t>(rows.shape(0)));
  const auto view = rows.unchecked<2>();
  for (py::ssize_t i = 0; i < view.shape(0); ++i) {
    if (!is_known(view(i, 0)) || !is_known(view(i, 1)) || !is_known(view(i, 2))) {
      throw std::invalid_argument("a merge names an unknown id");
    }
    Merge& merge = merges.emplace_back();
    merge.left = view(i, 0);
    merge.right = view(i, 1);
    merge.product = view(i, 2);
  }
  return merges;
}

// Field by field of every row, as an array: one count per merge, say.
template <class Row, class T>
py::array_t<T> column_of(const std::vector<Row>& rows, T Row::* field) {
  std::vector<T> column;
  column.reserve(rows.size());
  for (const Row& row : rows) column.push_back(row.*field);
  return to_array(std::move(column));
}

inline Vocabulary vocabulary_of(const std::vector<py::bytes>& tokens) {
  std::string bytes;
  std::vector<std::size_t> begins{0};
  begins.reserve(tokens.size() + 1);
  for (const py::bytes& token : tokens) {
    bytes += static_cast<std::string_view>(token);
    begins.push_back(bytes.size());
  }
  return {std::move(bytes), std::move(begins)};
}

// The bytes of every token, by id.
inline py::list list_of(const Vocabulary& vocabulary) {
  py::list tokens;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    tokens.append(py::bytes(vocabulary[id].data(), vocabulary[id].size()));
  }
  return tokens;
}

}  // namespace vocabshift::bindings
