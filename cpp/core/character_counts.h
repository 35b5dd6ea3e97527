// How often each character stands in a text. Knows nothing of vocabularies.
#pragma once

#include <utility>
#include <vector>

#include "core/threads.h"
#include "core/types.h"

namespace vocabshift {

// (code point, occurrences) of every character of the documents (valid UTF-8), by code point.
std::vector<std::pair<char32_t, Count>> count_characters(const Documents& documents,
                                                         std::size_t threads);

}  // namespace vocabshift
