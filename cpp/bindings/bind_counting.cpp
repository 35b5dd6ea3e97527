#include <pybind11/stl.h>

#include "bindings/calls.h"
#include "bindings/documents.h"
#include "core/word_counts.h"

namespace vocabshift::bindings {

namespace {

void add_documents(WordCounter& self, const py::buffer& data, const IntArray& starts,
                   const IntArray& ends, std::size_t group, bool is_checked) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  const LongCall call;
  if (!is_checked) check_utf8(documents, self.threads());
  self.add(documents, group);
}

// Texts that lie one after the other, each with a count.
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
  const LongCall call;
  self.add_words(counted.documents, counted.counts.data(), group);
}

void add_counted(WordCounter& self, const py::buffer& data, const IntArray& ends,
                 const CountArray& counts, std::size_t group) {
  const Counted counted(data, ends, counts);
  const LongCall call;
  check_utf8(counted.documents, self.threads());
  self.add_counted(counted.documents, counted.counts.data(), group);
}

std::size_t size_of(WordCounter& self, std::size_t group) {
  const LongCall call;
  std::size_t words = 0;
  self.for_each_word_of(group, [&](std::string_view, Count) { ++words; });
  return words;
}

Count occurrences_of(WordCounter& self, std::size_t group) {
  const LongCall call;
  Count sum = 0;
  self.for_each_word_of(group, [&](std::string_view, Count count) { sum += count; });
  return sum;
}

py::list words_of(WordCounter& self, std::size_t group) {
  py::list words;
  self.for_each_word_of(group, [&](std::string_view word, Count count) {
    words.append(py::make_tuple(py::bytes(word.data(), word.size()), count));
  });
  return words;
}

py::list joined_words_of(WordCounter& self, const std::vector<Count>& weights) {
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

// Words of one group that wait until they are a block.
struct WaitingBlock {
  std::string data;
  std::vector<std::int64_t> ends;
  std::vector<Count> counts;
};

void sorted_blocks(WordCounter& self, const py::function& visit, std::size_t block_bytes) {
  std::vector<WaitingBlock> blocks(self.group_count());
  const auto hand_over = [&](std::size_t group) {
    const WaitingBlock block = std::exchange(blocks[group], {});
    py::gil_scoped_acquire acquire;
    visit(group, py::bytes(block.data),
          py::array_t<std::int64_t>(static_cast<py::ssize_t>(block.ends.size()), block.ends.data()),
          py::array_t<Count>(static_cast<py::ssize_t>(block.counts.size()), block.counts.data()));
  };
  const LongCall call;
  self.for_each_sorted_record([&](const WordRecord& record) {
    WaitingBlock& block = blocks[record.group];
    block.data.append(record.word);
    block.ends.push_back(static_cast<std::int64_t>(block.data.size()));
    block.counts.push_back(record.count);
    if (block.data.size() >= block_bytes) hand_over(record.group);
  });
  for (std::size_t group = 0; group < blocks.size(); ++group) {
    if (!blocks[group].ends.empty()) hand_over(group);
  }
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
      .def(py::init([](PreTokenizer pre_tokenizer, std::size_t threads, std::size_t memory_bytes,
                       std::string spill_folder) {
             return WordCounter(std::move(pre_tokenizer), threads,
                                {memory_bytes, std::move(spill_folder)});
           }),
           py::arg("pre_tokenizer"), py::arg("threads") = 1, py::arg("memory_bytes") = 0,
           py::arg("spill_folder") = ".",
           "Tables that would take more than `memory_bytes` (0: no limit) go to nameless files in "
           "`spill_folder`.")
      .def("add", &add_documents, py::arg("data"), py::arg("starts"), py::arg("ends"),
           py::arg("group") = 0, py::arg("is_checked") = false,
           "Count the documents data[starts[i]:ends[i]], UTF-8; is_checked: that they are was "
           "checked already.")
      .def("add_counted", &add_counted, py::arg("data"), py::arg("ends"), py::arg("counts"),
           py::arg("group") = 0,
           "Count the words of each document counts[i] times; documents lie without a gap and end "
           "at ends[i], UTF-8.")
      .def("add_words", &add_words, py::arg("data"), py::arg("ends"), py::arg("counts"),
           py::arg("group") = 0,
           "Add words as they are, counts[i] times; they lie without a gap and end at ends[i].")
      .def("split_words", &WordCounter::split_words, py::arg("inner"), py::call_guard<LongCall>(),
           "A counter of the pieces that `inner` cuts the words into, as often as these.")
      .def_property_readonly("group_count", &WordCounter::group_count)
      .def_property_readonly("memory_bytes", &WordCounter::memory_bytes,
                             "Memory that the words take, without those on disk.")
      .def("sorted_blocks", &sorted_blocks, py::arg("visit"), py::arg("block_bytes") = 1 << 20,
           "Call visit(group, data, ends, counts) until all words were handed over: of each group "
           "in the order of their bytes, in blocks whose data has about `block_bytes`.")
      .def("size", &size_of, py::arg("group"), "Distinct words of a group.")
      .def("occurrences", &occurrences_of, py::arg("group"),
           "Words of a group, each as often as it was counted.")
      .def("words", &words_of, py::arg("group"), "[(word, count)] of a group, in no order.")
      .def("joined_words", &joined_words_of, py::arg("weights"),
           "[(word, weighted count, count)] over all groups, in no order.")
      .def("save", &WordCounter::save, py::arg("path"), py::call_guard<LongCall>(),
           "Write all counts to a file; OSError where the system refuses.")
      .def_static(
          "load",
          [](const std::string& path, std::size_t memory_bytes, std::string spill_folder) {
            return WordCounter::load(path, {memory_bytes, std::move(spill_folder)});
          },
          py::arg("path"), py::arg("memory_bytes") = 0, py::arg("spill_folder") = ".",
          py::call_guard<LongCall>(),
          "A counter with the counts that `save` wrote; ValueError where the file is not "
          "whole.");
}

}  // namespace vocabshift::bindings
