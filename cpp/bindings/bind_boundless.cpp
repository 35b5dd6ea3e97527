#include <pybind11/stl.h>

#include "bindings/register.h"
#include "core/boundless_segmentation.h"
#include "core/boundless_stage.h"
#include "core/merge_stack.h"
#include "core/script_words.h"
#include "core/token_count.h"
#include "core/unicode.h"

namespace vocabshift::bindings {

namespace {

using TokenArray = py::array_t<std::uint32_t, py::array::c_style | py::array::forcecast>;
using CountArray = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;
using Forbidden = std::set<std::string, std::less<>>;

std::vector<Merge> merges_of(const TokenArray& merges, std::size_t tokens) {
  if (merges.ndim() != 2 || merges.shape(1) != 3) {
    throw std::invalid_argument("merges must have shape (n, 3)");
  }
  const auto view = merges.unchecked<2>();
  std::vector<Merge> result;
  for (py::ssize_t i = 0; i < view.shape(0); ++i) {
    for (py::ssize_t j = 0; j < 3; ++j) {
      if (view(i, j) >= tokens) throw std::invalid_argument("a merge names an unknown id");
    }
    result.push_back({view(i, 0), view(i, 1), view(i, 2), 0});
  }
  return result;
}

py::array_t<std::uint32_t> array_of(const std::vector<Merge>& merges) {
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

py::list list_of(const Vocabulary& vocabulary) {
  py::list tokens;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    tokens.append(py::bytes(vocabulary[id].data(), vocabulary[id].size()));
  }
  return tokens;
}

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
  for (const py::bytes& token : tokens) learned.tokens.add(static_cast<std::string_view>(token));
  learned.merges = merges_of(merges, tokens.size());
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
      words, exported, merges_of(supermerges, lengths.size()), may_join, lengths,
      WordsInPieces(pieces, word_pattern, threads));
}

void add_to_segmentation(BoundlessSegmentation& self, const py::buffer& data,
                         const IntArray& starts, const IntArray& ends,
                         const std::optional<IntArray>& piece_ends,
                         const std::optional<IntArray>& word_ends) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  const GivenCuts cuts = cuts_of(piece_ends, word_ends);
  const LongCall call;
  self.add(documents, cuts);
}

void register_stage(py::module_& m) {
  py::class_<BoundlessTrained>(m, "BoundlessTrained", "Word merges and supermerges of one run.")
      .def_property_readonly(
          "merges", [](const BoundlessTrained& self) { return array_of(self.merges); },
          "(n_merges, 3) uint32: left id, right id, product id; both kinds, as they were taken.")
      .def_property_readonly(
          "counts",
          [](const BoundlessTrained& self) {
            std::vector<Count> counts;
            for (const Merge& merge : self.merges) counts.push_back(merge.count);
            return to_array(std::move(counts));
          },
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
      .def_readonly("tokens_saved", &BoundlessTrained::tokens_saved,
                    "Tokens that supermerges have saved, every occurrence counted once.")
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
           "First pass: the documents data[starts[i]:ends[i]], valid UTF-8.")
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
           "Segment the documents data[starts[i]:ends[i]] both ways, valid UTF-8.")
      .def_property_readonly("boundless_tokens",
                             [](const Segmentation& s) { return s.counts().boundless_tokens; })
      .def_property_readonly("exported_tokens",
                             [](const Segmentation& s) { return s.counts().exported_tokens; })
      .def_property_readonly("documents",
                             [](const Segmentation& s) { return s.counts().documents; })
      .def_property_readonly("documents_differing",
                             [](const Segmentation& s) { return s.counts().documents_differing; });
}

py::tuple words_by_script_of(const PreTokenizer& pre_tokenizer, const py::buffer& data,
                             const IntArray& starts, const IntArray& ends, std::size_t threads) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  ScriptWords words;
  {
    const LongCall call;
    words = words_by_script(pre_tokenizer, documents, threads);
  }
  return py::make_tuple(to_array(std::move(words.starts)), to_array(std::move(words.ends)),
                        to_array(std::move(words.scripts)));
}

Count count_tokens_of(const Encoder& encoder, const PreTokenizer& pre_tokenizer,
                      const py::buffer& data, const IntArray& starts, const IntArray& ends,
                      std::size_t threads) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  const LongCall call;
  return count_tokens(encoder, pre_tokenizer, documents, threads);
}

}  // namespace

void register_boundless(py::module_& m) {
  register_stage(m);
  register_segmentation(m);

  py::class_<MergeStack>(m, "MergeStack", "A merge list in which every token stays in reach.")
      .def(py::init<std::size_t>(), py::arg("max_tokens"))
      .def(
          "push",
          [](MergeStack& self, const py::bytes& token) {
            const Stoppable stoppable(signal_check());
            return self.push(static_cast<std::string_view>(token));
          },
          py::arg("token"),
          "Into how many tokens the merges so far cut it: 1, known; 2, taken now; more, left out.")
      .def_property_readonly(
          "parts",
          [](const MergeStack& self) {
            py::list parts;
            for (const TokenId id : self.parts()) {
              const std::string_view bytes = self.vocabulary()[id];
              parts.append(py::bytes(bytes.data(), bytes.size()));
            }
            return parts;
          },
          "The tokens that the last push was cut into.")
      .def_property_readonly(
          "size", [](const MergeStack& self) { return self.vocabulary().size(); },
          "Tokens so far, the 256 bytes included.")
      .def_property_readonly(
          "tokens", [](const MergeStack& self) { return list_of(self.vocabulary()); },
          "Bytes of every token, by id.")
      .def_property_readonly(
          "merges", [](const MergeStack& self) { return array_of(self.merges()); },
          "(n_merges, 3) uint32: left id, right id, product id.");

  m.def("words_by_script", &words_by_script_of, py::arg("pre_tokenizer"), py::arg("data"),
        py::arg("starts"), py::arg("ends"), py::arg("threads") = 1,
        "Words of the documents: starts and ends (int64) and numbers (uint8) of their scripts.");
  m.def(
      "script_names",
      [] {
        py::list names;
        for (std::size_t i = 0; i < tables::kScriptCount; ++i) {
          names.append(py::str(tables::kScriptNames[i]));
        }
        return names;
      },
      "Names of the scripts by their number.");
  m.def("count_tokens", &count_tokens_of, py::arg("encoder"), py::arg("pre_tokenizer"),
        py::arg("data"), py::arg("starts"), py::arg("ends"), py::arg("threads") = 1,
        "Tokens of the documents data[starts[i]:ends[i]], valid UTF-8.");
}

}  // namespace vocabshift::bindings
