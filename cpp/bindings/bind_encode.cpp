#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>

#include "bindings/arrays.h"
#include "bindings/calls.h"
#include "bindings/documents.h"
#include "bindings/texts.h"
#include "core/text_encoder.h"
#include "core/token_count.h"

namespace vocabshift::bindings {

namespace {

template <class Ids>
py::array_t<std::int32_t> ids_array(Ids&& ids) {
  return to_array(std::move(ids)).attr("view")("int32");
}

// One encoder for Python: a lock guards the word caches, which calls from two threads would share.
class GuardedEncoder {
 public:
  GuardedEncoder(std::shared_ptr<const Encoder> encoder, const TextEncoder::Options& options)
      : encoder_(std::move(encoder), options) {}

  // encode(TextEncoder, Scratch, ids): the ids of so many bytes of text, int32. A short text is
  // encoded before another Python thread could have begun to run.
  template <class F>
  py::array_t<std::int32_t> run(std::size_t bytes, F&& encode) {
    if (bytes <= kShort) {
      // Who waits for the mutex with the interpreter's lock may wait forever.
      const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
      if (lock.owns_lock()) {
        short_ids_.clear();
        encode(encoder_, encoder_.scratch(0), short_ids_);
        py::array_t<std::int32_t> array(static_cast<py::ssize_t>(short_ids_.size()));
        std::copy(short_ids_.begin(), short_ids_.end(), array.mutable_data());
        return array;
      }
    }
    return ids_array(run_long(encode));
  }

  template <class F>
  std::vector<TokenId> run_long(F&& encode) {
    const LongCall call;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<TokenId> ids;
    encode(encoder_, encoder_.scratch(0), ids);
    return ids;
  }

  TextEncoder::Batch run_batch(const DocumentSource& documents, std::size_t threads) {
    const LongCall call;
    const std::lock_guard<std::mutex> lock(mutex_);
    return encoder_.encode_batch(documents, threads);
  }

  const TextEncoder& get() const { return encoder_; }

