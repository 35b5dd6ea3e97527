// Documents from Python: parts of a buffer of bytes.
#pragma once

#include <string_view>

#include "bindings/arrays.h"
#include "core/threads.h"

namespace vocabshift::bindings {

// A contiguous bytes-like object as a view; the caller keeps `info` alive while the view is used.
std::string_view view_of(const py::buffer_info& info);

// The documents data[starts[i]:ends[i]], every offset checked.
Documents documents_of(const py::buffer_info& info, const IntArray& starts, const IntArray& ends);

// Every door that takes text as bytes asks this before it hands the text on: the core's scanners
// rely on whole characters, and would read past the end of a broken one. std::invalid_argument
// names the first document that is not UTF-8, and the byte in it. To be called in a LongCall.
void check_utf8(const Documents& documents, std::size_t threads);

}  // namespace vocabshift::bindings
