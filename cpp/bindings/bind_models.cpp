// BPE models between Python and the core: read from a tokenizer.json, or given as strings or as
// ids.
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>

#include "bindings/arrays.h"
#include "bindings/calls.h"
#include "bindings/texts.h"
#include "core/encode.h"
#include "core/model_strings.h"
#include "core/utf8.h"
#include "json/model_json.h"

namespace vocabshift::bindings {

namespace {

std::shared_ptr<Encoder> make_encoder(const std::vector<py::bytes>& tokens, const TokenArray& ids,
                                      const TokenArray& merges, bool byte_level, bool ignore_merges,
                                      bool byte_fallback, std::optional<TokenId> unk, bool fuse_unk,
                                      const py::str& space) {
  if (ids.ndim() != 1 || static_cast<std::size_t>(ids.size()) != tokens.size()) {
    throw std::invalid_argument("every token needs an id");
  }
  EncoderModel model;
  std::vector<bool> known;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const TokenId id = ids.data()[i];
    if (id >= kNoToken) throw std::invalid_argument("a token id is too large");
    if (id >= known.size()) known.resize(id + std::size_t{1});
    known[id] = true;
    // Characters of such tokens are looked up: a broken one would be read past its end.
    if (!byte_level && first_invalid_utf8(static_cast<std::string_view>(tokens[i])) != kAllValid) {
      throw std::invalid_argument("token " + std::to_string(i) + " is not UTF-8");
    }
    model.ids.push_back(id);
  }
  model.tokens = vocabulary_of(tokens);
  model.merges =
      merges_of<ModelMerge>(merges, [&](TokenId id) { return id < known.size() && known[id]; });
  model.byte_level = byte_level;
  model.ignore_merges = ignore_merges;
  model.byte_fallback = byte_fallback;
  model.unk = unk.value_or(kNoToken);
  model.fuse_unk = fuse_unk;
  model.space = utf8_of(space);
  const LongCall call;
  return std::make_shared<Encoder>(std::move(model));
}

py::object owned(PyObject* made) {
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

std::optional<ModelStrings> strings_of(const py::dict& vocab, const py::tuple& merges,
                                       TokenId max_id) {
  ModelStrings strings;
  std::string left, right;
  for (const auto& [token, id] : vocab) {
    const std::string_view text = utf8_in(token, left);
    try {
      strings.add_token(text, id.cast<TokenId>());
    } catch (const py::cast_error&) {
      return std::nullopt;
    }
  }
  for (const py::handle merge : merges) {
    if (!PyTuple_Check(merge.ptr()) || PyTuple_Size(merge.ptr()) != 2) {
      throw py::type_error("a merge is no pair");
    }
    strings.add_merge(utf8_in(PyTuple_GetItem(merge.ptr(), 0), left),
                      utf8_in(PyTuple_GetItem(merge.ptr(), 1), right));
  }
  if (!strings.finish(max_id)) return std::nullopt;
  return strings;
}

ModelStrings strings_of_bytes(const std::vector<py::bytes>& tokens, const TokenArray& merges) {
  ModelStrings strings;
  for (const py::bytes& token : tokens) {
    strings.add_image(token, static_cast<TokenId>(strings.size()));
  }
  const auto is_known = [&](TokenId id) { return id < strings.size(); };
  for (const auto& merge : merges_of<ModelStrings::Merge>(merges, is_known)) {
    strings.add_merge(merge);
  }
  if (!strings.finish(kNoToken)) throw std::invalid_argument("a token is given twice");
  return strings;
}

py::dict vocab_of(const ModelStrings& strings) {
  py::dict vocab;
  for (ModelStrings::Index i = 0; i < strings.size(); ++i) {
    const std::string_view token = strings[i];
    const py::object text =
        owned(PyUnicode_DecodeUTF8(token.data(), static_cast<Py_ssize_t>(token.size()), nullptr));
    const py::object id = owned(PyLong_FromUnsignedLong(strings.id(i)));
    if (PyDict_SetItem(vocab.ptr(), text.ptr(), id.ptr()) != 0) throw py::error_already_set();
  }
  return vocab;
}

// Pairs of the vocabulary's own strings; `vocab`: what vocab_of gave.
py::tuple pairs_of(const ModelStrings& strings, const py::dict& vocab) {
  if (vocab.size() != strings.size()) throw std::invalid_argument("this is another vocabulary");
  std::vector<PyObject*> texts;
  texts.reserve(strings.size());
  for (const auto& [token, id] : vocab) texts.push_back(token.ptr());
  py::tuple merges(strings.merges().size());
  for (std::size_t rank = 0; rank < strings.merges().size(); ++rank) {
    const ModelStrings::Merge& merge = strings.merges()[rank];
#if VOCABSHIFT_USES_CPYTHON_INTERNALS
    py::object pair = owned(PyTuple_New(2));
    PyTuple_SET_ITEM(pair.ptr(), 0, Py_NewRef(texts[merge.left]));
    PyTuple_SET_ITEM(pair.ptr(), 1, Py_NewRef(texts[merge.right]));
    PyObject_GC_UnTrack(pair.ptr());  // holds only strings: the collector need not look, ever
    PyTuple_SET_ITEM(merges.ptr(), static_cast<Py_ssize_t>(rank), pair.release().ptr());
#else
    py::object pair = owned(PyTuple_Pack(2, texts[merge.left], texts[merge.right]));
    PyTuple_SetItem(merges.ptr(), static_cast<Py_ssize_t>(rank), pair.release().ptr());
#endif
  }
  return merges;
}

// (strings, the text with null in place of the two values); None where the text is not plainly such
// a file.
py::object read_model(const py::bytes& data, TokenId max_id) {
  const auto text = static_cast<std::string_view>(data);
  std::optional<ModelJson> model;
  {
    const LongCall call;
    model = read_model_json(text, max_id);
  }
  if (!model) return py::none();
  std::string rest(text.substr(0, model->vocab.begin));
  rest += "null";
  rest += text.substr(model->vocab.end, model->merges.begin - model->vocab.end);
  rest += "null";
  rest += text.substr(model->merges.end);
  return py::make_tuple(std::move(model->strings), py::bytes(rest));
}

std::optional<TokenId> find_token(const ModelStrings& strings, const py::str& token) {
  std::string room;
  return strings.find(utf8_in(token, room));
}

py::str text_of(std::string_view text) {
  return owned(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr));
}

// Views of the strings of pairs; alive as long as these.
ModelStrings::Texts texts_of(const std::vector<std::pair<py::str, py::str>>& pairs) {
  ModelStrings::Texts texts;
  texts.reserve(pairs.size());
  for (const auto& [left, right] : pairs) texts.emplace_back(utf8_of(left), utf8_of(right));
  return texts;
}

std::optional<ModelStrings> extended(const ModelStrings& strings, const py::dict& vocab,
                                     const std::vector<std::pair<py::str, py::str>>& merges,
                                     bool merges_first, TokenId max_id) {
  std::vector<std::pair<std::string_view, TokenId>> tokens;
  for (const auto& [token, id] : vocab) {
    try {
      tokens.emplace_back(utf8_of(token), id.cast<TokenId>());
    } catch (const py::cast_error&) {
      return std::nullopt;
    }
  }
  ModelStrings longer = strings.extended(tokens, texts_of(merges), merges_first);
  if (!longer.finish(max_id)) return std::nullopt;
  return longer;
}

py::list names_by_id(const ModelStrings& strings) {
  py::list names(strings.size());
  std::size_t place = 0;
  for (const ModelStrings::Index i : strings.by_id()) names[place++] = text_of(strings[i]);
  return names;
}

py::list bytes_by_id(const ModelStrings& strings, bool byte_level) {
  const EncoderModel model = strings.encoder_model(byte_level);
  py::list tokens(strings.size());
  std::size_t place = 0;
  for (const ModelStrings::Index i : strings.by_id()) {
    tokens[place++] = py::bytes(model.tokens[i].data(), model.tokens[i].size());
  }
  return tokens;
}

std::vector<std::size_t> parts_by_id(const ModelStrings& strings) {
  std::vector<bool> is_part(strings.size());
  for (const ModelStrings::Merge& merge : strings.merges()) {
    is_part[merge.left] = is_part[merge.right] = true;
  }
  std::vector<std::size_t> places;
  std::size_t place = 0;
  for (const ModelStrings::Index i : strings.by_id()) {
    if (is_part[i]) places.push_back(place);
    ++place;
  }
  return places;
}

std::shared_ptr<Encoder> compile(const ModelStrings& strings, bool byte_level, bool ignore_merges,
                                 bool byte_fallback, std::optional<TokenId> unk, bool fuse_unk,
                                 const py::str& space) {
  const std::string_view space_text = utf8_of(space);
  const LongCall call;
  EncoderModel model = strings.encoder_model(byte_level);
  model.ignore_merges = ignore_merges;
  model.byte_fallback = byte_fallback;
  model.unk = unk.value_or(kNoToken);
  model.fuse_unk = fuse_unk;
  model.space = space_text;
  return std::make_shared<Encoder>(std::move(model));
}

}  // namespace

