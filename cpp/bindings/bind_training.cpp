#include <pybind11/native_enum.h>
#include <pybind11/stl.h>

#include "bindings/arrays.h"
#include "bindings/calls.h"
#include "bindings/texts.h"
#include "core/train.h"

namespace vocabshift::bindings {

namespace {

std::set<char32_t> as_set(const std::u32string& characters) {
  return {characters.begin(), characters.end()};
}

MergeRule make_rule(std::size_t max_token_bytes, std::size_t max_words,
                    std::set<std::string, std::less<>> forbidden, const std::u32string& terminals,
                    bool whole_characters, bool whole_first, const std::u32string& conjoiners,
                    const std::optional<PieceRule>& pieces) {
  return {max_token_bytes,  max_words,   std::move(forbidden), as_set(terminals),
          whole_characters, whole_first, as_set(conjoiners),   pieces};
}

Trained train_bpe_of(WordCounter& counter, const WordWeights& weights, std::size_t vocab_size,
                     Count min_frequency, const MergeRule& rule, const Encoder* encoder,
                     const std::vector<py::bytes>& tokens, std::size_t memory_bytes,
                     std::size_t threads, std::size_t chunks_per_thread, TieBreak tie_break,
                     bool keep_words, const Parity* parity, const py::object& progress) {
  const Tick tick = make_tick(progress);
  std::optional<Start> start;
  if (encoder) start = Start{encoder, vocabulary_of(tokens), Duplicates::kReuseId};
  const LongCall call;
  Limits limits{vocab_size, min_frequency};
  limits.threads = threads;
  limits.chunks_per_thread = chunks_per_thread;
  limits.tie_break = tie_break;
  return train_bpe(counter, weights, limits, rule, std::move(start), memory_bytes, tick, keep_words,
                   parity);
}

void register_rules(py::module_& m) {
  py::class_<MergeRule>(m, "MergeRule", "Which products may never be made.")
      .def(py::init(&make_rule), py::kw_only(), py::arg("max_token_bytes") = 0,
           py::arg("max_words") = 0, py::arg("forbidden") = std::set<std::string, std::less<>>(),
           py::arg("terminals") = std::u32string(), py::arg("whole_characters") = false,
           py::arg("whole_first") = false, py::arg("conjoiners") = std::u32string(),
           py::arg("pieces") = py::none())
      .def(
          "allows",
          [](const MergeRule& self, const std::string& product) { return self.allows(product); },
          py::arg("product"), "Whether the bytes `product` may be a token.");

  py::class_<WordWeights>(m, "WordWeights", "What one occurrence of a word counts, fixed point.")
      .def(py::init([](std::vector<Count> of_group, Count unit, Count target,
                       std::vector<TargetScripts::Range> scripts, double smoothing) {
             return WordWeights{std::move(of_group), unit, target,
                                TargetScripts(std::move(scripts)), smoothing};
           }),
           py::arg("of_group"), py::kw_only(), py::arg("unit") = 1, py::arg("target") = 1,
           py::arg("scripts") = std::vector<TargetScripts::Range>(), py::arg("smoothing") = 0.0);

  py::class_<SentenceWeights>(m, "SentenceWeights", "What one sentence counts, by its script.")
      .def(py::init([](std::vector<TargetScripts::Range> scripts, const std::u32string& terminals,
                       std::uint32_t unit, std::uint32_t target) {
             return SentenceWeights(TargetScripts(std::move(scripts)), as_set(terminals), unit,
                                    target);
           }),
           py::kw_only(), py::arg("scripts"), py::arg("terminals"), py::arg("unit"),
           py::arg("target"))
      .def(
          "split",
          [](const SentenceWeights& self, const py::str& document) {
            std::vector<SentenceWeights::Sentence> sentences;
            self.split(utf8_of(document), sentences);
            std::vector<std::pair<std::size_t, std::uint32_t>> result;
            for (const auto& sentence : sentences)
              result.emplace_back(sentence.end, sentence.factor);
            return result;
          },
          py::arg("document"), "[(end in bytes, factor)] of the sentences of a document.");
}

}  // namespace

void register_training(py::module_& m) {
  py::native_enum<Stopped>(m, "Stopped", "enum.Enum", "Why the merge loop stopped.")
      .value("VOCAB_SIZE", Stopped::kVocabSize)
      .value("MIN_FREQUENCY", Stopped::kMinFrequency)
      .value("NO_PAIR_LEFT", Stopped::kNoPairLeft)
      .value("FLOOR", Stopped::kFloor)
      .value("MEMORY", Stopped::kMemory)
      .finalize();

  py::class_<Trained>(m, "Trained", "The merges that training found.")
      .def_property_readonly(
          "merges", [](const Trained& self) { return rows_of(self.merges); },
          "(n_merges, 3) uint32: left id, right id, product id.")
      .def_property_readonly(
          "counts", [](const Trained& self) { return column_of(self.merges, &Merge::count); },
          "(n_merges,) uint64: weighted count of each pair when it was merged.")
      .def_property_readonly(
          "tokens", [](const Trained& self) { return list_of(self.vocabulary); },
          "Bytes of every token, by id.")
      .def_readonly("stopped", &Trained::stopped)
      .def_readonly("training_tokens", &Trained::tokens)
      .def_readonly("peak_memory_bytes", &Trained::peak_memory_bytes)
      .def_readonly("bound", &Trained::bound, "Pairs that count less were not looked at.")
      .def_readonly("dropped_words", &Trained::dropped_words,
                    "Distinct words left out for want of memory.")
      .def_readonly("dropped_occurrences", &Trained::dropped_occurrences)
      .def_readonly("dropped_below", &Trained::dropped_below,
                    "They were the words of a smaller weighted count than this.")
      .def_readonly("served", &Trained::served, "With Parity: the language of each merge.")
      .def_readonly("language_tokens", &Trained::language_tokens,
                    "With Parity: tokens of the training text by language.")
      .def_readonly("measured_tokens", &Trained::measured_tokens,
                    "With Parity: those of the text that was measured.");

  register_rules(m);

  py::native_enum<TieBreak>(m, "TieBreak", "enum.Enum", "What decides between equal counts.")
      .value("IDS", TieBreak::kIds)
      .value("BYTE_IMAGES", TieBreak::kByteImages)
      .value("TEXTS", TieBreak::kTexts)
      .value("LAST_BYTE_IMAGES", TieBreak::kLastByteImages)
      .finalize();

  py::class_<Parity>(m, "Parity", "Whom the merges of Parity-aware BPE serve.")
      .def(py::init([](std::size_t languages, std::vector<std::uint32_t> of_group,
                       WordCounter* parallel, std::vector<std::uint32_t> of_parallel_group,
                       std::size_t window, double alpha) {
             return Parity{languages,
                           std::move(of_group),
                           parallel,
                           std::move(of_parallel_group),
                           {window, alpha}};
           }),
           py::arg("languages"), py::arg("of_group"),
           py::arg("parallel") = static_cast<WordCounter*>(nullptr),
           py::arg("of_parallel_group") = std::vector<std::uint32_t>(), py::kw_only(),
           py::arg("window") = 0, py::arg("alpha") = 2.0, py::keep_alive<1, 4>(),
           "of_group: the language of each group of words, below `languages`. parallel: words of "
           "parallel text, with the languages of its groups; None: tokens per character of the "
           "words that are trained on. window: 0 for none.");

  m.def(
      "train_bpe", &train_bpe_of, py::arg("counter"), py::arg("weights"), py::arg("vocab_size"),
      py::arg("min_frequency") = 1, py::arg("rule") = MergeRule(),
      py::arg("encoder") = static_cast<const Encoder*>(nullptr),
      py::arg("tokens") = std::vector<py::bytes>(), py::arg("memory_bytes") = 0,
      py::arg("threads") = 1, py::arg("chunks_per_thread") = Limits{}.chunks_per_thread,
      py::arg("tie_break") = TieBreak::kIds, py::arg("keep_words") = false,
      py::arg("parity") = static_cast<const Parity*>(nullptr), py::arg("progress") = py::none(),
      "Byte-level BPE over counted words, which are taken out of the counter; from single bytes, "
      "or from the segmentation of `encoder`, whose vocabulary `tokens` is (bytes by id); without "
      "`encoder` the words are groups of ids of `tokens` (see TokenGroups). parity: each merge "
      "serves one language. keep_words: the counter keeps them.");
}

}  // namespace vocabshift::bindings
