// BPE models between Python and the core: read from a tokenizer.json, or given as strings or as
// ids.
#include <pybind11/stl.h>

#include "bindings/register.h"
#include "core/encode.h"
#include "core/model_json.h"
#include "core/model_strings.h"
#include "core/utf8.h"

namespace vocabshift::bindings {

namespace {

using TokenArray = py::array_t<std::uint32_t, py::array::c_style | py::array::forcecast>;

Encoder make_encoder(const std::vector<py::bytes>& tokens, const TokenArray& ids,
                     const TokenArray& merges, bool byte_level, bool ignore_merges,
                     bool byte_fallback, std::optional<TokenId> unk, bool fuse_unk,
                     const std::string& space) {
  if (ids.ndim() != 1 || static_cast<std::size_t>(ids.size()) != tokens.size()) {
    throw std::invalid_argument("every token needs an id");
  }
  if (merges.ndim() != 2 || merges.shape(1) != 3) {
    throw std::invalid_argument("merges must have shape (n, 3)");
  }
  EncoderModel model;
  model.tokens.reserve(tokens.size());
  std::vector<bool> known;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const TokenId id = ids.data()[i];
    if (id >= kNoToken) throw std::invalid_argument("a token id is too large");
    if (id >= known.size()) known.resize(id + std::size_t{1});
    known[id] = true;
    model.tokens.emplace_back(static_cast<std::string>(tokens[i]), id);
  }
  const auto view = merges.unchecked<2>();
  model.merges.reserve(static_cast<std::size_t>(view.shape(0)));
  for (py::ssize_t i = 0; i < view.shape(0); ++i) {
    for (py::ssize_t j = 0; j < 3; ++j) {
      if (view(i, j) >= known.size() || !known[view(i, j)]) {
        throw std::invalid_argument("a merge names an unknown id");
      }
    }
    model.merges.push_back({view(i, 0), view(i, 1), view(i, 2)});
  }
  model.byte_level = byte_level;
  model.ignore_merges = ignore_merges;
  model.byte_fallback = byte_fallback;
  model.unk = unk.value_or(kNoToken);
  model.fuse_unk = fuse_unk;
  model.space = space;
  const LongCall call;
  return Encoder(model);
}

py::object owned(PyObject* made) {
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

// A str as UTF-8, without the copy that PyUnicode_AsUTF8 leaves in it. UnicodeEncodeError for half
// a surrogate pair.
void append_str(py::handle text, std::string& out) {
  if (!PyUnicode_Check(text.ptr())) throw py::type_error("a token is no str");
  const Py_ssize_t size = PyUnicode_GET_LENGTH(text.ptr());
  const void* const data = PyUnicode_DATA(text.ptr());
  if (PyUnicode_IS_ASCII(text.ptr())) {
    out.append(static_cast<const char*>(data), static_cast<std::size_t>(size));
    return;
  }
  const int kind = PyUnicode_KIND(text.ptr());
  for (Py_ssize_t i = 0; i < size; ++i) {
    const Py_UCS4 character = PyUnicode_READ(kind, data, i);
    if (character >= 0xD800 && character < 0xE000) {
      owned(PyUnicode_AsUTF8String(text.ptr()));  // raises
      throw std::logic_error("half a surrogate pair was encoded");
    }
    append_utf8(character, out);
  }
}

std::optional<ModelStrings> strings_of(const py::dict& vocab, const py::tuple& merges,
                                       TokenId max_id) {
  ModelStrings strings;
  std::string left, right;
  for (const auto& [token, id] : vocab) {
    left.clear();
    append_str(token, left);
    try {
      strings.add_token(left, id.cast<TokenId>());
    } catch (const py::cast_error&) {
      return std::nullopt;
    }
  }
  for (const py::handle merge : merges) {
    if (!PyTuple_Check(merge.ptr()) || PyTuple_GET_SIZE(merge.ptr()) != 2) {
      throw py::type_error("a merge is no pair");
    }
    left.clear();
    right.clear();
    append_str(PyTuple_GET_ITEM(merge.ptr(), 0), left);
    append_str(PyTuple_GET_ITEM(merge.ptr(), 1), right);
    strings.add_merge(left, right);
  }
  if (!strings.finish(max_id)) return std::nullopt;
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

// Pairs of the vocabulary's own strings.
py::tuple merges_of(const ModelStrings& strings, const py::dict& vocab) {
  std::vector<PyObject*> texts;
  texts.reserve(strings.size());
  for (const auto& [token, id] : vocab) texts.push_back(token.ptr());
  py::tuple merges(strings.merges().size());
  for (std::size_t rank = 0; rank < strings.merges().size(); ++rank) {
    const ModelStrings::Merge& merge = strings.merges()[rank];
    PyObject* const pair = PyTuple_New(2);
    if (!pair) throw py::error_already_set();
    PyTuple_SET_ITEM(pair, 0, Py_NewRef(texts[merge.left]));
    PyTuple_SET_ITEM(pair, 1, Py_NewRef(texts[merge.right]));
    PyObject_GC_UnTrack(pair);  // holds only strings: the collector need not look at it, ever
    PyTuple_SET_ITEM(merges.ptr(), static_cast<Py_ssize_t>(rank), pair);
  }
  return merges;
}

// (vocab, merges, strings, the text with null in place of the two values); None where the text is
// not plainly such a file.
py::object read_model(const py::bytes& data, TokenId max_id) {
  const auto text = static_cast<std::string_view>(data);
  std::optional<ModelJson> model;
  {
    const LongCall call;
    model = read_model_json(text, max_id);
  }
  if (!model) return py::none();
  try {
    const py::dict vocab = vocab_of(model->strings);
    const py::tuple merges = merges_of(model->strings, vocab);
    std::string rest(text.substr(0, model->vocab.begin));
    rest += "null";
    rest += text.substr(model->vocab.end, model->merges.begin - model->vocab.end);
    rest += "null";
    rest += text.substr(model->merges.end);
    return py::make_tuple(vocab, merges, std::move(model->strings), py::bytes(rest));
  } catch (const py::error_already_set& error) {
    if (error.matches(PyExc_UnicodeDecodeError)) return py::none();
    throw;
  }
}

Encoder compile(const ModelStrings& strings, bool byte_level, bool ignore_merges,
                bool byte_fallback, std::optional<TokenId> unk, bool fuse_unk,
                const std::string& space) {
  const LongCall call;
  EncoderModel model = strings.encoder_model(byte_level);
  model.ignore_merges = ignore_merges;
  model.byte_fallback = byte_fallback;
  model.unk = unk.value_or(kNoToken);
  model.fuse_unk = fuse_unk;
  model.space = space;
  return Encoder(model);
}

}  // namespace

void register_models(py::module_& m) {
  py::class_<Encoder>(m, "Encoder", "A BPE model, compiled.")
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
      .def("compile", &compile, py::kw_only(), py::arg("byte_level"),
           py::arg("ignore_merges") = false, py::arg("byte_fallback") = false,
           py::arg("unk") = py::none(), py::arg("fuse_unk") = false, py::arg("space") = " ",
           "The encoder; with `byte_level` the strings are images of bytes.");
  m.def("read_model", &read_model, py::arg("data"), py::arg("max_id"),
        "(vocab, merges, ModelStrings, rest) of the bytes of a tokenizer.json, where `rest` has "
        "null for the first two; None for what a general reader must look at.");
}

}  // namespace vocabshift::bindings
