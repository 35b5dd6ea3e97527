#include <pybind11/stl.h>

#include "bindings/calls.h"
#include "bindings/documents.h"
#include "core/boundless_segmentation.h"
#include "core/boundless_stage.h"

namespace vocabshift::bindings {

namespace {

using Forbidden = std::set<std::string, std::less<>>;

GivenCuts cuts_of(const std::optional<IntArray>& piece_ends,
                  const std::optional<IntArray>& word_ends) {
  if (piece_ends.has_value() != word_ends.has_value()) {
    throw std::invalid_argument("give piece_ends and word_ends, or neither");
  }
  if (!piece_ends) return {};
  return {{piece_ends->data(), static_cast<std::size_t>(piece_ends->size())},
          {word_ends->data(), static_cast<std::size_t>(word_ends->size())}};
}

std::unique_ptr<BoundlessStage> make_stage(const std::vector<py::bytes>& tokens,
                                           const TokenArray& merges, const CountArray& counts,
                                           const std::vector<bool>& may_join,
                                           const PreTokenizer& pieces, const PreTokenizer& words,
                                           const std::vector<Count>& weights,
                                           std::size_t vocab_size, Count min_frequency,
                                           std::size_t expected_words, std::size_t threads) {
  BoundlessStage::Words learned;
  learned.tokens = vocabulary_of(tokens);
  learned.merges = merges_of<Merge>(merges, [&](TokenId id) { return id < tokens.size(); });
  if (tokens.size() != learned.merges.size() + 256) {
    throw std::invalid_argument("tokens must be the 256 bytes and one for every merge");
  }
  if (counts.ndim() != 1 || static_cast<std::size_t>(counts.size()) != learned.merges.size()) {
    throw std::invalid_argument("every merge needs a count");
  }
  for (std::size_t i = 0; i < learned.merges.size(); ++i) {
    Merge& merge = learned.merges[i];
    if (merge.product != 256 + i || merge.left >= merge.product || merge.right >= merge.product) {
      throw std::invalid_argument("the product of merge i must be token 256 + i, of earlier ones");
    }
    merge.count = counts.data()[i];
  }
  learned.may_join = may_join;
  return std::make_unique<BoundlessStage>(std::move(learned), WordsInPieces(pieces, words, threads),
                                          weights, vocab_size, min_frequency, expected_words);
}

template <auto Method>
void add_documents(BoundlessStage& self, const py::buffer& data, const IntArray& starts,
                   const IntArray& ends, std::size_t group,
                   const std::optional<IntArray>& piece_ends,
                   const std::optional<IntArray>& word_ends) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  const GivenCuts cuts = cuts_of(piece_ends, word_ends);
  const LongCall call;
  check_utf8(documents, self.threads());
  (self.*Method)(documents, cuts, group);
}

BoundlessTrained train(BoundlessStage& self, std::size_t max_token_bytes, std::size_t max_words,
                       const Forbidden& forbidden, const py::object& progress) {
  const Tick tick = make_tick(progress);
  const LongCall call;
  return self.train({max_token_bytes, max_words, forbidden}, tick);
}

std::unique_ptr<BoundlessSegmentation> make_segmentation(
    const Encoder& words, const Encoder& exported, const TokenArray& supermerges,
    const std::vector<bool>& may_join, const std::vector<std::uint32_t>& lengths,
    const PreTokenizer& pieces, const PreTokenizer& word_pattern, std::size_t threads) {
  return std::make_unique<BoundlessSegmentation>(
      words, exported,
      merges_of<Merge>(supermerges, [&](TokenId id) { return id < lengths.size(); }), may_join,
      lengths, WordsInPieces(pieces, word_pattern, threads));
}

void add_to_segmentation(BoundlessSegmentation& self, const py::buffer& data,
                         const IntArray& starts, const IntArray& ends,
                         const std::optional<IntArray>& piece_ends,
                         const std::optional<IntArray>& word_ends) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  const GivenCuts cuts = cuts_of(piece_ends, word_ends);
  const LongCall call;
  check_utf8(documents, self.threads());
  self.add(documents, cuts);
}

