#include <pybind11/stl.h>

#include <memory>
#include <optional>

#include "bindings/arrays.h"
#include "bindings/calls.h"
#include "core/picky_train.h"

namespace vocabshift::bindings {

namespace {

// A finished run; the words stay, as it left them.
struct PickyTrained {
  std::unique_ptr<PickyLoop> loop;
  Stopped stopped;
};

PickyTrained train(WordCounter& counter, const std::vector<std::pair<Count, std::uint32_t>>& groups,
                   std::size_t vocab_size, Count min_frequency, const MergeRule& rule,
                   double threshold, const std::optional<PairScore>& overlap,
                   const py::object& progress) {
  PairScore score = overlap.value_or(PairScore());
  const Tick tick = make_tick(progress);
  std::vector<GroupWeight> weights;
  for (const auto& [weight, language] : groups) {
    if (language >= score.languages()) throw std::invalid_argument("no such language");
    weights.push_back({weight, language});
  }
  const LongCall call;
  PickyTrained trained{std::make_unique<PickyLoop>(std::move(score), rule, threshold), {}};
  add_words(*trained.loop, counter, weights);
  trained.stopped = trained.loop->run(std::max<std::size_t>(vocab_size, 256), min_frequency, tick);
  return trained;
}

}  // namespace

void register_picky(py::module_& m) {
  py::class_<PairScore>(m, "PairScore", "OBPE's score of a pair.")
      .def(py::init<std::vector<bool>, double, double>(), py::arg("is_high"), py::arg("alpha"),
           py::arg("power"), "is_high: by language.")
      .def_property_readonly("languages", &PairScore::languages);

  py::class_<PickyComparison>(
      m, "PickyComparison", "Counted words by events and by a merge list, as often as they occur.")
      .def_readonly("words", &PickyComparison::words)
      .def_readonly("words_differing", &PickyComparison::words_differing)
      .def_readonly("replayed_tokens", &PickyComparison::replayed_tokens)
      .def_readonly("exported_tokens", &PickyComparison::exported_tokens)
      .def_readonly("tokens_differing", &PickyComparison::tokens_differing);

  py::class_<PickyTrained>(m, "PickyTrained", "Merges and removals, and the words they leave.")
      .def_property_readonly(
          "events", [](const PickyTrained& self) { return rows_of(self.loop->events()); },
          "(n_events, 3) uint32: left id, right id, product id of a merge; the "
          "token and twice 2^32 - 1 of a removal.")
      .def_property_readonly(
          "counts",
          [](const PickyTrained& self) {
            return column_of(self.loop->events(), &PickyEvent::count);
          },
          "(n_events,) uint64: weighted, merges made or occurrences split.")
      .def_property_readonly(
          "parts",
          [](const PickyTrained& self) {
            std::vector<std::vector<TokenId>> parts;
            for (const PickyEvent& event : self.loop->events()) {
              if (event.right == kNoToken) parts.push_back(event.parts);
            }
            return parts;
          },
          "Of every removal, in order, what the token fell into.")
      .def_property_readonly(
          "tokens", [](const PickyTrained& self) { return list_of(self.loop->vocabulary()); },
          "Bytes of every token, by id, those that were removed included.")
      .def_property_readonly(
          "present", [](const PickyTrained& self) { return self.loop->present(); },
          "By id, whether the token was kept.")
      .def_readonly("stopped", &PickyTrained::stopped)
      .def_property_readonly(
          "replayed_tokens",
          [](const PickyTrained& self) {
            const LongCall call;
            return count_tokens(*self.loop);
          },
          "Tokens of all counted words by events alone.")
      .def_property_readonly(
          "peak_memory_bytes",
          [](const PickyTrained& self) { return self.loop->peak_memory_bytes(); })
      .def(
          "compare",
          [](const PickyTrained& self, const Encoder& exported,
             const std::vector<std::uint32_t>& lengths) {
            const LongCall call;
            return compare_segmentations(*self.loop, exported, lengths);
          },
          py::arg("exported"), py::arg("lengths"),
          "The words as events leave them beside an encoder's segmentation; lengths: bytes of its "
          "tokens, by id.");

  m.def("train_picky", &train, py::arg("counter"), py::arg("groups"), py::arg("vocab_size"),
        py::arg("min_frequency") = 1, py::arg("rule") = MergeRule(), py::kw_only(),
        py::arg("threshold") = 1.0, py::arg("score") = py::none(), py::arg("progress") = py::none(),
        "BPE with removals (threshold below 1) or by another score, over counted words, which are "
        "taken out of the counter; groups: weight and language of each group of documents.");
}

}  // namespace vocabshift::bindings
