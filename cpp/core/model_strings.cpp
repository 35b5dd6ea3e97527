#include "core/model_strings.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/hash.h"
#include "core/utf8.h"

namespace vocabshift {

namespace {

constexpr std::uint64_t kUpper = 0xFFFFFFFF00000000ull;

// The byte of each code point of GPT-2's byte images (the bytes_to_unicode table), or kNoByte.
class ByteImages {
 public:
  ByteImages() {
    byte_of_.fill(kNoByte);
    std::size_t spare = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable =
          (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      byte_of_[printable ? byte : spare++] = static_cast<std::uint16_t>(byte);
    }
  }

  // False for a string that no bytes have as their image.
  bool read(std::string_view image, std::string& bytes) const {
    bytes.clear();
    for (std::size_t at = 0; at < image.size();) {
      const Decoded character = decode_utf8(image.data() + at);
      at += character.length;
      if (character.code_point >= byte_of_.size()) return false;
      const std::uint16_t byte = byte_of_[character.code_point];
      if (byte == kNoByte) return false;
      bytes.push_back(static_cast<char>(byte));
    }
    return true;
  }

 private:
  static constexpr std::uint16_t kNoByte = 256;
  std::array<std::uint16_t, 0x144> byte_of_;
};

}  // namespace

void ModelStrings::add_token(std::string_view token, TokenId id) {
  bytes_.append(token);
  begins_.push_back(bytes_.size());
  ids_.push_back(id);
}

void ModelStrings::add_merge(std::string_view left, std::string_view right) {
  const std::size_t begin = waiting_bytes_.size();
  waiting_bytes_.append(left);
  waiting_bytes_.append(right);
  waiting_.push_back({begin, begin + left.size(), waiting_bytes_.size()});
  if (waiting_.size() == kBatch) look_up_waiting();
}

bool ModelStrings::finish(TokenId max_id) {
  look_up_waiting();
  std::vector<std::uint64_t>().swap(slots_);
  std::vector<bool> taken;
  for (const TokenId id : ids_) {
    if (id > max_id) return false;
    if (id >= taken.size()) taken.resize(std::max<std::size_t>(id + 1, taken.size() * 2));
    if (taken[id]) return false;
    taken[id] = true;
  }
  return sound_;
}

void ModelStrings::index_tokens() {
  slots_.assign(std::bit_ceil(size() * 2 + 1), kFree);
  const std::size_t mask = slots_.size() - 1;
  constexpr Index kAhead = 16;  // slots that are asked for before they are needed
  std::array<std::uint64_t, kAhead> hashes;
  const auto count = static_cast<Index>(size());
  for (Index i = 0; i < count + kAhead; ++i) {
    if (i >= kAhead) {
      const std::uint64_t hash = hashes[i % kAhead];
      const std::string_view token = (*this)[i - kAhead];
      if (find(token, hash) != kNone) sound_ = false;
      std::size_t at = hash & mask;
      while (slots_[at] != kFree) at = (at + 1) & mask;
      slots_[at] = (hash & kUpper) | (i - kAhead);
    }
    if (i < count) {
      hashes[i % kAhead] = hash_bytes((*this)[i]);
      __builtin_prefetch(&slots_[hashes[i % kAhead] & mask], 1);
    }
  }
}

ModelStrings::Index ModelStrings::find(std::string_view token, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask; slots_[at] != kFree; at = (at + 1) & mask) {
    if ((slots_[at] ^ hash) & kUpper) continue;
    const auto found = static_cast<Index>(slots_[at]);
    if ((*this)[found] == token) return found;
  }
  return kNone;
}

// Three strings of each waiting merge: their memory is asked for first, and used afterwards.
void ModelStrings::look_up_waiting() {
  if (slots_.empty()) index_tokens();
  const std::size_t mask = slots_.size() - 1;
  std::array<std::array<std::uint64_t, 3>, kBatch> hashes;
  const auto strings_of = [&](const Waiting& merge) {
    const std::string_view all = waiting_bytes_;
    return std::array{all.substr(merge.begin, merge.border - merge.begin),
                      all.substr(merge.border, merge.end - merge.border),
                      all.substr(merge.begin, merge.end - merge.begin)};
  };
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const auto strings = strings_of(waiting_[i]);
    for (std::size_t j = 0; j < 3; ++j) {
      hashes[i][j] = hash_bytes(strings[j]);
      __builtin_prefetch(&slots_[hashes[i][j] & mask]);
    }
  }
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    for (const std::uint64_t hash : hashes[i]) {
      if (const std::uint64_t slot = slots_[hash & mask]; slot != kFree) {
        __builtin_prefetch(&begins_[static_cast<Index>(slot)]);
      }
    }
  }
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const auto strings = strings_of(waiting_[i]);
    const Merge merge{find(strings[0], hashes[i][0]), find(strings[1], hashes[i][1]),
                      find(strings[2], hashes[i][2])};
    sound_ &= merge.left != kNone && merge.right != kNone && merge.product != kNone;
    merges_.push_back(merge);
  }
  waiting_.clear();
  waiting_bytes_.clear();
}

EncoderModel ModelStrings::encoder_model(bool byte_level) const {
  static const ByteImages images;
  EncoderModel model;
  model.byte_level = byte_level;
  model.tokens.reserve(size());
  std::string bytes;
  for (Index i = 0; i < size(); ++i) {
    if (!byte_level) {
      bytes = (*this)[i];
    } else if (!images.read((*this)[i], bytes)) {
      bytes.assign(1, '\xFF');
      bytes += (*this)[i];
    }
    model.tokens.emplace_back(bytes, ids_[i]);
  }
  model.merges.reserve(merges_.size());
  for (const Merge& merge : merges_) {
    model.merges.push_back({ids_[merge.left], ids_[merge.right], ids_[merge.product]});
  }
  return model;
}

}  // namespace vocabshift
