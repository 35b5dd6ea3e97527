// How many tokens a corpus has, without keeping them.
#pragma once

#include "core/encode.h"
#include "core/pre_tokenize.h"
#include "core/threads.h"

namespace vocabshift {

// Tokens of all documents, encoded piece by piece.
Count count_tokens(const Encoder& encoder, const PreTokenizer& pre_tokenizer,
                   const Documents& documents, std::size_t threads);

}  // namespace vocabshift
