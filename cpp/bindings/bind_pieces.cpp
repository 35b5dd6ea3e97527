#include <pybind11/stl.h>

#include "bindings/calls.h"
#include "bindings/documents.h"
#include "core/character_counts.h"
#include "core/piece_rule.h"
#include "core/token_groups.h"

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

TokenGroups make_groups(const PieceRule& rule, const std::vector<py::bytes>& tokens,
                        const std::vector<TokenId>& unmergeable) {
  std::vector<std::string_view> views;
  views.reserve(tokens.size());
  for (const py::bytes& token : tokens) views.push_back(static_cast<std::string_view>(token));
  return TokenGroups(rule, views, unmergeable);
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
}

}  // namespace vocabshift::bindings
