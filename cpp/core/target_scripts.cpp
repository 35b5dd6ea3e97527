#include "core/target_scripts.h"

#include <algorithm>
#include <stdexcept>

#include "core/unicode.h"
#include "core/utf8.h"

namespace vocabshift {

TargetScripts::TargetScripts(std::vector<Range> ranges) : ranges_(std::move(ranges)) {
  std::sort(ranges_.begin(), ranges_.end());
  for (const auto& [first, last] : ranges_) {
    if (first > last || last >= 0x110000) throw std::invalid_argument("not a code point range");
  }
}

bool TargetScripts::contains(char32_t c) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const Range& range) { return range.first <= c && c <= range.second; });
}

bool TargetScripts::in_word(std::string_view word) const {
  for (std::size_t at = 0; at < word.size();) {
    const auto lead = static_cast<unsigned char>(word[at]);
    if (lead < 0x80 || is_continuation_byte(word[at])) {
      ++at;
      continue;
    }
    if (at + (lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4) > word.size()) return false;
    const Decoded next = decode_utf8(word.data() + at);
    if (contains(next.code_point)) return true;
    at += next.length;
  }
  return false;
}

SentenceWeights::SentenceWeights(TargetScripts scripts, std::set<char32_t> terminals,
                                 std::uint32_t unit, std::uint32_t target)
    : scripts_(std::move(scripts)), terminals_(std::move(terminals)), unit_(unit), target_(target) {
  if (unit == 0 || target == 0) throw std::invalid_argument("a weight must be above 0");
}

void SentenceWeights::split(std::string_view document, std::vector<Sentence>& sentences) const {
  sentences.clear();
  std::uint64_t words = 0, target_words = 0;
  bool in_word = false, word_is_target = false;
  const auto end_word = [&] {
    words += in_word;
    target_words += word_is_target;
    in_word = word_is_target = false;
  };
  const auto end_sentence = [&](std::size_t end) {
    end_word();
    // unit + share * (target - unit), rounded half up; the difference may be negative.
    const std::uint64_t others = words - target_words;
    const std::uint64_t sum = others * unit_ + target_words * target_;
    const std::uint64_t factor = words == 0 ? unit_ : (2 * sum + words) / (2 * words);
    sentences.push_back({end, static_cast<std::uint32_t>(factor)});
    words = target_words = 0;
  };
  for (std::size_t at = 0; at < document.size();) {
    const Decoded next = decode_utf8(document.data() + at);
    at += next.length;
    const std::uint8_t bits = char_class(next.code_point);
    if (bits & kSpace) {
      end_word();
    } else {
      in_word = true;
      if (!word_is_target && next.code_point >= 0x80) {
        word_is_target = scripts_.contains(next.code_point);
      }
    }
    const bool may_end = (bits & ~(kSpace | kNewline)) == 0;  // no letter, mark or number does
    if (may_end && terminals_.contains(next.code_point)) end_sentence(at);
  }
  if (sentences.empty() || sentences.back().end < document.size()) end_sentence(document.size());
}

}  // namespace vocabshift
