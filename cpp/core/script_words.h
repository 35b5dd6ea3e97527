// Words by script: the script of a word is that of its first letter.
//
// Letters of no script of their own (Common, Inherited: modifier letters, the long vowel mark of
// the kana) are passed over; a word without any other letter belongs to no script.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/pre_tokenize.h"
#include "core/threads.h"

namespace vocabshift {

// Words as offsets into the text of the documents, in order.
struct ScriptWords {
  std::vector<std::int64_t> starts;   // bytes
  std::vector<std::int64_t> ends;     // bytes, exclusive
  std::vector<std::uint8_t> scripts;  // as script_of numbers them; 0 for no script
};

// Number of the script of a word of valid UTF-8, 0 for none.
std::uint8_t script_of_word(std::string_view word);

// The words of all documents. The result does not depend on the thread count.
ScriptWords words_by_script(const PreTokenizer& pre_tokenizer, const Documents& documents,
                            std::size_t threads);

}  // namespace vocabshift
