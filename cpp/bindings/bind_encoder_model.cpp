#include <pybind11/stl.h>

#include <array>
#include <string>

#include "bindings/register.h"
#include "bindings/texts.h"
#include "core/encode.h"

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
  py::gil_scoped_release release;
  return Encoder(model);
}

// The strings of a vocabulary as bytes.
class Speller {
 public:
  explicit Speller(bool byte_level) : byte_level_(byte_level) {
    byte_of_.fill(kNoByte);
    char32_t spare = 0x100;  // GPT-2's image: see bpe/byte_level.py
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable =
          (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      byte_of_[printable ? byte : spare++] = static_cast<std::uint16_t>(byte);
    }
  }

  // False for a string that no bytes have as their image.
  bool append(py::handle token, std::string& bytes) const {
    if (!byte_level_) {
      bytes += utf8_of(token);
      return true;
    }
    const int kind = PyUnicode_KIND(token.ptr());
    const void* const data = PyUnicode_DATA(token.ptr());
    for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(token.ptr()); ++i) {
      const Py_UCS4 character = PyUnicode_READ(kind, data, i);
      const std::uint16_t byte = character < byte_of_.size() ? byte_of_[character] : kNoByte;
      if (byte == kNoByte) return false;
      bytes.push_back(static_cast<char>(byte));
    }
    return true;
  }

 private:
  static constexpr std::uint16_t kNoByte = 256;
  bool byte_level_;
  std::array<std::uint16_t, 0x144> byte_of_;
};

// Ids of strings, found by their bytes; by Python where no bytes spell them.
class IdsByBytes {
 public:
  IdsByBytes(const py::dict& vocab, bool byte_level) : vocab_(vocab), speller_(byte_level) {
    known_.reserve(vocab.size());
  }

  // The bytes of a token; for a string that no bytes spell, bytes that no text holds.
  std::string add(py::handle token, TokenId id) {
    std::string bytes;
    if (!speller_.append(token, bytes)) return "\xFF" + std::string(utf8_of(token));
    known_.add(bytes);
    ids_.push_back(id);
    return bytes;
  }

  ModelMerge find(py::handle left, py::handle right) {
    bytes_.clear();
    if (!speller_.append(left, bytes_)) return find_slowly(left, right);
    const std::size_t border = bytes_.size();
    if (!speller_.append(right, bytes_)) return find_slowly(left, right);
    const std::string_view all = bytes_;
    return {id_of(all.substr(0, border)), id_of(all.substr(border)), id_of(all)};
  }

 private:
  TokenId id_of(std::string_view bytes) const {
    const TokenId found = known_.find(bytes);
    if (found == kNoToken) throw std::invalid_argument("a merge names an unknown token");
    return ids_[found];
  }
  ModelMerge find_slowly(py::handle left, py::handle right) const {
    const py::object product =
        py::reinterpret_steal<py::object>(PyUnicode_Concat(left.ptr(), right.ptr()));
    if (!product) throw py::error_already_set();
    return {vocab_[left].cast<TokenId>(), vocab_[right].cast<TokenId>(),
            vocab_[product].cast<TokenId>()};
  }

  py::dict vocab_;
  Speller speller_;
  Vocabulary known_;
  std::vector<TokenId> ids_;
  std::string bytes_;
};

Encoder encoder_of_strings(const py::dict& vocab, const py::tuple& merges, bool byte_level,
                           bool ignore_merges, bool byte_fallback, std::optional<TokenId> unk,
                           bool fuse_unk, const std::string& space) {
  EncoderModel model;
  model.tokens.reserve(vocab.size());
  IdsByBytes ids(vocab, byte_level);
  const auto check_str = [](py::handle value) {
    if (!PyUnicode_Check(value.ptr())) throw py::type_error("a token is no str");
  };
  for (const auto& [token, value] : vocab) {
    check_str(token);
    const auto id = value.cast<TokenId>();
    if (id >= kNoToken) throw std::invalid_argument("a token id is too large");
    model.tokens.emplace_back(ids.add(token, id), id);
  }
  model.merges.reserve(merges.size());
  for (const py::handle merge : merges) {
    if (!PyTuple_Check(merge.ptr()) || PyTuple_GET_SIZE(merge.ptr()) != 2) {
      throw py::type_error("a merge is no pair");
    }
    const py::handle left = PyTuple_GET_ITEM(merge.ptr(), 0);
    const py::handle right = PyTuple_GET_ITEM(merge.ptr(), 1);
    check_str(left);
    check_str(right);
    model.merges.push_back(ids.find(left, right));
  }
  model.byte_level = byte_level;
  model.ignore_merges = ignore_merges;
  model.byte_fallback = byte_fallback;
  model.unk = unk.value_or(kNoToken);
  model.fuse_unk = fuse_unk;
  model.space = space;
  py::gil_scoped_release release;
  return Encoder(model);
}

}  // namespace

void register_encoder_model(py::module_& m) {
  py::class_<Encoder>(m, "Encoder", "A BPE model, compiled.")
      .def(py::init(&make_encoder), py::arg("tokens"), py::arg("ids"), py::arg("merges"),
           py::kw_only(), py::arg("byte_level") = true, py::arg("ignore_merges") = false,
           py::arg("byte_fallback") = false, py::arg("unk") = py::none(),
           py::arg("fuse_unk") = false, py::arg("space") = " ")
      .def_static("of_strings", &encoder_of_strings, py::arg("vocab"), py::arg("merges"),
                  py::kw_only(), py::arg("byte_level"), py::arg("ignore_merges") = false,
                  py::arg("byte_fallback") = false, py::arg("unk") = py::none(),
                  py::arg("fuse_unk") = false, py::arg("space") = " ",
                  "The same of strings as tokenizer.json has them; with `byte_level` they are "
                  "images of bytes.")
      .def(
          "last_merges",
          [](const Encoder& self) {
            std::vector<std::int64_t> last;
            {
              py::gil_scoped_release release;
              last = self.last_merges();
            }
            return to_array(std::move(last));
          },
          "(n_tokens,) int64, in the order of the vocabulary: the rank of the last merge that "
          "makes "
          "each token of its own string; -1 where it needs none, -2 where merges do not make it.");
}

}  // namespace vocabshift::bindings
