#include <pybind11/stl.h>

#include <algorithm>
#include <mutex>
#include <string>

#include "bindings/register.h"
#include "core/text_encoder.h"
#include "core/utf8.h"

namespace vocabshift::bindings {

namespace {

using TokenArray = py::array_t<std::uint32_t, py::array::c_style | py::array::forcecast>;

// The UTF-8 bytes of a str; alive as long as the str. Lone surrogates raise UnicodeEncodeError.
std::string_view utf8_of(py::handle text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (!data) throw py::error_already_set();
  return {data, static_cast<std::size_t>(size)};
}

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

// One encoder for Python: a lock guards the word caches, which calls from two threads would share.
class GuardedEncoder {
 public:
  GuardedEncoder(const Encoder& encoder, const TextEncoder::Options& options)
      : encoder_(encoder, options) {}

  template <class F>
  std::vector<TokenId> run(F&& encode) {
    py::gil_scoped_release release;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<TokenId> ids;
    encode(encoder_, encoder_.scratch(0), ids);
    return ids;
  }

  TextEncoder::Batch run_batch(const std::vector<std::string_view>& documents,
                               std::size_t threads) {
    py::gil_scoped_release release;
    const std::lock_guard<std::mutex> lock(mutex_);
    return encoder_.encode_batch(documents, threads);
  }

  const TextEncoder& get() const { return encoder_; }

 private:
  TextEncoder encoder_;
  std::mutex mutex_;
};

py::array_t<std::int32_t> ids_array(std::vector<TokenId>&& ids) {
  return to_array(std::move(ids)).attr("view")("int32");
}

py::tuple batch_arrays(TextEncoder::Batch&& batch) {
  return py::make_tuple(ids_array(std::move(batch.ids)), to_array(std::move(batch.offsets)));
}

py::tuple encode_texts(GuardedEncoder& self, const py::list& texts, std::size_t threads) {
  std::vector<std::string_view> documents;
  documents.reserve(texts.size());
  for (const py::handle text : texts) documents.push_back(utf8_of(text));
  return batch_arrays(self.run_batch(documents, threads));
}

// A document that is not UTF-8 would send the scanners past its end: each is looked at.
py::tuple encode_documents(GuardedEncoder& self, const py::buffer& data, const IntArray& starts,
                           const IntArray& ends, std::size_t threads) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  std::vector<std::string_view> views(documents.count);
  for (std::size_t i = 0; i < documents.count; ++i) views[i] = documents[i];
  const auto check = [&](std::size_t i) {
    if (const std::int64_t bad = first_invalid_utf8(views[i]); bad != kAllValid) {
      throw std::invalid_argument("document " + std::to_string(i) + " is not UTF-8: byte " +
                                  std::to_string(bad) + " of it begins no character");
    }
  };
  {
    py::gil_scoped_release release;
    parallel_for(std::min(threads, views.size()), [&](std::size_t shard) {
      const std::size_t shards = std::min(threads, views.size());
      for (std::size_t i = shard; i < views.size(); i += shards) check(i);
    });
  }
  return batch_arrays(self.run_batch(views, threads));
}

py::list split_added(const GuardedEncoder& self, const std::string& text, bool normalized) {
  py::list parts;
  const auto token = [&](TokenId id, std::string_view part) {
    parts.append(py::make_tuple(py::str(part), id));
  };
  const auto plain = [&](std::string_view part) {
    parts.append(py::make_tuple(py::str(part), py::none()));
  };
  self.get().raw_tokens().split(
      text,
      [&](std::string_view part) {
        if (normalized) {
          self.get().normalized_tokens().split(part, plain, token);
        } else {
          plain(part);
        }
      },
      token);
  return parts;
}

// Whether a token stands in the bytes that is cut out of text, before or after normalization.
bool has_added(const GuardedEncoder& self, const py::buffer& data) {
  const py::buffer_info info = data.request();
  const std::string_view text = view_of(info);
  py::gil_scoped_release release;
  return self.get().raw_tokens().found_in(text) || self.get().normalized_tokens().found_in(text);
}

}  // namespace

void register_encode(py::module_& m) {
  py::class_<AddedToken>(m, "AddedToken", "A token that is cut out of the text first.")
      .def(py::init<std::string, TokenId, bool, bool>(), py::arg("content"), py::arg("id"),
           py::arg("lstrip") = false, py::arg("rstrip") = false);

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
              py::gil_scoped_release release;
              last = self.last_merges();
            }
            return to_array(std::move(last));
          },
          "(n_tokens,) int64, in the order of the vocabulary: the rank of the last merge that "
          "makes "
          "each token of its own string; -1 where it needs none, -2 where merges do not make it.");

  py::class_<GuardedEncoder>(m, "TextEncoder", "From documents to ids.")
      .def(
          py::init([](const Encoder& encoder, const std::vector<AddedToken>& raw_tokens,
                      const std::vector<AddedToken>& normalized_tokens, const std::string& prepend,
                      const std::string& space_becomes, std::optional<PreTokenizer> pre_tokenizer) {
            return std::make_unique<GuardedEncoder>(
                encoder, TextEncoder::Options{raw_tokens, normalized_tokens, prepend, space_becomes,
                                              std::move(pre_tokenizer)});
          }),
          py::arg("encoder"), py::kw_only(), py::arg("raw_tokens") = std::vector<AddedToken>(),
          py::arg("normalized_tokens") = std::vector<AddedToken>(), py::arg("prepend") = "",
          py::arg("space_becomes") = "", py::arg("pre_tokenizer") = py::none())
      .def(
          "encode",
          [](GuardedEncoder& self, const py::str& text) {
            const std::string_view view = utf8_of(text);
            return ids_array(self.run([&](const TextEncoder& e, auto& scratch, auto& ids) {
              e.encode(view, scratch, ids);
            }));
          },
          py::arg("text"), "(n_tokens,) int32.")
      .def(
          "encode_normalized",
          [](GuardedEncoder& self, const py::str& text) {
            const std::string_view view = utf8_of(text);
            return ids_array(self.run([&](const TextEncoder& e, auto& scratch, auto& ids) {
              e.encode_normalized(view, scratch, ids);
            }));
          },
          py::arg("text"), "Ids of a normalized part between added tokens.")
      .def(
          "encode_pieces",
          [](GuardedEncoder& self, const py::list& pieces) {
            std::vector<std::string_view> views;
            for (const py::handle piece : pieces) views.push_back(utf8_of(piece));
            return ids_array(self.run([&](const TextEncoder& e, auto& scratch, auto& ids) {
              for (const std::string_view piece : views) {
                e.encoder().encode_piece(piece, scratch, ids);
              }
              e.encoder().flush(scratch, ids);
            }));
          },
          py::arg("pieces"), "Ids of pieces that something else has cut.")
      .def("encode_batch", &encode_texts, py::arg("texts"), py::arg("threads") = 1,
           "(flat ids int32, offsets int64) of a list of str.")
      .def("encode_documents", &encode_documents, py::arg("data"), py::arg("starts"),
           py::arg("ends"), py::arg("threads") = 1,
           "(flat ids int32, offsets int64) of the documents data[starts[i]:ends[i]].")
      .def("has_added", &has_added, py::arg("data"),
           "Whether the bytes hold a token that would be cut out of text.")
      .def("split_added", &split_added, py::arg("text"), py::arg("normalized"),
           "[(part, id or None)]: the text cut at the added tokens that are looked for first, and, "
           "where `normalized` says that the text is so already, at the others.");
}

}  // namespace vocabshift::bindings
