#include "core/vocabulary.h"

#include <array>
#include <bit>
#include <utility>

#include "core/platform.h"

namespace vocabshift {

Vocabulary::Vocabulary(std::string bytes, std::vector<std::size_t> begins)
    : bytes_(std::move(bytes)), begins_(std::move(begins)) {
  index(std::bit_ceil((std::size_t{size()} + 1) * 2));
}

// Slots are asked for some tokens before they are needed.
void Vocabulary::index(std::size_t slots) {
  slots_.assign(slots, kNoToken);
  const std::size_t mask = slots - 1;
  constexpr TokenId kAhead = 16;
  std::array<std::size_t, kAhead> places;
  const TokenId count = size();
  for (TokenId id = 0; id < count + kAhead; ++id) {
    if (id >= kAhead) {
      std::size_t at = places[id % kAhead];
      while (slots_[at] != kNoToken) at = (at + 1) & mask;
      slots_[at] = id - kAhead;
    }
    if (id < count) {
      places[id % kAhead] = hash_bytes((*this)[id]) & mask;
      prefetch_to_write(&slots_[places[id % kAhead]]);
    }
  }
}

TokenId Vocabulary::add(std::string_view bytes) {
  const TokenId id = size();
  bytes_.append(bytes);
  begins_.push_back(bytes_.size());
  if ((static_cast<std::size_t>(id) + 1) * 2 > slots_.size()) {
    index(slots_.empty() ? 1024 : slots_.size() * 2);
    return id;
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
