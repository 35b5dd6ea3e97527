#include "core/model_strings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <unordered_map>

#include "core/hash.h"
#include "core/platform.h"
#include "core/utf8.h"

namespace vocabshift {

namespace {

constexpr std::uint64_t kUpper = 0xFFFFFFFF00000000ull;

// GPT-2's byte images (the bytes_to_unicode table): the byte of each code point, or kNoByte; and
// the code point of each byte.
class ByteImages {
 public:
  ByteImages() {
    byte_of_.fill(kNoByte);
    std::size_t spare = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable =
          (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const std::size_t image = printable ? byte : spare++;
      byte_of_[image] = static_cast<std::uint16_t>(byte);
      image_of_[byte] = static_cast<char16_t>(image);
    }
  }

  void append(std::string_view bytes, std::string& to) const {
    for (const char byte : bytes) append_utf8(image_of_[static_cast<unsigned char>(byte)], to);
  }

  // Writes the bytes of an image to `to`, where there is room for as many, and returns their end;
  // null for a string that no bytes have as their image.
  char* read(std::string_view image, char* to) const {
    for (std::size_t at = 0; at < image.size();) {
      const Decoded character = decode_utf8(image.data() + at);
      at += character.length;
      if (character.code_point >= byte_of_.size()) return nullptr;
      const std::uint16_t byte = byte_of_[character.code_point];
      if (byte == kNoByte) return nullptr;
      *to++ = static_cast<char>(byte);
    }
    return to;
  }

 private:
  static constexpr std::uint16_t kNoByte = 256;
  std::array<std::uint16_t, 0x144> byte_of_;
  std::array<char16_t, 256> image_of_;
};

const ByteImages& byte_images() {
  static const ByteImages images;
  return images;
}

}  // namespace

void ModelStrings::add_token(std::string_view token, TokenId id) {
  bytes_.append(token);
  begins_.push_back(bytes_.size());
  ids_.push_back(id);
}

void ModelStrings::add_image(std::string_view bytes, TokenId id) {
  byte_images().append(bytes, bytes_);
  add_token({}, id);
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
      prefetch_to_write(&slots_[hashes[i % kAhead] & mask]);
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

// The two parts of each waiting merge: their memory is asked for first, and used afterwards. Its
// product is nearly always the token after the last product, or that one again.
void ModelStrings::look_up_waiting() {
  if (slots_.empty()) index_tokens();
  const std::size_t mask = slots_.size() - 1;
  std::array<std::array<std::uint64_t, 2>, kBatch> hashes;
  const auto text_of = [&](std::size_t begin, std::size_t end) {
    return std::string_view(waiting_bytes_).substr(begin, end - begin);
  };
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const auto [begin, border, end] = waiting_[i];
    hashes[i] = {hash_bytes(text_of(begin, border)), hash_bytes(text_of(border, end))};
    for (const std::uint64_t hash : hashes[i]) prefetch_to_read(&slots_[hash & mask]);
  }
  const auto each_slot = [&](auto&& visit) {
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      for (const std::uint64_t hash : hashes[i]) {
        if (const std::uint64_t slot = slots_[hash & mask]; slot != kFree) {
          visit(static_cast<Index>(slot));
        }
      }
    }
  };
  each_slot([&](Index token) { prefetch_to_read(&begins_[token]); });
  each_slot([&](Index token) { prefetch_to_read(&bytes_[begins_[token]]); });
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const auto [begin, border, end] = waiting_[i];
    const std::string_view whole = text_of(begin, end);
    Merge merge{find(text_of(begin, border), hashes[i][0]),
                find(text_of(border, end), hashes[i][1]), kNone};
    for (const Index guess : {last_product_ + 1, last_product_}) {
      if (merge.product == kNone && guess < size() && (*this)[guess] == whole) {
        merge.product = guess;
      }
    }
    if (merge.product == kNone) merge.product = find(whole, hash_bytes(whole));
    sound_ &= merge.left != kNone && merge.right != kNone && merge.product != kNone;
    last_product_ = merge.product;
    merges_.push_back(merge);
  }
  waiting_.clear();
  waiting_bytes_.clear();
}

std::optional<TokenId> ModelStrings::find(std::string_view token) const {
  const Index found = find(token, hash_bytes(token));
  return found == kNone ? std::nullopt : std::optional(ids_[found]);
}

std::vector<ModelStrings::Index> ModelStrings::by_id() const {
  std::vector<Index> order(size());
  std::iota(order.begin(), order.end(), Index{0});
  if (!std::is_sorted(ids_.begin(), ids_.end())) {
    std::sort(order.begin(), order.end(), [&](Index a, Index b) { return ids_[a] < ids_[b]; });
  }
  return order;
}

ModelStrings ModelStrings::extended(const std::vector<std::pair<std::string_view, TokenId>>& tokens,
                                    const Texts& merges, bool merges_first) const {
  ModelStrings longer;
  longer.bytes_ = bytes_;
  longer.begins_ = begins_;
  longer.ids_ = ids_;
  for (const auto& [token, id] : tokens) longer.add_token(token, id);
  if (!merges_first) longer.merges_ = merges_;
  for (const auto& [left, right] : merges) longer.add_merge(left, right);
  longer.look_up_waiting();
  if (merges_first) {
    longer.merges_.insert(longer.merges_.end(), merges_.begin(), merges_.end());
  }
  return longer;
}

std::vector<bool> ModelStrings::are_merges(const Texts& pairs) const {
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> asked;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Index left = find(pairs[i].first, hash_bytes(pairs[i].first));
    const Index right = find(pairs[i].second, hash_bytes(pairs[i].second));
    if (left != kNone && right != kNone) asked[Pair{left, right}.key()].push_back(i);
  }
  std::vector<bool> found(pairs.size());
  for (const Merge& merge : merges_) {
    if (asked.empty()) break;
    const auto of_pair = asked.find(Pair{merge.left, merge.right}.key());
    if (of_pair == asked.end()) continue;
    for (const std::size_t i : of_pair->second) found[i] = true;
    asked.erase(of_pair);
  }
  return found;
}

EncoderModel ModelStrings::encoder_model(bool byte_level) const {
  const ByteImages& images = byte_images();
  EncoderModel model;
  model.byte_level = byte_level;
  model.ids = ids_;
  if (byte_level) {
    std::string bytes(bytes_.size() + size(), '\0');  // no token has more than its 0xFF besides
    std::vector<std::size_t> begins{0};
    begins.reserve(size() + 1);
    char* end = bytes.data();
    for (Index i = 0; i < size(); ++i) {
      const std::string_view token = (*this)[i];
      if (char* const read = images.read(token, end)) {
        end = read;
      } else {
        *end++ = '\xFF';
        end = std::copy(token.begin(), token.end(), end);
      }
      begins.push_back(static_cast<std::size_t>(end - bytes.data()));
    }
    bytes.resize(begins.back());
    bytes.shrink_to_fit();
    model.tokens = {std::move(bytes), std::move(begins)};
  } else {
    model.tokens = {bytes_, {begins_.begin(), begins_.end()}};
  }
  model.merges.reserve(merges_.size());
  for (const Merge& merge : merges_) {
    model.merges.push_back({ids_[merge.left], ids_[merge.right], ids_[merge.product]});
  }
  return model;
}

}  // namespace vocabshift
