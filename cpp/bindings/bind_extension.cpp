#include <pybind11/native_enum.h>
#include <pybind11/stl.h>

#include "bindings/arrays.h"
#include "bindings/calls.h"
#include "core/replay.h"
#include "core/train.h"

namespace vocabshift::bindings {

namespace {

Trained continue_bpe(WordCounter& counter, const WordWeights& weights, std::size_t vocab_size,
                     const Encoder* encoder, const std::vector<py::bytes>& tokens,
                     const std::vector<TokenId>& held, Count min_frequency, const MergeRule& rule,
                     TieBreak tie_break, Duplicates duplicates, bool keep_words,
                     std::size_t memory_bytes, std::size_t threads, const py::object& progress) {
  const Tick tick = make_tick(progress);
  Start start{encoder, vocabulary_of(tokens), duplicates, std::vector<bool>(tokens.size())};
  for (const TokenId id : held) {
    if (id >= tokens.size()) throw std::invalid_argument("a token that is held is not there");
    start.held[id] = true;
  }
  Limits limits{vocab_size, min_frequency};
  limits.tie_break = tie_break;
  limits.threads = threads;
  const LongCall call;
  return train_bpe(counter, weights, limits, rule, std::move(start), memory_bytes, tick,
                   keep_words);
}

py::tuple replay(WordCounter& counter, const Encoder* encoder, const TokenArray& rows,
                 const py::object& progress) {
  const Tick tick = make_tick(progress);
  // An id that no word is segmented into only means a merge that never happens.
  const auto merges = merges_of<ModelMerge>(rows, [](TokenId) { return true; });
  std::vector<Replay> replays;
  {
    const LongCall call;
    replays = replay_merges(counter, encoder, merges, tick);
  }
  const auto groups = static_cast<py::ssize_t>(replays.size());
  const auto count = static_cast<py::ssize_t>(merges.size());
  py::array_t<Count> words(groups), tokens(groups), happened({groups, count});
  for (py::ssize_t group = 0; group < groups; ++group) {
    const Replay& of_group = replays[static_cast<std::size_t>(group)];
    words.mutable_at(group) = of_group.words;
    tokens.mutable_at(group) = of_group.tokens;
    std::copy(of_group.happened.begin(), of_group.happened.end(),
              happened.mutable_data() + group * count);
  }
  return py::make_tuple(words, tokens, happened);
}

}  // namespace

void register_extension(py::module_& m) {
  py::native_enum<Duplicates>(m, "Duplicates", "enum.Enum",
                              "What happens to a pair whose product is a token already.")
      .value("REUSE_ID", Duplicates::kReuseId)
      .value("REUSE_UNHELD", Duplicates::kReuseUnheld)
      .finalize();

  m.def("continue_bpe", &continue_bpe, py::arg("counter"), py::arg("weights"),
        py::arg("vocab_size"), py::arg("encoder"), py::arg("tokens"), py::arg("held"),
        py::kw_only(), py::arg("min_frequency") = 1, py::arg("rule") = MergeRule(),
        py::arg("tie_break") = TieBreak::kIds, py::arg("duplicates") = Duplicates::kReuseUnheld,
        py::arg("keep_words") = false, py::arg("memory_bytes") = 0, py::arg("threads") = 1,
        py::arg("progress") = py::none(),
        "BPE training of counted words goes on from the segmentation of `encoder`, whose "
        "vocabulary `tokens` is (bytes by id) and whose merges hold the ids `held`; with None the "
        "words are groups of ids (see TokenGroups).");

  m.def("replay_merges", &replay, py::arg("counter"), py::arg("encoder"), py::arg("merges"),
        py::arg("progress") = py::none(),
        "Run merges, (n_merges, 3) ids, on counted words as `encoder` segments them, or on counted "
        "groups of ids where it is None.\n\n"
        "Returns by group: words (n_groups,), tokens before any merge (n_groups,), and how often "
        "each merge happened (n_groups, n_merges); all uint64.");
}

}  // namespace vocabshift::bindings
