#include "core/vocabulary.h"

#include <bit>

namespace vocabshift {

void Vocabulary::reserve(std::size_t tokens) {
  if (size() > 0 || tokens == 0) return;
  slots_.assign(std::bit_ceil((tokens + 1) * 2), kNoToken);
  begins_.reserve(tokens + 1);
}

TokenId Vocabulary::add(std::string_view bytes) {
  const TokenId id = size();
  bytes_.append(bytes);
  begins_.push_back(bytes_.size());
  if ((static_cast<std::size_t>(id) + 1) * 2 > slots_.size()) {
    slots_.assign(slots_.empty() ? 1024 : slots_.size() * 2, kNoToken);
    const std::size_t mask = slots_.size() - 1;
    for (TokenId other = 0; other < id; ++other) {
      std::size_t at = hash_bytes((*this)[other]) & mask;
      while (slots_[at] != kNoToken) at = (at + 1) & mask;
      slots_[at] = other;
    }
  }
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash_bytes(bytes) & mask;
  while (slots_[at] != kNoToken) at = (at + 1) & mask;  // a double comes after its first
  slots_[at] = id;
  return id;
}

TokenId Vocabulary::find(std::string_view bytes) const {
  if (slots_.empty()) return kNoToken;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash_bytes(bytes) & mask; slots_[at] != kNoToken; at = (at + 1) & mask) {
    if ((*this)[slots_[at]] == bytes) return slots_[at];
  }
  return kNoToken;
}

Vocabulary byte_vocabulary() {
  Vocabulary vocabulary;
  const auto is_printable = [](int byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
  };
  for (const bool printable : {true, false}) {
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      if (is_printable(byte) == printable) vocabulary.add({&c, 1});
    }
  }
  return vocabulary;
}

}  // namespace vocabshift