void register_models(py::module_& m) {
  py::class_<Encoder, std::shared_ptr<Encoder>>(m, "Encoder", "A BPE model, compiled.")
      .def(py::init(&make_encoder), py::arg("tokens"), py::arg("ids"), py::arg("merges"),
           py::kw_only(), py::arg("byte_level") = true, py::arg("ignore_merges") = false,
           py::arg("byte_fallback") = false, py::arg("unk") = py::none(),
           py::arg("fuse_unk") = false, py::arg("space") = " ")
      .def(
          "last_merges",
          [](const Encoder& self) {
            std::vector<std::int64_t> last;
            {
              const LongCall call;
              last = self.last_merges();
            }
            return to_array(std::move(last));
          },
          "(n_tokens,) int64, in the order of the vocabulary: the rank of the last merge that "
          "makes "
          "each token of its own string; -1 where it needs none, -2 where merges do not make it.");

  py::class_<ModelStrings>(m, "ModelStrings",
                           "The strings of a sound BPE model, its merges looked up.")
      .def_static("of", &strings_of, py::arg("vocab"), py::arg("merges"), py::arg("max_id"),
                  "None where ids are given twice or above `max_id`, or where a merge joins or "
                  "makes what is no token. UnicodeEncodeError for half a surrogate pair.")
      .def_static("of_bytes", &strings_of_bytes, py::arg("tokens"), py::arg("merges"),
                  "Of a byte-level model: bytes by id, and (n, 3) ids of sound merges.")
      .def("__len__", &ModelStrings::size, "Tokens.")
      .def_property_readonly(
          "n_merges", [](const ModelStrings& self) { return self.merges().size(); }, "Merges.")
      .def_property_readonly(
          "highest_id",
          [](const ModelStrings& self) {
            const auto highest = std::max_element(self.ids().begin(), self.ids().end());
            return highest == self.ids().end() ? std::int64_t{-1} : std::int64_t{*highest};
          },
          "The highest id of a token; -1 where there is none.")
      .def("find", &find_token, py::arg("token"),
           "The id of a token; None for no token. UnicodeEncodeError for half a surrogate pair.")
      .def("vocab", &vocab_of, "Tokens with their ids, in their order.")
      .def("pairs", &pairs_of, py::arg("vocab"),
           "The merges, by rank, of the strings of what `vocab` gave.")
      .def("extended", &extended, py::arg("vocab"), py::arg("merges"), py::kw_only(),
           py::arg("merges_first"), py::arg("max_id"),
           "With more tokens, and more merges after its own or before them; None as in `of`.")
      .def(
          "are_merges",
          [](const ModelStrings& self, const std::vector<std::pair<py::str, py::str>>& pairs) {
            return self.are_merges(texts_of(pairs));
          },
          py::arg("pairs"), "Which of these pairs are merges.")
      .def("names_by_id", &names_by_id, "The tokens in the order of their ids.")
      .def("bytes_by_id", &bytes_by_id, py::arg("byte_level"),
           "Their bytes; of a string that is no image of bytes, 0xFF and its UTF-8.")
      .def("parts_by_id", &parts_by_id,
           "The places, in the order of the ids, of the tokens that are a part of some merge.")
      .def(
          "vocab_json", [](const ModelStrings& self) { return text_of(vocab_json(self)); },
          "The vocabulary as a tokenizer.json has it, by id.")
      .def(
          "merges_json", [](const ModelStrings& self) { return text_of(merges_json(self)); },
          "The merges as a tokenizer.json has them, as pairs.")
      .def("compile", &compile, py::kw_only(), py::arg("byte_level"),
           py::arg("ignore_merges") = false, py::arg("byte_fallback") = false,
           py::arg("unk") = py::none(), py::arg("fuse_unk") = false, py::arg("space") = " ",
           "The encoder; with `byte_level` the strings are images of bytes.");
  m.def("read_model", &read_model, py::arg("data"), py::arg("max_id"),
        "(ModelStrings, rest) of the bytes of a tokenizer.json, where `rest` has null for the "
        "vocabulary and the merges; None for what a general reader must look at.");
}

}  // namespace vocabshift::bindings
