// Python's str as UTF-8.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bindings/register.h"
#include "core/text_encoder.h"

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

// A list of str for several threads. Each is turned into UTF-8 by the thread that reads it, without
// the interpreter's lock and in memory that the next one uses again: `utf8_of` would do all of them
// one after the other, and every str would keep its own for good.
class StrDocuments : public DocumentSource {
 public:
  explicit StrDocuments(const py::list& texts);  // std::exception for what is no str

  std::size_t count() const override { return texts_.size(); }
  std::size_t size(std::size_t i) const override;  // about
  // Throws LoneSurrogate.
  std::string_view get(std::size_t i, std::string& room) const override;

 private:
  struct Text {
    const void* data;
    std::size_t length;  // in characters
    int bytes;           // of a character; 0 for UTF-8
  };
  static Text text_of(PyObject* text);
  py::tuple held_;  // another thread may change the list meanwhile
  std::vector<Text> texts_;
};

}  // namespace vocabshift::bindings
