#include <pybind11/stl.h>

#include "bindings/register.h"
#include "core/word_counts.h"

namespace vocabshift::bindings {

namespace {

using CountArray = py::array_t<Count, py::array::c_style | py::array::forcecast>;

void add_documents(WordCounter& self, const py::buffer& data, const IntArray& starts,
                   const IntArray& ends, std::size_t group) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  py::gil_scoped_release release;
  self.add(documents, group);
}

// Texts that lie one behind the other, each with a count.
struct Counted {
  Counted(const py::buffer& data, const IntArray& ends_given, const CountArray& counts_given)
      : info(data.request()), starts(ends_given.size()), ends(ends_given), counts(counts_given) {
    if (ends.ndim() != 1 || counts.ndim() != 1 || ends.size() != counts.size()) {
      throw std::invalid_argument("ends and counts must be two arrays of the same length");
    }
    std::int64_t* begin = starts.mutable_data();
    for (py::ssize_t i = 0; i < ends.size(); ++i) begin[i] = i == 0 ? 0 : ends.data()[i - 1];
    documents = documents_of(info, starts, ends);
  }

  py::buffer_info info;
  IntArray starts, ends;
  CountArray counts;
  Documents documents;
};

void add_words(WordCounter& self, const py::buffer& data, const IntArray& ends,
               const CountArray& counts, std::size_t group) {
  const Counted counted(data, ends, counts);
  py::gil_scoped_release release;
  self.add_words(counted.documents, counted.counts.data(), group);
}

void add_counted(WordCounter& self, const py::buffer& data, const IntArray& ends,
                 const CountArray& counts, std::size_t group) {
  const Counted counted(data, ends, counts);
  py::gil_scoped_release release;
  self.add_counted(counted.documents, counted.counts.data(), group);
}

std::size_t size_of(const WordCounter& self, std::size_t group) {
  py::gil_scoped_release release;
  std::size_t words = 0;
  self.for_each_word_of(group, [&](std::string_view, Count) { ++words; });
  return words;
}

py::list words_of(const WordCounter& self, std::size_t group) {
  py::list words;
  self.for_each_word_of(group, [&](std::string_view word, Count count) {
    words.append(py::make_tuple(py::bytes(word.data(), word.size()), count));
  });
  return words;
}

py::list joined_words_of(const WordCounter& self, const std::vector<Count>& weights) {
  if (weights.size() < self.group_count()) {
    throw std::invalid_argument("every group of words needs a weight");
  }
  py::list words;
  self.for_each_word(
      [&](std::string_view, std::size_t group) { return weights[group]; },
      [&](std::string_view word, Count weighted, Count occurrences) {
        words.append(py::make_tuple(py::bytes(word.data(), word.size()), weighted, occurrences));
      });
  return words;
}

// What the system refuses is an OSError in Python, with its number.
void translate_system_error(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::system_error& refused) {
    const py::object value =
        py::reinterpret_borrow<py::object>(PyExc_OSError)(refused.code().value(), refused.what());
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())), value.ptr());
  }
}

}  // namespace

void register_counting(py::module_& m) {
  py::register_local_exception_translator(&translate_system_error);

  py::class_<WordCounter>(m, "WordCounter", "Threaded counting of pre-tokens, by group.")
      .def(py::init<PreTokenizer, std::size_t>(), py::arg("pre_tokenizer"), py::arg("threads") = 1)
      .def("add", &add_documents, py::arg("data"), py::arg("starts"), py::arg("ends"),
           py::arg("group") = 0, "Count the documents data[starts[i]:ends[i]], valid UTF-8.")
      .def("add_counted", &add_counted, py::arg("data"), py::arg("ends"), py::arg("counts"),
           py::arg("group") = 0,
           "Count the words of each document counts[i] times; documents lie without a gap and end "
           "at ends[i], valid UTF-8.")
      .def("add_words", &add_words, py::arg("data"), py::arg("ends"), py::arg("counts"),
           py::arg("group") = 0,
           "Add words as they are, counts[i] times; they lie without a gap and end at ends[i].")
      .def("split_words", &WordCounter::split_words, py::arg("inner"),
           py::call_guard<py::gil_scoped_release>(),
           "The parts into which a further pre-tokenizer cuts the words, counted as often.")
      .def_property_readonly("group_count", &WordCounter::group_count)
      .def("size", &size_of, py::arg("group"), "Distinct words of a group.")
      .def("words", &words_of, py::arg("group"), "[(word, count)] of a group, in no order.")
      .def("joined_words", &joined_words_of, py::arg("weights"),
           "[(word, weighted count, count)] over all groups, in no order.")
      .def("save", &WordCounter::save, py::arg("path"), py::call_guard<py::gil_scoped_release>(),
           "Write all counts to a file; OSError where the system refuses.")
      .def_static("load", &WordCounter::load, py::arg("path"),
                  py::call_guard<py::gil_scoped_release>(),
                  "A counter with the counts that `save` wrote; ValueError where the file is not "
                  "whole.");
}

}  // namespace vocabshift::bindings