 private:
  static constexpr std::size_t kShort = std::size_t{1} << 14;
  TextEncoder encoder_;
  std::mutex mutex_;
  std::vector<TokenId> short_ids_;  // room
};

py::tuple batch_arrays(TextEncoder::Batch&& batch) {
  return py::make_tuple(ids_array(std::move(batch.ids)), to_array(std::move(batch.offsets)),
                        to_array(std::move(batch.left)));
}

py::tuple encode_texts(GuardedEncoder& self, const py::list& texts, std::size_t threads) {
  const StrDocuments documents(texts);
  try {
    return batch_arrays(self.run_batch(documents, threads));
  } catch (const LoneSurrogate& found) {
    utf8_of(found.text);  // raises UnicodeEncodeError
    throw;
  }
}

py::tuple encode_documents(GuardedEncoder& self, const py::buffer& data, const IntArray& starts,
                           const IntArray& ends, std::size_t threads) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  std::vector<std::string_view> views(documents.count);
  for (std::size_t i = 0; i < documents.count; ++i) views[i] = documents[i];
  {
    const LongCall call;
    check_utf8(documents, threads);
  }
  return batch_arrays(self.run_batch(ViewDocuments(views), threads));
}

Count count_tokens_of(const Encoder& encoder, const PreTokenizer& pre_tokenizer,
                      const py::buffer& data, const IntArray& starts, const IntArray& ends,
                      std::size_t threads) {
  const py::buffer_info info = data.request();
  const Documents documents = documents_of(info, starts, ends);
  const LongCall call;
  check_utf8(documents, threads);
  return count_tokens(encoder, pre_tokenizer, documents, threads);
}

// A list of int of each row, ids[bounds[i]:bounds[i + 1]].
py::list id_lists(const py::array_t<std::int32_t, py::array::c_style>& ids,
                  const IntArray& bounds) {
  const auto from = ids.unchecked<1>();
  const auto at = bounds.unchecked<1>();
  if (at.shape(0) == 0 || at(0) < 0) throw std::invalid_argument("bounds must begin at 0 or above");
  const py::ssize_t rows = at.shape(0) - 1;
  for (py::ssize_t row = 0; row < rows; ++row) {
    if (at(row) > at(row + 1)) throw std::invalid_argument("bounds must not descend");
  }
  if (at(rows) > from.shape(0)) throw std::invalid_argument("bounds end after the ids");
  py::list lists(static_cast<std::size_t>(rows));
  for (py::ssize_t row = 0; row < rows; ++row) {
    py::list list(static_cast<std::size_t>(at(row + 1) - at(row)));
    for (py::ssize_t i = at(row); i < at(row + 1); ++i) {
      PyObject* const id = PyLong_FromLong(from(i));
      if (id == nullptr) throw py::error_already_set();
      PyList_SET_ITEM(list.ptr(), i - at(row), id);
    }
    PyList_SET_ITEM(lists.ptr(), row, list.release().ptr());
  }
  return lists;
}

py::list split_added(const GuardedEncoder& self, const py::str& text, bool normalized) {
  py::list parts;
  const auto token = [&](TokenId id, std::string_view part) {
    parts.append(py::make_tuple(py::str(part), id));
  };
  const auto plain = [&](std::string_view part) {
    parts.append(py::make_tuple(py::str(part), py::none()));
  };
  self.get().raw_tokens().split(
      utf8_of(text),
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
  const LongCall call;
  return self.get().raw_tokens().found_in(text) || self.get().normalized_tokens().found_in(text);
}

}  // namespace

void register_encode(py::module_& m) {
  py::class_<AddedToken>(m, "AddedToken", "A token that is cut out of the text first.")
      .def(py::init([](const py::str& content, TokenId id, bool lstrip, bool rstrip, bool is_text) {
             return AddedToken{std::string(utf8_of(content)), id, lstrip, rstrip, is_text};
           }),
           py::arg("content"), py::arg("id"), py::arg("lstrip") = false, py::arg("rstrip") = false,
           py::arg("is_text") = false);

  py::class_<Metaspace>(m, "Metaspace", "A pre-tokenizer for spaces, without its cuts.")
      .def(py::init([](const py::str& space, const std::string& prepend) {
             using Prepend = Metaspace::Prepend;
             if (prepend != "never" && prepend != "first" && prepend != "always") {
               throw std::invalid_argument("prepend is never, first or always");
             }
             return Metaspace{std::string(utf8_of(space)), prepend == "never"   ? Prepend::kNever
                                                           : prepend == "first" ? Prepend::kFirst
                                                                                : Prepend::kAlways};
           }),
           py::arg("space"), py::arg("prepend"));

  py::class_<GuardedEncoder>(m, "TextEncoder", "From documents to ids.")
      .def(
          py::init([](const std::shared_ptr<Encoder>& encoder,
                      const std::vector<AddedToken>& raw_tokens,
                      const std::vector<AddedToken>& normalized_tokens, const py::str& prepend,
                      const py::str& space_becomes, bool to_nfc, std::optional<Metaspace> metaspace,
                      std::optional<PreTokenizer> pre_tokenizer) {
            return std::make_unique<GuardedEncoder>(
                encoder,
                TextEncoder::Options{raw_tokens, normalized_tokens, std::string(utf8_of(prepend)),
                                     std::string(utf8_of(space_becomes)), to_nfc,
                                     std::move(metaspace), std::move(pre_tokenizer)});
          }),
          py::arg("encoder"), py::kw_only(), py::arg("raw_tokens") = std::vector<AddedToken>(),
          py::arg("normalized_tokens") = std::vector<AddedToken>(), py::arg("prepend") = "",
          py::arg("space_becomes") = "", py::arg("to_nfc") = false,
          py::arg("metaspace") = py::none(), py::arg("pre_tokenizer") = py::none())
      .def(
          "encode",
          [](GuardedEncoder& self, const py::str& text) -> py::object {
            const std::string_view view = utf8_of(text);
            bool is_done = false;
            py::object ids =
                self.run(view.size(), [&](const TextEncoder& e, auto& scratch, auto& to) {
                  is_done = e.encode(view, scratch, to);
                });
            if (!is_done) return py::none();
            return ids;
          },
          py::arg("text"), "(n_tokens,) int32; None for a text that encode_batch leaves out.")
      .def(
          "encode_normalized",
          [](GuardedEncoder& self, const py::str& text, bool is_first) {
            const std::string_view view = utf8_of(text);
            return self.run(view.size(), [&](const TextEncoder& e, auto& scratch, auto& ids) {
              e.encode_normalized(view, is_first, scratch, ids);
            });
          },
          py::arg("text"), py::arg("is_first") = true,
          "Ids of a normalized part between added tokens; is_first: the text begins with it.")
      .def(
          "encode_pieces",
          [](GuardedEncoder& self, const py::list& pieces) {
            std::vector<std::string_view> views;
            std::size_t bytes = 0;
            for (const py::handle piece : pieces) {
              views.push_back(utf8_of(piece));
              bytes += views.back().size();
            }
            return self.run(bytes, [&](const TextEncoder& e, auto& scratch, auto& ids) {
              for (const std::string_view piece : views) {
                e.encoder().encode_piece(piece, scratch, ids);
              }
              e.encoder().flush(scratch, ids);
            });
          },
          py::arg("pieces"), "Ids of pieces that something else has cut.")
      .def("encode_batch", &encode_texts, py::arg("texts"), py::arg("threads") = 1,
           "(flat ids int32, offsets int64, indices of texts left out) of a list of str; left out "
           "are those that the core cannot bring into normal form, with to_nfc.")
      .def("encode_documents", &encode_documents, py::arg("data"), py::arg("starts"),
           py::arg("ends"), py::arg("threads") = 1,
           "The same of the documents data[starts[i]:ends[i]].")
      .def("has_added", &has_added, py::arg("data"),
           "Whether the bytes hold a token that would be cut out of text.")
      .def("split_added", &split_added, py::arg("text"), py::arg("normalized"),
           "[(part, id or None)]: the text cut at the added tokens that are looked for first, and, "
           "where `normalized` says that the text is so already, at the others.");

  m.def("id_lists", &id_lists, py::arg("ids"), py::arg("bounds"),
        "A list of int of each row, ids[bounds[i]:bounds[i + 1]]; ids int32, bounds int64.");

  m.def("count_tokens", &count_tokens_of, py::arg("encoder"), py::arg("pre_tokenizer"),
        py::arg("data"), py::arg("starts"), py::arg("ends"), py::arg("threads") = 1,
        "Tokens of the documents data[starts[i]:ends[i]], UTF-8.");
}

}  // namespace vocabshift::bindings
