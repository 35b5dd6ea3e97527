// Where the tokens of encoded lines lie in the lines, and which stay where a line changes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/text_encoder.h"
#include "core/token_groups.h"

namespace vocabshift {

using Places = std::span<const std::int64_t>;  // bytes into a line's UTF-8, one for each token

// What each token stands for: id has the bytes [bounds[id], bounds[id + 1]).
struct TokenBytes {
  std::string_view bytes;
  std::span<const std::int64_t> bounds;
};

struct PlacedLines {
  static constexpr std::int8_t kInexact = -1;

  std::vector<std::int64_t> starts;  // of each token
  std::vector<std::int64_t> ends;    // exclusive
  // Of each line: 0 where the bytes of its tokens are the line, 1 where they are a space and the
  // line. Otherwise kInexact, and places are those in the tokens' own bytes.
  std::vector<std::int8_t> spaces;
};

// std::invalid_argument for ids or offsets that do not fit.
PlacedLines place_tokens(const DocumentSource& lines, const EncodedDocuments& encoded,
                         const TokenBytes& tokens);

// The tokens of lines with their places.
struct TokensInLines {
  EncodedDocuments encoded;
  Places starts;
  Places ends;
};

// A word in each line that another word takes the place of.
struct ChangedWords {
  std::span<const std::int64_t> words;   // begin, end, and by how much it grew, of each line
  std::span<const std::int64_t> first;   // of each line: its first place in n_text
  std::span<const std::int32_t> n_text;  // bytes that are not spaces before each place
};

struct KeptTokens {
  std::vector<std::int64_t> kept;     // of each line: of those outside, the tokens that stay
  std::vector<std::int64_t> outside;  // tokens with text outside of the changed word
};

// A token stays where `after` has its id with text at the same place; a token with text behind the
// word that does not begin in front of it has moved with that text. std::invalid_argument for
// arrays that do not fit.
KeptTokens kept_tokens(const TokensInLines& before, const TokensInLines& after,
                       const ChangedWords& changed);

}  // namespace vocabshift
