#include "bindings/documents.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/stop.h"
#include "core/utf8.h"

namespace vocabshift::bindings {

std::string_view view_of(const py::buffer_info& info) {
  if (info.itemsize != 1 || info.ndim != 1 || (info.shape[0] > 1 && info.strides[0] != 1)) {
    throw std::invalid_argument("need a contiguous buffer of bytes");
  }
  return {static_cast<const char*>(info.ptr), static_cast<std::size_t>(info.size)};
}

Documents documents_of(const py::buffer_info& info, const IntArray& starts, const IntArray& ends) {
  const std::string_view text = view_of(info);
  if (starts.ndim() != 1 || ends.ndim() != 1 || starts.size() != ends.size()) {
    throw std::invalid_argument("starts and ends must be two arrays of the same length");
  }
  const auto size = static_cast<std::int64_t>(text.size());
  for (py::ssize_t i = 0; i < starts.size(); ++i) {
    if (starts.data()[i] < 0 || starts.data()[i] > ends.data()[i] || ends.data()[i] > size) {
      throw std::invalid_argument("a document lies outside the data");
    }
  }
  return {text, starts.data(), ends.data(), static_cast<std::size_t>(starts.size())};
}

namespace {

// Whether the documents [from, to) are certainly UTF-8, seen with one look at all that they span:
// then they are as long as none begins or ends inside a character. Lines of a file are checked
// several times as fast as one by one.
bool span_is_utf8(const Documents& documents, std::size_t from, std::size_t to) {
  const std::string_view text = documents.text;
  if (from == to) return true;
  const auto begin = *std::min_element(documents.starts + from, documents.starts + to);
  const auto end = *std::max_element(documents.ends + from, documents.ends + to);
  std::int64_t bytes = 0;  // of the documents alone
  for (std::size_t i = from; i < to; ++i) bytes += documents.ends[i] - documents.starts[i];
  if (bytes < (end - begin) / 2) return false;
  const auto is_inside = [&](std::int64_t at) {
    return at < end && is_continuation_byte(text[static_cast<std::size_t>(at)]);
  };
  for (std::size_t i = from; i < to; ++i) {
    if (is_inside(documents.starts[i]) || is_inside(documents.ends[i])) return false;
  }
  may_stop(static_cast<std::size_t>(end - begin) / 16);
  return first_invalid_utf8(text.substr(static_cast<std::size_t>(begin),
                                        static_cast<std::size_t>(end - begin))) == kAllValid;
}

}  // namespace

void check_utf8(const Documents& documents, std::size_t threads) {
  const std::size_t shards = std::clamp<std::size_t>(threads, 1, documents.count + 1);
  const std::vector<std::size_t> borders = balanced_shards(documents, shards);
  // Shards are in the order of the documents, and the failure of the first one is rethrown.
  parallel_for(shards, [&](std::size_t shard) {
    if (span_is_utf8(documents, borders[shard], borders[shard + 1])) return;
    for (std::size_t i = borders[shard]; i < borders[shard + 1]; ++i) {
      const std::string_view document = documents[i];
      may_stop(document.size() / 16 + 1);
      if (const std::int64_t bad = first_invalid_utf8(document); bad != kAllValid) {
        throw std::invalid_argument("document " + std::to_string(i) + " is not UTF-8: byte " +
                                    std::to_string(bad) + " of it begins no character");
      }
    }
  });
}

}  // namespace vocabshift::bindings
