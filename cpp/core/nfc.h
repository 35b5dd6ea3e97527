// Unicode's normal form C, as the normalizer NFC makes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vocabshift {

// Valid UTF-8 in normal form C: the text itself where it is so already, otherwise in `room`. Only
// what stands around a change is taken apart and composed again; most text is looked at once. What
// is given is the same in any version of Unicode. Nothing for a text with a code point that no
// character had when the tables were made, or that `tokenizers` had no tables for. Source: Unicode
// Standard Annex #15, "Detecting Normalization Forms", with its "maybe" decided by the pairs that
// compose.
std::optional<std::string_view> to_nfc(std::string_view text, std::string& room);

}  // namespace vocabshift
