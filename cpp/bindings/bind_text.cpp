#include <pybind11/native_enum.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/calls.h"
#include "bindings/documents.h"
#include "bindings/texts.h"
#include "core/automaton.h"
#include "core/hash.h"
#include "core/nfc.h"
#include "core/pre_tokenize.h"
#include "core/script_words.h"
#include "core/threads.h"
#include "core/unicode.h"
#include "core/utf8.h"

namespace vocabshift::bindings {

namespace {

// As many threads as parts of a text that are worth one.
std::size_t threads_for(std::string_view text, std::size_t threads) {
  constexpr std::size_t kBytesPerThread = std::size_t{1} << 16;
  return std::clamp<std::size_t>(threads, 1, text.size() / kBytesPerThread + 1);
}

py::tuple line_spans_of(const py::buffer& data, std::size_t threads) {
  const py::buffer_info info = data.request();
  const std::string_view text = view_of(info);
  threads = threads_for(text, threads);
  std::vector<std::vector<Span>> parts;
  std::vector<std::size_t> firsts{0};  // the number of the first line of each part
  {
    const LongCall call;
    parts = line_spans(text, threads);
    for (const auto& spans : parts) firsts.push_back(firsts.back() + spans.size());
  }
  IntArray starts(static_cast<py::ssize_t>(firsts.back())), ends(starts.size());
  std::int64_t* const all_starts = starts.mutable_data();
  std::int64_t* const all_ends = ends.mutable_data();
  {
    const LongCall call;
    parallel_for(threads, [&](std::size_t part) {
      std::size_t line = firsts[part];
      for (const Span& span : parts[part]) {
        all_starts[line] = static_cast<std::int64_t>(span.begin);
        all_ends[line++] = static_cast<std::int64_t>(span.end);
      }
    });
  }
  return py::make_tuple(std::move(starts), std::move(ends));
}

std::int64_t first_invalid_of(const py::buffer& data, std::size_t threads) {
  const py::buffer_info info = data.request();
  const std::string_view text = view_of(info);
  const LongCall call;
  return first_invalid_utf8(text, threads_for(text, threads));
}

std::uint64_t fingerprint_of(const py::buffer& data, const std::optional<IntArray>& starts,
                             const std::optional<IntArray>& ends, std::uint64_t seed,
                             std::size_t threads) {
  const py::buffer_info info = data.request();
  if (!starts || !ends) return mix(seed ^ kSeed0, hash_bytes(view_of(info)));
  const Documents documents = documents_of(info, *starts, *ends);
  const LongCall call;
  threads = threads_for(documents.text, threads);
  const std::vector<std::size_t> borders = balanced_shards(documents, threads);
  // A sum, so that the hash of a text is the sum of those of its parts, in any order.
  std::vector<std::uint64_t> sums(threads);
  parallel_for(threads, [&](std::size_t shard) {
    std::uint64_t sum = 0;
    for (std::size_t i = borders[shard]; i < borders[shard + 1]; ++i) {
      sum += mix(seed ^ kSeed0, hash_bytes(documents[i]) ^ kSeed1);
    }
    sums[shard] = sum;
  });
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

py::list split_of(const PreTokenizer& self, const py::str& text) {
  py::list parts;
  self.split(utf8_of(text), [&](std::string_view part) { parts.append(py::str(part)); });
  return parts;
}

std::optional<Automaton> automaton_of(const py::str& regex, const std::string& behavior,
                                      bool is_inverted) {
  using Behavior = Automaton::Behavior;
  constexpr std::pair<std::string_view, Behavior> kBehaviors[] = {
      {"Isolated", Behavior::kIsolated},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous}};
  for (const auto& [name, own] : kBehaviors) {
    if (name == behavior) return Automaton::compile(utf8_of(regex), own, is_inverted);
  }
  return std::nullopt;
}

py::tuple words_by_script_of(const PreTokenizer& pre_tokenizer, const py::buffer& data,
                             const IntArray& starts, const IntArray& ends, std::size_t threads) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  ScriptWords words;
  {
    const LongCall call;
    check_utf8(documents, threads);
    words = words_by_script(pre_tokenizer, documents, threads);
  }
  return py::make_tuple(to_array(std::move(words.starts)), to_array(std::move(words.ends)),
                        to_array(std::move(words.scripts)));
}

}  // namespace

