// Python's str as UTF-8.
//
// Owns what is known of how CPython keeps a str (PEP 393). Where that is not so, or may change
// while another thread looks, and in a build with VOCABSHIFT_PORTABLE_PYTHON, the interpreter is
// asked instead: the same text, with a copy that stays in every str.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bindings/register.h"
#include "core/text_encoder.h"

#if defined(VOCABSHIFT_PORTABLE_PYTHON) || defined(PYPY_VERSION) || defined(Py_LIMITED_API) || \
    defined(Py_GIL_DISABLED)
#define VOCABSHIFT_USES_CPYTHON_INTERNALS 0
#else
#define VOCABSHIFT_USES_CPYTHON_INTERNALS 1
#endif

namespace vocabshift::bindings {

// The UTF-8 bytes of a str; alive as long as the str, which keeps them. Lone surrogates raise
// UnicodeEncodeError.
inline std::string_view utf8_of(py::handle text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (!data) throw py::error_already_set();
  return {data, static_cast<std::size_t>(size)};
}

struct LoneSurrogate : std::invalid_argument {
  explicit LoneSurrogate(py::handle in) : std::invalid_argument("a lone surrogate"), text(in) {}
  py::handle text;
};

// Where a str's characters lie; alive as long as the str, which does not change.
struct StrView {
  // TypeError for what is no str.
  static StrView of(py::handle text);

  const void* data;
  std::size_t length;  // in characters
  int bytes;           // of a character; 0 for UTF-8
};

// The UTF-8 of a str, in `room` or where it lies already; no copy stays in the str. Asks nothing of
// the interpreter. Null data for a lone surrogate.
std::string_view utf8_in(const StrView& text, std::string& room);

// The same with the interpreter's lock, of the str itself. Lone surrogates raise
// UnicodeEncodeError, and what is no str TypeError.
std::string_view utf8_in(py::handle text, std::string& room);

// A list of str for several threads. Each is turned into UTF-8 by the thread that reads it, without
// the interpreter's lock and in memory that the next one uses again: `utf8_of` would do all of them
// one after the other, and every str would keep its own for good.
class StrDocuments : public DocumentSource {
 public:
  explicit StrDocuments(const py::list& texts);  // TypeError for what is no str

  std::size_t count() const override { return texts_.size(); }
  std::size_t size(std::size_t i) const override;  // about
  // Throws LoneSurrogate.
  std::string_view get(std::size_t i, std::string& room) const override;

 private:
  py::tuple held_;  // another thread may change the list meanwhile
  std::vector<StrView> texts_;
};

}  // namespace vocabshift::bindings
