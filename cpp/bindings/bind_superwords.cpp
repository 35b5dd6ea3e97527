// The superword stage: on one machine, and as passes over parts of the text.
#include <pybind11/stl.h>

#include "bindings/calls.h"
#include "bindings/documents.h"
#include "core/superword_passes.h"
#include "core/superwords.h"

namespace vocabshift::bindings {

namespace {

using Sentences = std::optional<SentenceWeights>;
using Counts = py::array_t<Count, py::array::c_style>;

SuperwordText text_of(const Encoder& encoder, const std::vector<py::bytes>& tokens,
                      const PreTokenizer& pre_tokenizer, std::size_t threads,
                      const Sentences& sentences, bool counted = false) {
  return SuperwordText(encoder, vocabulary_of(tokens), pre_tokenizer,
                       {threads, sentences, counted});
}

SuperwordStage make_stage(const Encoder& encoder, const std::vector<py::bytes>& tokens,
                          const PreTokenizer& pre_tokenizer, std::size_t threads,
                          const std::string& file, const Sentences& sentences, bool counted,
                          bool resume) {
  SuperwordText text = text_of(encoder, tokens, pre_tokenizer, threads, sentences, counted);
  if (resume) return {std::move(text), TokenStore::open(file)};
  return {std::move(text), file.empty() ? TokenStore() : TokenStore(file)};
}

void add_to_stage(SuperwordStage& self, const py::buffer& data, const IntArray& starts,
                  const IntArray& ends, std::size_t group, const std::optional<Counts>& counts) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  if (counts &&
      (counts->ndim() != 1 || static_cast<std::size_t>(counts->size()) != documents.count)) {
    throw std::invalid_argument("every document needs one count");
  }
  const LongCall call;
  check_utf8(documents, self.threads());
  self.add(documents, counts ? counts->data() : nullptr, group);
}

Trained train_stage(SuperwordStage& self, const std::vector<Count>& weights, std::size_t vocab_size,
                    Count min_frequency, const MergeRule& rule, std::size_t memory_bytes,
                    const py::object& progress) {
  const Tick tick = make_tick(progress);
  const LongCall call;
  return self.train(weights, Limits{vocab_size, min_frequency}, rule, memory_bytes, tick);
}

BorderPass make_border_pass(const Encoder& encoder, const std::vector<py::bytes>& tokens,
                            const PreTokenizer& pre_tokenizer, std::vector<Count> weights,
                            std::size_t cells, std::size_t threads, const Sentences& sentences) {
  return {text_of(encoder, tokens, pre_tokenizer, threads, sentences), std::move(weights), cells};
}

void add_borders(BorderPass& self, const py::buffer& data, const IntArray& starts,
                 const IntArray& ends, std::size_t group) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  const LongCall call;
  check_utf8(documents, self.threads());
  self.add(documents, group);
}

RunPass make_run_pass(const Encoder& encoder, const std::vector<py::bytes>& tokens,
                      const PreTokenizer& pre_tokenizer, const py::bytes& is_frequent,
                      const MergeRule& rule, std::size_t threads, const Sentences& sentences) {
  const auto bits = static_cast<std::string_view>(is_frequent);
  const std::size_t cells = bits.size() * 8;
  if (!std::has_single_bit(cells)) {
    throw std::invalid_argument("the frequent borders are a power of two of bits, 8 a byte");
  }
  SuperwordText text = text_of(encoder, tokens, pre_tokenizer, threads, sentences);
  const Bits frequent(cells, [&](std::size_t i) { return bits[i / 8] >> i % 8 & 1; });
  RunCutter cutter(text.vocabulary(), rule, frequent, cells);
  return {std::move(text), std::move(cutter)};
}

void add_runs(RunPass& self, const py::buffer& data, const IntArray& starts, const IntArray& ends,
              WordCounter& counter, std::size_t group) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  const LongCall call;
  check_utf8(documents, self.threads());
  self.add(documents, group, counter);
}

void add_counted_runs(CountedRuns& self, const py::buffer& data, const IntArray& ends,
                      const Counts& counts, std::size_t group) {
  if (ends.ndim() != 1 || counts.ndim() != 1 || ends.size() != counts.size()) {
    throw std::invalid_argument("ends and counts must be two arrays of the same length");
  }
  const py::buffer_info info = data.request();
  const std::string_view runs = view_of(info);
  const LongCall call;
  self.add(runs, {ends.data(), static_cast<std::size_t>(ends.size())}, counts.data(), group);
}

Trained train_counted(const CountedRuns& self, const std::vector<Count>& weights,
                      std::size_t vocab_size, Count min_frequency, const MergeRule& rule,
                      Count bound, Count tokens, std::size_t threads, const py::object& progress) {
  const Tick tick = make_tick(progress);
  const LongCall call;
  Limits limits{vocab_size, min_frequency};
  limits.threads = threads;
  return self.train(weights, rule, limits, bound, tokens, tick);
}