void register_text(py::module_& m) {
  m.def("first_invalid_utf8", &first_invalid_of, py::arg("data"), py::arg("threads") = 1,
        "Byte offset of the first malformed byte of `data`, or -1.");
  m.def("line_spans", &line_spans_of, py::arg("data"), py::arg("threads") = 1,
        "(starts, ends) of the lines of `data`, int64, in bytes, without their endings.");
  m.def("fingerprint", &fingerprint_of, py::arg("data"), py::arg("starts") = py::none(),
        py::arg("ends") = py::none(), py::arg("seed") = 0, py::arg("threads") = 1,
        "64-bit hash of `data`; or the sum of those of its documents data[starts[i]:ends[i]],\n"
        "modulo 2**64. Not cryptographic.");
  m.def(
      "to_nfc",
      [](const py::str& text) -> py::object {
        std::string room;
        const std::optional<std::string_view> normal = to_nfc(utf8_of(text), room);
        if (!normal) return py::none();
        return py::str(*normal);
      },
      py::arg("text"),
      "A text in normal form C; None if it has a code point that the tables do not know.");
  m.def(
      "char_class",
      [](std::uint32_t c) {
        if (c >= 0x110000) throw std::invalid_argument("not a code point");
        return char_class(c);
      },
      py::arg("code_point"),
      "Class bits of a code point: Lu/Lt 1, Ll 2, Lm/Lo 4, M 8, N 16, "
      "space 32, newline 64.");
  m.def(
      "script",
      [](std::uint32_t c) {
        if (c >= 0x110000) throw std::invalid_argument("not a code point");
        return tables::kScriptNames[script_of(c)];
      },
      py::arg("code_point"), "Script of a code point, by its long name (\"Devanagari\").");

  py::native_enum<Pattern>(m, "Pattern", "enum.Enum", "The patterns that have a scanner.")
      .value("GPT2", Pattern::kGpt2)
      .value("CL100K", Pattern::kCl100k)
      .value("CL100K_TIKTOKEN", Pattern::kCl100kTiktoken)
      .value("CL100K_POSSESSIVE", Pattern::kCl100kPossessive)
      .value("QWEN2", Pattern::kQwen2)
      .value("QWEN35", Pattern::kQwen35)
      .value("O200K", Pattern::kO200k)
      .value("KIMI", Pattern::kKimi)
      .value("TEKKEN", Pattern::kTekken)
      .value("DEEPSEEK", Pattern::kDeepseek)
      .value("MATRA", Pattern::kMatra)
      .value("INDIC", Pattern::kIndic)
      .value("GPT2_REPAIRED", Pattern::kGpt2Repaired)
      .value("CL100K_REPAIRED", Pattern::kCl100kRepaired)
      .value("QWEN2_REPAIRED", Pattern::kQwen2Repaired)
      .value("QWEN35_REPAIRED", Pattern::kQwen35Repaired)
      .value("TEKKEN_REPAIRED", Pattern::kTekkenRepaired)
      .value("WALLS", Pattern::kBoundaries)
      .value("INDIC_WALLS", Pattern::kIndicBoundaries)
      .value("DIGIT_TRIPLES", Pattern::kDigitTriples)
      .value("HAN", Pattern::kHan)
      .finalize();

  py::class_<SentencePolicy>(m, "SentenceEnds", "A step that cuts after sentence terminals.")
      .def(py::init([](const std::u32string& terminals, bool period) {
             return SentencePolicy({terminals.begin(), terminals.end()}, period);
           }),
           py::arg("terminals"), py::arg("period"));
  py::class_<SyllableRules>(m, "SyllableRules", "A step that cuts into orthographic syllables.")
      .def(py::init([](const std::vector<std::string>& scripts, const std::u32string& linkers,
                       std::vector<std::string> conjuncts) {
             return SyllableRules(scripts, {linkers.begin(), linkers.end()}, std::move(conjuncts));
           }),
           py::arg("scripts"), py::arg("linkers"), py::arg("conjuncts"));
  py::class_<JoinedWords>(m, "JoinedWords", "A step: a word pattern without its space boundary.")
      .def(py::init([](Pattern words) { return JoinedWords{words}; }), py::arg("words"));
  py::class_<CharacterRuns>(m, "CharacterRuns",
                            "A step that cuts around, after or before characters of a set.")
      .def(py::init([](std::uint8_t bits,
                       const std::vector<std::pair<std::uint32_t, std::uint32_t>>& ranges,
                       std::size_t longest, const std::string& cut) {
             if (cut != "around" && cut != "after" && cut != "before") {
               throw std::invalid_argument("cut is around, after or before");
             }
             return CharacterRuns(bits, {ranges.begin(), ranges.end()}, longest,
                                  cut == "around"  ? CharacterRuns::Cut::kAround
                                  : cut == "after" ? CharacterRuns::Cut::kAfter
                                                   : CharacterRuns::Cut::kBefore);
           }),
           py::arg("class_bits"), py::arg("ranges"), py::arg("longest"), py::arg("cut"));
  py::class_<ByteRuns>(m, "ByteRuns", "A step that cuts around bytes; only such steps follow it.")
      .def(py::init([](const py::bytes& bytes, std::size_t length) {
             return ByteRuns(std::string_view(bytes), length);
           }),
           py::arg("bytes"), py::arg("length"));
  py::class_<Automaton>(m, "Automaton", "A step with any regex of the automaton's subset.")
      .def_static("compile", &automaton_of, py::arg("regex"), py::arg("behavior") = "Isolated",
                  py::arg("invert") = false,
                  "The step as `tokenizers` would run it; None where only `tokenizers` can.");
  py::class_<PreTokenizer>(m, "PreTokenizer",
                           "Compiled steps: text -> pieces, byte for byte the regexes'.")
      .def(py::init<std::vector<PreTokenizer::Step>>(), py::arg("steps"))
      .def("split", &split_of, py::arg("text"), "The pieces of `text`, as str.");

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
}

}  // namespace vocabshift::bindings
