#include <pybind11/native_enum.h>
#include <pybind11/stl.h>

#include <chrono>

#include "bindings/register.h"
#include "core/superwords.h"
#include "core/train.h"

namespace vocabshift::bindings {

Tick make_tick(const py::object& progress) {
  using Clock = std::chrono::steady_clock;
  auto last = std::make_shared<Clock::time_point>(Clock::now());
  return [progress, last](std::uint64_t done, std::uint64_t total) {
    const auto now = Clock::now();
    if (now - *last < std::chrono::milliseconds(100)) return;
    *last = now;
    py::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!progress.is_none()) progress(done, total);
  };
}

namespace {

py::array_t<std::uint32_t> merges_array(const std::vector<Merge>& merges) {
  py::array_t<std::uint32_t> array({static_cast<py::ssize_t>(merges.size()), py::ssize_t{3}});
  auto view = array.mutable_unchecked<2>();
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto row = static_cast<py::ssize_t>(i);
    view(row, 0) = merges[i].left;
    view(row, 1) = merges[i].right;
    view(row, 2) = merges[i].product;
  }
  return array;
}

void add_documents(WordCounter& self, const py::buffer& data, const IntArray& starts,
                   const IntArray& ends, std::size_t group) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  py::gil_scoped_release release;
  self.add(documents, group);
}

py::list words_of(const WordCounter& self, std::size_t group) {
  py::list words;
  self.table(group).for_each([&](std::string_view word, Count count) {
    words.append(py::make_tuple(py::bytes(word.data(), word.size()), count));
  });
  return words;
}

Trained train_bpe_of(WordCounter& counter, const std::vector<Count>& weights,
                     std::size_t vocab_size, Count min_frequency, std::size_t max_token_bytes,
                     const std::set<std::string, std::less<>>& forbidden,
                     const py::object& progress, std::size_t threads,
                     std::size_t chunks_per_thread) {
  const Tick tick = make_tick(progress);
  py::gil_scoped_release release;
  return train_bpe(counter, weights, {vocab_size, min_frequency, 1, threads, chunks_per_thread},
                   {max_token_bytes, 0, forbidden}, tick);
}

// Keeps the encoder alive as long as the stage that refers to it.
class OwningSuperwordStage {
 public:
  OwningSuperwordStage(py::object encoder, const PreTokenizer& pre_tokenizer, std::size_t threads)
      : owner_(std::move(encoder)), stage_(owner_.cast<const Encoder&>(), pre_tokenizer, threads) {}
  SuperwordStage& get() { return stage_; }

 private:
  py::object owner_;
  SuperwordStage stage_;
};

void add_to_stage(OwningSuperwordStage& self, const py::buffer& data, const IntArray& starts,
                  const IntArray& ends, std::size_t group) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  py::gil_scoped_release release;
  self.get().add(documents, group);
}

Trained train_superwords(OwningSuperwordStage& self, const std::vector<py::bytes>& tokens,
                         const std::vector<Count>& weights, std::size_t vocab_size,
                         Count min_frequency, std::size_t max_token_bytes, std::size_t max_words,
                         const std::set<std::string, std::less<>>& forbidden,
                         const py::object& progress) {
  Vocabulary vocabulary;
  for (const py::bytes& token : tokens) vocabulary.add(static_cast<std::string_view>(token));
  const Tick tick = make_tick(progress);
  py::gil_scoped_release release;
  return self.get().train(vocabulary, weights, {vocab_size, min_frequency, 1},
                          {max_token_bytes, max_words, forbidden}, tick);
}

}  // namespace

