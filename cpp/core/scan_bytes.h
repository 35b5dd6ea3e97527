// A step that cuts around runs of certain bytes: of the steps that `tokenizers` runs after its
// ByteLevel, which see every byte as a character. Its pieces may begin and end inside characters.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace vocabshift {

class ByteRuns {
 public:
  // A match is a run of exactly `length` of the bytes, the leftmost first; 0: of as many as follow
  // each other.
  ByteRuns(std::string_view bytes, std::size_t length) : length_(length) {
    for (const char byte : bytes) set_[static_cast<unsigned char>(byte)] = true;
  }

  template <class F>
  void split(std::string_view text, F&& pre_token) const {
    const auto in_set = [&](std::size_t at) { return set_[static_cast<unsigned char>(text[at])]; };
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      while (end < text.size() && in_set(end) && (length_ == 0 || end - at < length_)) ++end;
      if (end == at || end - at < length_) {
        at = end + (end == at);
        continue;
      }
      if (begin < at) pre_token(text.substr(begin, at - begin));
      pre_token(text.substr(at, end - at));
      begin = at = end;
    }
    if (begin < text.size()) pre_token(text.substr(begin));
  }

 private:
  std::array<bool, 256> set_{};
  std::size_t length_;
};

}  // namespace vocabshift
