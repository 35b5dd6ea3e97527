// The two long values of a tokenizer.json, model.vocab and model.merges, read in one pass.
//
// They are nearly all of such a file, and a general reader makes half a million strings and lists
// of them. Reads what such files hold and nothing more: text that is not plainly so (an id that is
// no small whole number, a key given twice, half a surrogate pair, merges before the vocabulary …)
// is left to a general reader, which then reports what is wrong with it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/model_strings.h"
#include "core/types.h"

namespace vocabshift {

struct ModelJson {
  ModelStrings strings;  // sound
  Span vocab, merges;    // the two values in the text, the vocabulary first
};

// Nothing is promised of the rest of the text: it is JSON exactly if it is with the two values
// replaced by others.
std::optional<ModelJson> read_model_json(std::string_view text, TokenId max_id);

// The two values as such a file has them: {"a":0,…} by id, and [["a","b"],…] by rank. Nothing is
// escaped that need not be.
std::string vocab_json(const ModelStrings& strings);
std::string merges_json(const ModelStrings& strings);

}  // namespace vocabshift