void register_training(py::module_& m) {
  py::native_enum<Stopped>(m, "Stopped", "enum.Enum", "Why the merge loop stopped.")
      .value("VOCAB_SIZE", Stopped::kVocabSize)
      .value("MIN_FREQUENCY", Stopped::kMinFrequency)
      .value("NO_PAIR_LEFT", Stopped::kNoPairLeft)
      .value("FLOOR", Stopped::kFloor)
      .finalize();

  py::class_<WordCounter>(m, "WordCounter", "Threaded counting of pre-tokens.")
      .def(py::init<PreTokenizer, std::size_t>(), py::arg("pre_tokenizer"), py::arg("threads") = 1)
      .def("add", &add_documents, py::arg("data"), py::arg("starts"), py::arg("ends"),
           py::arg("group") = 0, "Count the documents data[starts[i]:ends[i]], valid UTF-8.")
      .def("finish", &WordCounter::finish, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("group_count", &WordCounter::group_count)
      .def(
          "size",
          [](const WordCounter& self, std::size_t group) { return self.table(group).size(); },
          py::arg("group"), "Distinct words of a group, after finish().")
      .def("words", &words_of, py::arg("group"), "[(word, count)] of a group, in no order.");

  py::class_<Trained>(m, "Trained", "The merges that training found.")
      .def_property_readonly(
          "merges", [](const Trained& self) { return merges_array(self.merges); },
          "(n_merges, 3) uint32: left id, right id, product id.")
      .def_property_readonly(
          "counts",
          [](const Trained& self) {
            std::vector<Count> counts;
            counts.reserve(self.merges.size());
            for (const Merge& merge : self.merges) counts.push_back(merge.count);
            return to_array(std::move(counts));
          },
          "(n_merges,) uint64: weighted count of each pair when it was merged.")
      .def_property_readonly(
          "tokens",
          [](const Trained& self) {
            py::list tokens;
            for (TokenId id = 0; id < self.vocabulary.size(); ++id) {
              const std::string_view bytes = self.vocabulary[id];
              tokens.append(py::bytes(bytes.data(), bytes.size()));
            }
            return tokens;
          },
          "Bytes of every token, by id.")
      .def_readonly("stopped", &Trained::stopped)
      .def_readonly("training_tokens", &Trained::tokens)
      .def_readonly("peak_memory_bytes", &Trained::peak_memory_bytes);

  py::class_<OwningSuperwordStage>(m, "SuperwordStage",
                                   "The superword stage: pieces encoded by stage 1, then merged.")
      .def(py::init<py::object, const PreTokenizer&, std::size_t>(), py::arg("encoder"),
           py::arg("pre_tokenizer"), py::arg("threads") = 1)
      .def("add", &add_to_stage, py::arg("data"), py::arg("starts"), py::arg("ends"),
           py::arg("group") = 0, "Encode the documents data[starts[i]:ends[i]], valid UTF-8.")
      .def_property_readonly(
          "tokens", [](OwningSuperwordStage& self) { return self.get().tokens(); },
          "Tokens of all documents before the first superword merge.")
      .def("train", &train_superwords, py::arg("tokens"), py::arg("weights"), py::arg("vocab_size"),
           py::arg("min_frequency") = 1, py::arg("max_token_bytes") = 0, py::arg("max_words") = 0,
           py::arg("forbidden") = std::set<std::string, std::less<>>(),
           py::arg("progress") = py::none(),
           "Continue the vocabulary `tokens` (bytes by id) with superwords.");

  m.def("train_bpe", &train_bpe_of, py::arg("counter"), py::arg("weights"), py::arg("vocab_size"),
        py::arg("min_frequency") = 1, py::arg("max_token_bytes") = 0,
        py::arg("forbidden") = std::set<std::string, std::less<>>(),
        py::arg("progress") = py::none(), py::arg("threads") = 1,
        py::arg("chunks_per_thread") = Limits{}.chunks_per_thread,
        "Byte-level BPE over counted words, which are taken out of the counter; "
        "`progress(done, total)` is called now and then. No result depends on `threads`; "
        "`chunks_per_thread` is the number of word parts that are worth a thread.");
}

}  // namespace vocabshift::bindings
