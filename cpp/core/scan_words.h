// The words-patterns over a whole text: word by word (scan.h), and 64 bytes at a time where that
// gives the same.
//
// Of a block of bytes all places where a word may begin are found at once, from the bits of
// their classes: no loop over a word, and hardly a branch that depends on the text. What needs more
// than a look at a neighbour (an apostrophe before a letter, whitespace before a newline, capitals
// after a mark …) is called hard here: the block is used up to there, and next_word goes on.
// Tests hold both ways equal (tests/property/test_scan_blocks.py).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "core/char_block.h"
#include "core/platform.h"
#include "core/scan.h"
#include "core/scan_deepseek.h"

namespace vocabshift::scan {

#if VOCABSHIFT_SSE2

// Up to where the starts are known: to the first hard character, and not in a run of blanks at the
// end, for how that is cut depends on what follows.
inline unsigned known_end(const CharBlock& block, unsigned first_hard) {
  unsigned known = std::min(block.size, first_hard);
  if (known > 0 && block.white >> (known - 1) & 1) {
    known = 64 - static_cast<unsigned>(std::countl_zero(~block.white & bits_below(known)));
  }
  return known;
}

// word_starts (below) of gpt2, where nothing but a space goes with what follows it: a word begins
// with every run of a class.
template <class Rules>
std::uint64_t gpt2_word_starts(const char* at, const CharBlock& block, unsigned* known,
                               unsigned* first_hard) {
  static_assert(!Rules::kNewlineRuns && Rules::kMaxDigits == 0 && Rules::kTail == 0);
  const std::uint64_t letter = block.upper | block.lower | block.other;
  const std::uint64_t white = block.white, number = block.number;
  const std::uint64_t word = Rules::kMarksFollow ? letter | block.mark : letter;
  const std::uint64_t punctuation = ~(word | number | white);
  const std::uint64_t behind_space = block.space << 1;
  const std::uint64_t punctuation_starts = punctuation & ~(punctuation << 1) & ~behind_space;

  std::uint64_t hard = white & block.above;
  if constexpr (Rules::kMarksFollow) hard |= (word & ~(word << 1) & block.mark) | block.joiner;
  // Of a run of blanks the last one stands alone, or is a space and goes with what follows.
  std::uint64_t starts = white & ~(white << 1 & white >> 1);
  starts |= ((word & ~(word << 1)) | (number & ~(number << 1))) & ~behind_space;
  starts |= punctuation_starts;
  for (std::uint64_t left = block.apostrophe & punctuation_starts; left != 0; left &= left - 1) {
    const auto offset = static_cast<unsigned>(std::countr_zero(left));
    if (offset + 4 > block.size) {
      hard |= std::uint64_t{1} << offset;
      break;
    }
    const auto stop = static_cast<unsigned>(
        match_contraction<Rules::kFoldCase>(at + offset, at + block.size) - at);
    if (stop == offset) continue;
    starts &= ~(bits_below(stop) & ~bits_below(offset + 1));
    starts |= std::uint64_t{1} << stop;
    if constexpr (Rules::kMarksFollow) hard |= block.mark & std::uint64_t{1} << stop;
  }
  *first_hard = static_cast<unsigned>(std::countr_zero(hard));
  *known = known_end(block, *first_hard);
  return starts & block.leads & bits_below(*known);
}

// Digits that begin a group of kMaxDigits, and the first that is too far behind to tell.
template <class Rules>
std::uint64_t digit_starts(std::uint64_t number, std::uint64_t* hard) {
  if constexpr (Rules::kMaxDigits == 0) return number & ~(number << 1);
  if constexpr (Rules::kMaxDigits == 1) return number;
  static_assert(Rules::kMaxDigits <= 1 || Rules::kMaxDigits == 3);
  const std::uint64_t behind_two = number & number << 1 & number << 2;
  std::uint64_t group = number & ~(number << 1);
  std::uint64_t starts = group;
  for (int i = 0; i < 2; ++i) starts |= group = group << 3 & behind_two;
  *hard |= group << 3 & behind_two;
  return starts;
}

// The bytes of a block at which words begin, the first of the block being one; true below `*known`.
// `*first_hard` is the first hard character, 64 if there is none. Of a run of characters only the
// first byte is asked, and before it stands a byte of the character before: with bytes for
// characters the rules stay what they are. Where they look ahead from a character of several bytes,
// or count characters, it is hard.
template <class Rules>
std::uint64_t word_starts(const CharBlock& block, unsigned* known, unsigned* first_hard) {
  const std::uint64_t letter = block.upper | block.lower | block.other;
  const std::uint64_t white = block.white, newline = block.newline, number = block.number;
  constexpr bool kMarksInWords =
      Rules::kMarkedLetters || Rules::kMarksFollow || Rules::kCasedLetters;
  const std::uint64_t word = kMarksInWords ? letter | block.mark : letter;
  const std::uint64_t punctuation = ~(word | number | white);
  const std::uint64_t word_runs = word & ~(word << 1);

  std::uint64_t hard = white & block.above;
  if constexpr (Rules::kMaxDigits > 1) hard |= number & block.above;
  if constexpr (Rules::kLeadingContraction || Rules::kTrailingContraction) {
    const std::uint64_t last = std::uint64_t{1} << (block.size - 1);
    hard |= block.apostrophe & (letter >> 1 | last);
  }
  if constexpr (kMarksInWords && Rules::kMarksPunctuate) {
    hard |= word_runs & block.mark;  // or punctuation, or a prefix
  }
  if constexpr (Rules::kMarksFollow || Rules::kJoiners) hard |= block.joiner;
  std::uint64_t starts = digit_starts<Rules>(number, &hard);
  if constexpr (Rules::kCasedLetters) {
    starts |= block.upper & block.lower << 1;
    hard |= block.upper & (block.other | block.mark) << 1;
  }
  if constexpr (Rules::kHan) hard |= block.han;

  // A space goes with the punctuation after it, newlines (and slashes) with that before them.
  const std::uint64_t punctuation_starts = punctuation & ~(punctuation << 1) & ~(block.space << 1);
  std::uint64_t tail = 0;
  if constexpr (Rules::kTail > 0) {
    tail = newline & ~(newline + (newline & punctuation << 1));  // the runs that begin there
    if constexpr (Rules::kTail == 2) hard |= block.slash & newline << 1;
  }
  // Blanks before a newline would go with it. Otherwise the last one begins the next word, as any
  // single punctuation character does before a letter; newlines and digits do not.
  const std::uint64_t blank = white & ~newline;
  hard |= blank & newline >> 1;
  starts |= newline & ~tail & ~(newline << 1);
  starts |= blank & ~(blank << 1);
  starts |= blank & ~(blank >> 1);
  starts |= punctuation_starts;
  std::uint64_t prefixes = punctuation_starts;  // all bytes of these characters
  for (int i = 0; i < 3; ++i) prefixes |= prefixes << 1 & ~block.leads;
  starts |= word_runs & ~(blank << 1) & ~(prefixes << 1);

  *first_hard = static_cast<unsigned>(std::countr_zero(hard));
  *known = known_end(block, *first_hard);
  return starts & block.leads & bits_below(*known);
}

// What a block gave: where its first word begins that is not sure to end within, and up to where
// it is to be cut word by word.
struct BlockEnd {
  const char* next;
  const char* hard_until;
};

// Calls `pre_token` for the words that begin at `at` and are sure to end within the block, which is
// shorter where the text is: `left` bytes, not 0.
template <class Rules, class F>
BlockEnd words_of_block(const char* at, std::size_t left, F& pre_token) {
  char copy[CharBlock::kBytes];
  const char* bytes = at;
  if (left < CharBlock::kBytes) {
    std::memset(copy, 0, sizeof(copy));
    std::memcpy(copy, at, left);
    bytes = copy;
  }
  CharBlock block(bytes);
  if (left < block.size) block.size = static_cast<unsigned>(left);
  unsigned known, hard;
  std::uint64_t starts;
  if constexpr (std::is_same_v<Rules, Deepseek>) {
    starts = deepseek_starts(block, &hard);
    known = known_end(block, hard);
    starts &= block.leads & bits_below(known);
  } else if constexpr (Rules::kSpacePrefixOnly) {
    starts = gpt2_word_starts<Rules>(at, block, &known, &hard);
  } else {
    starts = word_starts<Rules>(block, &known, &hard);
  }
  const char* begin = at;
  for (starts &= ~std::uint64_t{1}; starts != 0; starts &= starts - 1) {
    const char* const end = at + std::countr_zero(starts);
    pre_token(std::string_view(begin, end));
    begin = end;
  }
  // Where hard characters stand close together, the way word by word is taken for longer.
  constexpr std::ptrdiff_t kFew = 16;
  const char* until = hard < block.size ? at + hard + 1 : begin;
  if (until - at < kFew) until = at + 2 * kFew;
  return {begin, until};
}

#endif

template <class Rules, class F>
void words(std::string_view text, F&& pre_token) {
  const char* at = text.data();
  const char* const end = at + text.size();
#if VOCABSHIFT_SSE2
  constexpr std::ptrdiff_t kLeast = 16;  // of fewer bytes a block is not worth its while
  while (end - at >= kLeast) {
    const BlockEnd block = words_of_block<Rules>(at, static_cast<std::size_t>(end - at), pre_token);
    at = block.next;
    while (at < block.hard_until && at < end) {
      const char* const stop = next_word<Rules>(at, end);
      pre_token(std::string_view(at, stop));
      at = stop;
    }
  }
#endif
  while (at < end) {
    const char* const stop = next_word<Rules>(at, end);
    pre_token(std::string_view(at, stop));
    at = stop;
  }
}

}  // namespace vocabshift::scan
