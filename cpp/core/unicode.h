// Category and script of a code point, as the regex engine of `tokenizers` sees them. The tables
// are generated (cpp/tables/generate.py); Python's unicodedata and regex give other answers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vocabshift {

// Bits of a character class; a code point may have several (no-break space: kSpace alone).
enum CharClass : std::uint8_t {
  kUpper = 1,                                // \p{Lu} or \p{Lt}
  kLower = 2,                                // \p{Ll}
  kOtherLetter = 4,                          // \p{Lm} or \p{Lo}
  kMark = 8,                                 // \p{M}
  kNumber = 16,                              // \p{N}
  kSpace = 32,                               // \s
  kNewline = 64,                             // \r or \n, which are kSpace too
  kSymbol = 128,                             // \p{P} or \p{S}; char_class leaves it out
  kLetter = kUpper | kLower | kOtherLetter,  // \p{L}
};

namespace tables {
inline constexpr unsigned kBlockBits = 7;
extern const std::uint16_t kClassIndex[];
extern const std::uint8_t kClassBlocks[];
extern const std::uint16_t kScriptIndex[];
extern const std::uint8_t kScriptBlocks[];
extern const std::size_t kScriptCount;
extern const char* const kScriptNames[];
extern const std::uint8_t kScriptHan;
extern const std::uint16_t kCategoryIndex[];  // category_tables.cpp; code_set.cpp reads it
extern const std::uint8_t kCategoryBlocks[];
extern const std::uint16_t kNfcIndex[];
extern const std::uint16_t kNfcBlocks[];
extern const std::uint64_t kCompositions[];  // second << 32 | first, ascending
extern const char32_t kComposed[];           // what each pair composes to
extern const std::size_t kCompositionCount;
extern const char32_t kDecomposed[];       // what decomposes, but Hangul; ascending
extern const std::uint16_t kPartsBegin[];  // in kParts, for each and the end
extern const char32_t kParts[];
extern const std::size_t kDecomposedCount;

// What a code point does to the normal form C of a text.
enum NfcValue : std::uint16_t {
  kNfcClass = 255,      // its canonical combining class
  kNfcSecond = 256,     // it composes with some starter before it
  kNfcUnsure = 512,     // it is changed, or not known, or Hangul's that composes with what precedes
  kNfcComposed = 1024,  // it decomposes, and is composed again
  kNfcUnknown = 2048,   // to the tables, or to the libraries of `tokenizers`
};

inline std::uint16_t nfc_value(char32_t code_point) {
  const std::size_t block = kNfcIndex[code_point >> kBlockBits];
  return kNfcBlocks[block << kBlockBits | (code_point & ((1u << kBlockBits) - 1))];
}
}  // namespace tables

// All class bits of a code point; 0 for controls, formats and unassigned.
inline std::uint8_t class_bits(char32_t code_point) {
  const std::size_t block = tables::kClassIndex[code_point >> tables::kBlockBits];
  return tables::kClassBlocks[block << tables::kBlockBits |
                              (code_point & ((1u << tables::kBlockBits) - 1))];
}

// The same without kSymbol: 0 for punctuation and symbols too.
inline std::uint8_t char_class(char32_t code_point) { return class_bits(code_point) & ~kSymbol; }

// Number of the code point's script: an index into script_name; 0 is "Unknown".
inline std::uint8_t script_of(char32_t code_point) {
  const std::size_t block = tables::kScriptIndex[code_point >> tables::kBlockBits];
  return tables::kScriptBlocks[block << tables::kBlockBits |
                               (code_point & ((1u << tables::kBlockBits) - 1))];
}

inline bool is_han(char32_t code_point) { return script_of(code_point) == tables::kScriptHan; }

}  // namespace vocabshift