void register_passes(py::module_& m) {
  py::class_<BorderPass>(m, "BorderPass", "Counts the borders between neighbouring tokens.")
      .def(py::init(&make_border_pass), py::keep_alive<1, 2>(), py::arg("encoder"),
           py::arg("tokens"), py::arg("pre_tokenizer"), py::arg("weights"), py::arg("cells"),
           py::arg("threads") = 1, py::arg("sentences") = py::none(),
           "A sketch of `cells` counters, a power of two from 2^10 to 2^26; documents of group g "
           "count weights[g] times.")
      .def("add", &add_borders, py::arg("data"), py::arg("starts"), py::arg("ends"),
           py::arg("group") = 0, "Encode and count the documents data[starts[i]:ends[i]], UTF-8.")
      .def_property_readonly(
          "counts",
          [](const py::object& self) {
            const auto& counts = self.cast<const BorderPass&>().counts();
            py::array_t<Count> view(static_cast<py::ssize_t>(counts.size()), counts.data(), self);
            view.attr("flags").attr("writeable") = false;
            return view;
          },
          "(cells,) uint64: a view that may not be written to, and that later documents change.");

  py::class_<RunPass>(m, "RunPass", "Counts the runs of tokens between rare borders.")
      .def(py::init(&make_run_pass), py::keep_alive<1, 2>(), py::arg("encoder"), py::arg("tokens"),
           py::arg("pre_tokenizer"), py::arg("is_frequent"), py::arg("rule"),
           py::arg("threads") = 1, py::arg("sentences") = py::none(),
           "`is_frequent`: a bit for each cell of the sketch, from the lowest bit of each byte; "
           "tokens with a terminal of `rule` are in no run.")
      .def("add", &add_runs, py::arg("data"), py::arg("starts"), py::arg("ends"),
           py::arg("counter"), py::arg("group") = 0,
           "Encode the documents data[starts[i]:ends[i]], UTF-8, and add their runs to `counter`.")
      .def_property_readonly("tokens", &RunPass::tokens, "Tokens of all documents so far.");

  py::class_<CountedRuns>(m, "CountedRuns", "Counted runs of tokens, to be trained on.")
      .def(py::init([](const std::vector<py::bytes>& tokens, std::size_t groups, bool weighted) {
             return CountedRuns(vocabulary_of(tokens), groups, weighted);
           }),
           py::arg("tokens"), py::arg("groups"), py::arg("weighted") = false,
           "`weighted`: of every run there is a second one that ends with \"w\", with its weight.")
      .def("add", &add_counted_runs, py::arg("data"), py::arg("ends"), py::arg("counts"),
           py::arg("group") = 0,
           "Add runs, which lie without a gap and end at ends[i]; ValueError for what is none.")
      .def_property_readonly("memory_bytes", &CountedRuns::memory_bytes)
      .def("train", &train_counted, py::arg("weights"), py::arg("vocab_size"),
           py::arg("min_frequency") = 1, py::arg("rule") = MergeRule(), py::kw_only(),
           py::arg("bound"), py::arg("tokens"), py::arg("threads") = 1,
           py::arg("progress") = py::none(),
           "Continue the vocabulary with superwords; `bound` and `tokens` are those of the text "
           "that was cut. Stopped.FLOOR: the bound was too high.");

  m.def(
      "guess_bound",
      [](const Counts& counts, std::size_t wanted) {
        return guess_bound({counts.data(), static_cast<std::size_t>(counts.size())}, wanted);
      },
      py::arg("counts"), py::arg("wanted"),
      "The bound to try first, by the counters of a sketch and the merges wanted.");
  m.def("lower_bound", &lower_bound, py::arg("bound"), py::arg("found"), py::arg("wanted"),
        "The bound to try after one that left `found` of the merges wanted.");
}

}  // namespace

void register_superwords(py::module_& m) {
  py::class_<SuperwordStage>(m, "SuperwordStage",
                             "The superword stage: pieces encoded by stage 1, then merged.")
      .def(py::init(&make_stage), py::keep_alive<1, 2>(), py::arg("encoder"), py::arg("tokens"),
           py::arg("pre_tokenizer"), py::arg("threads") = 1, py::kw_only(), py::arg("file") = "",
           py::arg("sentences") = py::none(), py::arg("counted") = false, py::arg("resume") = false)
      .def("add", &add_to_stage, py::arg("data"), py::arg("starts"), py::arg("ends"),
           py::arg("group") = 0, py::arg("counts") = py::none(),
           "Encode the documents data[starts[i]:ends[i]], UTF-8.")
      .def("finish", &SuperwordStage::finish, "Nothing may be added afterwards; ends the file.")
      .def_property_readonly("tokens", &SuperwordStage::tokens,
                             "Tokens of all documents before the first superword merge.")
      .def("train", &train_stage, py::arg("weights"), py::arg("vocab_size"),
           py::arg("min_frequency") = 1, py::arg("rule") = MergeRule(), py::arg("memory_bytes") = 0,
           py::arg("progress") = py::none(), "Continue the vocabulary with superwords.");
  register_passes(m);
}

}  // namespace vocabshift::bindings