void register_stage(py::module_& m) {
  py::class_<BoundlessTrained>(m, "BoundlessTrained", "Word merges and supermerges of one run.")
      .def_property_readonly(
          "merges", [](const BoundlessTrained& self) { return rows_of(self.merges); },
          "(n_merges, 3) uint32: left id, right id, product id; both kinds, as they were taken.")
      .def_property_readonly(
          "counts",
          [](const BoundlessTrained& self) { return column_of(self.merges, &Merge::count); },
          "(n_merges,) uint64: weighted count of each pair when it was merged.")
      .def_property_readonly(
          "is_supermerge",
          [](const BoundlessTrained& self) {
            return py::array_t<bool>(py::cast(self.is_supermerge));
          },
          "(n_merges,) bool.")
      .def_property_readonly(
          "tokens", [](const BoundlessTrained& self) { return list_of(self.vocabulary); },
          "Bytes of every token, by id.")
      .def_readonly("stopped", &BoundlessTrained::stopped)
      .def_readonly("peak_memory_bytes", &BoundlessTrained::peak_memory_bytes);

  py::class_<BoundlessStage>(m, "BoundlessStage",
                             "Supermerges of whole words, competing with word merges.")
      .def(py::init(&make_stage), py::arg("tokens"), py::arg("merges"), py::arg("counts"),
           py::arg("may_join"), py::arg("pieces"), py::arg("words"), py::arg("weights"),
           py::arg("vocab_size"), py::arg("min_frequency") = 1, py::arg("expected_words") = 0,
           py::arg("threads") = 1)
      .def("count_borders", &add_documents<&BoundlessStage::count_borders>, py::arg("data"),
           py::arg("starts"), py::arg("ends"), py::arg("group") = 0,
           py::arg("piece_ends") = py::none(), py::arg("word_ends") = py::none(),
           "First pass: the documents data[starts[i]:ends[i]], UTF-8.")
      .def("count_runs", &add_documents<&BoundlessStage::count_runs>, py::arg("data"),
           py::arg("starts"), py::arg("ends"), py::arg("group") = 0,
           py::arg("piece_ends") = py::none(), py::arg("word_ends") = py::none(),
           "Second pass over the same documents.")
      .def_property_readonly("floor", &BoundlessStage::floor, "No accepted merge counts less.")
      .def("train", &train, py::arg("max_token_bytes") = 0, py::arg("max_words") = 0,
           py::arg("forbidden") = Forbidden(), py::arg("progress") = py::none(),
           "Merge; the runs are taken out.");
}

void register_segmentation(py::module_& m) {
  using Segmentation = BoundlessSegmentation;
  py::class_<Segmentation>(m, "BoundlessSegmentation",
                           "BoundlessBPE's own segmentation beside that of the exported tokenizer.")
      .def(py::init(&make_segmentation), py::arg("words"), py::arg("exported"),
           py::arg("supermerges"), py::arg("may_join"), py::arg("lengths"), py::arg("pieces"),
           py::arg("word_pattern"), py::arg("threads") = 1, py::keep_alive<1, 2>(),
           py::keep_alive<1, 3>())
      .def("add", &add_to_segmentation, py::arg("data"), py::arg("starts"), py::arg("ends"),
           py::arg("piece_ends") = py::none(), py::arg("word_ends") = py::none(),
           "Segment the documents data[starts[i]:ends[i]] both ways, UTF-8.")
      .def_property_readonly("boundless_tokens",
                             [](const Segmentation& s) { return s.counts().boundless_tokens; })
      .def_property_readonly("exported_tokens",
                             [](const Segmentation& s) { return s.counts().exported_tokens; })
      .def_property_readonly("documents",
                             [](const Segmentation& s) { return s.counts().documents; })
      .def_property_readonly("documents_differing",
                             [](const Segmentation& s) { return s.counts().documents_differing; });
}

}  // namespace

void register_boundless(py::module_& m) {
  register_stage(m);
  register_segmentation(m);
}

}  // namespace vocabshift::bindings
