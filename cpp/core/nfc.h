// Whether a text is in Unicode's normal form C, so that a normalizer NFC would leave it alone.
#pragma once

#include <string_view>

namespace vocabshift {

// Valid UTF-8. True only if NFC does not change the text, in any version of Unicode. False for all
// other texts, and for some that NFC leaves alone: those with a code point that no character had
// when the tables were made, with Hangul's vowels and final consonants by themselves, or with a
// mark that may compose after a composed character. Source: Unicode Standard Annex #15, "Detecting
// Normalization Forms", with its "maybe" decided by the pairs that compose.
bool is_nfc(std::string_view text);

}  // namespace vocabshift
