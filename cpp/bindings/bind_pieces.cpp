#include <pybind11/stl.h>

#include <tuple>

#include "bindings/calls.h"
#include "bindings/documents.h"
#include "bindings/texts.h"
#include "core/character_counts.h"
#include "core/edit_distance.h"
#include "core/line_tokens.h"
#include "core/piece_rule.h"
#include "core/token_groups.h"
#include "core/token_splits.h"

namespace vocabshift::bindings {

namespace {

using IdArray = py::array_t<std::int32_t, py::array::c_style | py::array::forcecast>;

std::set<char32_t> as_set(const std::u32string& characters) {
  return {characters.begin(), characters.end()};
}

PieceRule make_rule(std::size_t max_characters, bool split_by_script, bool split_by_number,
                    bool split_digits, bool split_by_space, bool space_is_suffix, bool space_runs,
                    const std::u32string& digits, const std::u32string& never) {
  return PieceRule({max_characters, split_by_script, split_by_number, split_digits, split_by_space,
                    space_is_suffix, space_runs, as_set(digits), as_set(never)});
}

std::vector<std::string_view> views_of(const std::vector<py::bytes>& tokens) {
  std::vector<std::string_view> views;
  views.reserve(tokens.size());
  for (const py::bytes& token : tokens) views.push_back(static_cast<std::string_view>(token));
  return views;
}

TokenGroups make_groups(const PieceRule& rule, const std::vector<py::bytes>& tokens,
                        const std::vector<TokenId>& unmergeable) {
  return TokenGroups(rule, views_of(tokens), unmergeable);
}

// A negative id is a very large one, which no vocabulary has.
EncodedDocuments encoded(const IdArray& ids, const IntArray& offsets) {
  if (ids.ndim() != 1 || offsets.ndim() != 1) {
    throw std::invalid_argument("ids and offsets must be two arrays of one dimension");
  }
  return {{reinterpret_cast<const TokenId*>(ids.data()), static_cast<std::size_t>(ids.size())},
          {offsets.data(), static_cast<std::size_t>(offsets.size())}};
}

Count add_groups(const TokenGroups& self, WordCounter& counter, const IdArray& ids,
                 const IntArray& offsets, std::size_t group) {
  const EncodedDocuments documents = encoded(ids, offsets);
  const LongCall call;
  return self.add_to(counter, documents, group);
}

Count count_groups(const TokenGroups& self, const IdArray& ids, const IntArray& offsets,
                   std::size_t threads) {
  const EncodedDocuments documents = encoded(ids, offsets);
  const LongCall call;
  return self.count(documents, threads);
}

py::tuple characters_of(const py::buffer& data, const IntArray& starts, const IntArray& ends,
                        std::size_t threads) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  std::vector<std::uint32_t> characters;
  std::vector<Count> counts;
  {
    const LongCall call;
    check_utf8(documents, threads);
    for (const auto& [character, count] : count_characters(documents, threads)) {
      characters.push_back(character);
      counts.push_back(count);
    }
  }
  return py::make_tuple(to_array(std::move(characters)), to_array(std::move(counts)));
}

py::tuple splits_of(const std::vector<py::bytes>& tokens) {
  const std::vector<std::string_view> views = views_of(tokens);
  TokenSplits found;
  {
    const LongCall call;
    found = split_tokens(views);
  }
  return py::make_tuple(to_array(std::move(found.products)), to_array(std::move(found.lefts)),
                        to_array(std::move(found.rights)));
}

template <class T>
std::span<const T> span_of(
    const py::array_t<T, py::array::c_style | py::array::forcecast>& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

py::tuple places_of(const py::list& lines, const IdArray& ids, const IntArray& offsets,
                    const py::buffer& bytes, const IntArray& bounds) {
  const StrDocuments documents(lines);
  const py::buffer_info info = bytes.request();
  const TokenBytes tokens{view_of(info), span_of(bounds)};
  const EncodedDocuments of_lines = encoded(ids, offsets);
  PlacedLines found;
  try {
    const LongCall call;
    found = place_tokens(documents, of_lines, tokens);
  } catch (const LoneSurrogate& broken) {
    utf8_of(broken.text);  // raises UnicodeEncodeError
    throw;
  }
  return py::make_tuple(to_array(std::move(found.starts)), to_array(std::move(found.ends)),
                        to_array(std::move(found.spaces)));
}

// A side of kept_of: ids, offsets, starts and ends.
using Side = std::tuple<IdArray, IntArray, IntArray, IntArray>;

TokensInLines tokens_of(const Side& side) {
  const auto& [ids, offsets, starts, ends] = side;
  return {encoded(ids, offsets), span_of(starts), span_of(ends)};
}

py::tuple kept_of(const Side& before, const Side& after, const IntArray& words,
                  const IntArray& first, const IdArray& n_text) {
  const TokensInLines one = tokens_of(before), other = tokens_of(after);
  const ChangedWords changed{span_of(words), span_of(first), span_of(n_text)};
  KeptTokens found;
  {
    const LongCall call;
    found = kept_tokens(one, other, changed);
  }
  return py::make_tuple(to_array(std::move(found.kept)), to_array(std::move(found.outside)));
}

// A side of distances_of: symbols, and where each sequence begins and ends.
using Sequences = std::tuple<IntArray, IntArray, IntArray>;

EditDistance::Symbols sequence_of(const Sequences& side, py::ssize_t i) {
  const auto& [symbols, starts, ends] = side;
  const std::int64_t start = starts.data()[i], end = ends.data()[i];
  if (start < 0 || start > end || end > symbols.size()) {
    throw std::invalid_argument("a sequence is outside of the symbols");
  }
  return span_of(symbols).subspan(static_cast<std::size_t>(start),
                                  static_cast<std::size_t>(end - start));
}

py::array_t<std::int64_t> distances_of(const Sequences& one, const Sequences& other) {
  const py::ssize_t count = std::get<1>(one).size();
  for (const Sequences* side : {&one, &other}) {
    if (std::get<1>(*side).size() != count || std::get<2>(*side).size() != count) {
      throw std::invalid_argument("every sequence needs a start and an end on both sides");
    }
  }
  std::vector<std::int64_t> found;
  {
    const LongCall call;
    EditDistance distance;
    for (py::ssize_t i = 0; i < count; ++i) {
      found.push_back(distance(sequence_of(one, i), sequence_of(other, i)));
    }
  }
  return to_array(std::move(found));
}

}  // namespace

void register_pieces(py::module_& m) {
  py::class_<PieceRule>(m, "PieceRule", "Which texts may be a SentencePiece piece.")
      .def(py::init(&make_rule), py::kw_only(), py::arg("max_characters") = 16,
           py::arg("split_by_script") = true, py::arg("split_by_number") = true,
           py::arg("split_digits") = true, py::arg("split_by_space") = true,
           py::arg("space_is_suffix") = false, py::arg("space_runs") = true,
           py::arg("digits") = std::u32string(), py::arg("never") = std::u32string())
      .def(
          "allows",
          [](const PieceRule& self, const std::string& text) { return self.allows(text); },
          py::arg("text"), "Whether `text` (UTF-8 bytes, \"▁\" for the space) may be a piece.")
      .def(
          "may_join",
          [](const PieceRule& self, const std::string& left, const std::string& right) {
            return self.join(self.shape_of(left), self.shape_of(right)).is_possible;
          },
          py::arg("left"), py::arg("right"),
          "Whether some piece may hold `left` and `right` side by side.");

  py::class_<TokenGroups>(m, "TokenGroups",
                          "Cuts encoded documents where two tokens can never be merged.")
      .def(py::init(&make_groups), py::arg("rule"), py::arg("tokens"), py::arg("unmergeable"))
      .def("add_to", &add_groups, py::arg("counter"), py::arg("ids"), py::arg("offsets"),
           py::arg("group") = 0,
           "Count the groups of documents ids[offsets[i]:offsets[i + 1]]; returns how many.")
      .def("count", &count_groups, py::arg("ids"), py::arg("offsets"), py::arg("threads") = 1,
           "How many groups there are.");

  m.def("count_characters", &characters_of, py::arg("data"), py::arg("starts"), py::arg("ends"),
        py::arg("threads") = 1,
        "(code points uint32, occurrences uint64) of the documents data[starts[i]:ends[i]].");

  m.def("split_tokens", &splits_of, py::arg("tokens"),
        "(products, lefts, rights), uint32: every way to cut one of the tokens into two of them, "
        "by product, then by the length of the left part.");

  m.def("edit_distances", &distances_of, py::arg("one"), py::arg("other"),
        "Levenshtein's distance of each two sequences symbols[starts[i]:ends[i]], int64; a side "
        "is (symbols, starts, ends), int64.");

  m.def(
      "place_tokens", &places_of, py::arg("lines"), py::arg("ids"), py::arg("offsets"),
      py::arg("token_bytes"), py::arg("token_bounds"),
      "(starts int64, ends int64, spaces int8): bytes of each line at which its tokens "
      "ids[offsets[i]:offsets[i + 1]] begin and end. spaces: 0 where their bytes are the line, 1 "
      "where they are a space and the line, else -1 and places in the tokens' own bytes. Token id "
      "has the bytes from token_bounds[id] to token_bounds[id + 1].");

  m.def("kept_tokens", &kept_of, py::arg("before"), py::arg("after"), py::arg("words"),
        py::arg("first"), py::arg("n_text"),
        "(kept, outside), int64: of the tokens of each line with text outside of its changed word, "
        "those that stay, and all. Sides are (ids, offsets, starts, ends); words (n_lines, 3): "
        "begin, end, growth; n_text: bytes that are not spaces before each place, a line's from "
        "first[i].");
}

}  // namespace vocabshift::bindings
