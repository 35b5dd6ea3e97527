// What the binding files share: the register functions and the conversions between Python buffers
// and the core's views.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <functional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "core/stop.h"
#include "core/threads.h"
#include "core/types.h"

namespace vocabshift::bindings {

namespace py = pybind11;

void register_text(py::module_& m);
void register_counting(py::module_& m);
void register_training(py::module_& m);
void register_encode(py::module_& m);
void register_models(py::module_& m);
void register_pieces(py::module_& m);
void register_boundless(py::module_& m);
void register_picky(py::module_& m);
void register_extension(py::module_& m);

// A tick that calls progress(done, total) at most ten times a second, and lets Ctrl-C through.
Tick make_tick(const py::object& progress);

// What a Stoppable of a call from Python asks: whether there was a Ctrl-C, at most ten times a
// second.
std::function<void()> signal_check();

// A long call into the core: other Python threads run meanwhile, and Ctrl-C ends it.
class LongCall {
 public:
  LongCall() : stoppable_(signal_check()) {}

 private:
  py::gil_scoped_release release_;
  Stoppable stoppable_;
};

using IntArray = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

// A contiguous bytes-like object as a view; the caller keeps `info` alive while the view is used.
inline std::string_view view_of(const py::buffer_info& info) {
  if (info.itemsize != 1 || info.ndim != 1 || (info.shape[0] > 1 && info.strides[0] != 1)) {
    throw std::invalid_argument("need a contiguous buffer of bytes");
  }
  return {static_cast<const char*>(info.ptr), static_cast<std::size_t>(info.size)};
}

// The documents data[starts[i]:ends[i]], every offset checked.
inline Documents documents_of(const py::buffer_info& info, const IntArray& starts,
                              const IntArray& ends) {
  const std::string_view text = view_of(info);
  if (starts.ndim() != 1 || ends.ndim() != 1 || starts.size() != ends.size()) {
    throw std::invalid_argument("starts and ends must be two arrays of the same length");
  }
  const auto size = static_cast<std::int64_t>(text.size());
  for (py::ssize_t i = 0; i < starts.size(); ++i) {
    if (starts.data()[i] < 0 || starts.data()[i] > ends.data()[i] || ends.data()[i] > size) {
      throw std::invalid_argument("a document lies outside the data");
    }
  }
  return {text, starts.data(), ends.data(), static_cast<std::size_t>(starts.size())};
}

// Hands a vector to NumPy without copying it.
template <typename T, typename A>
py::array_t<T> to_array(std::vector<T, A>&& values) {
  auto* owned = new std::vector<T, A>(std::move(values));
  py::capsule owner(owned, [](void* p) { delete static_cast<std::vector<T, A>*>(p); });
  return py::array_t<T>(static_cast<py::ssize_t>(owned->size()), owned->data(), owner);
}

}  // namespace vocabshift::bindings
