#include "core/encode.h"

#include <algorithm>
#include <cstring>

#include "core/utf8.h"

namespace vocabshift {

namespace {

constexpr std::size_t kCacheSlots = std::size_t{1} << 16;

}  // namespace

Encoder::Scratch::Scratch() : cache_(kCacheSlots, CacheSlot{}) {}

Encoder::Encoder(const EncoderModel& model)
    : merges_(model.merges.size()),
      late_merges_(0),
      byte_level_(model.byte_level),
      ignore_merges_(model.ignore_merges),
      byte_fallback_(model.byte_fallback),
      fuse_unk_(model.fuse_unk),
      unk_(model.unk) {
  byte_ids_.fill(kNoToken);
  for (const auto& [text, id] : model.tokens) {
    strings_.add(text);
    ids_.push_back(id);
  }
  for (int byte = 0; byte < 256; ++byte) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    const char raw = static_cast<char>(byte);
    const char piece[] = {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'};
    const TokenId found =
        strings_.find(byte_level_ ? std::string_view(&raw, 1) : std::string_view(piece, 6));
    if (found != kNoToken) byte_ids_[static_cast<std::size_t>(byte)] = ids_[found];
  }
  for (std::size_t rank = 0; rank < model.merges.size(); ++rank) {
    const auto& merge = model.merges[rank];
    merges_.set({merge.left, merge.right}, static_cast<std::uint32_t>(rank), merge.product);
  }
  if (may_lose_symbols(model)) return;
  std::vector<std::uint32_t> string_of;  // token id -> index into strings_
  for (std::uint32_t i = 0; i < ids_.size(); ++i) {
    if (ids_[i] >= string_of.size()) string_of.resize(ids_[i] + 1, kNoToken);
    string_of[ids_[i]] = i;
  }
  std::vector<std::string_view> products;
  products.reserve(model.merges.size());
  for (const auto& merge : model.merges) products.push_back(strings_[string_of[merge.product]]);
  cutter_ = WordCutter(products, model.space);
  split_off_late_merges(model);
}

// Whether a character may vanish or fuse with its neighbour before merging, so that what stands on
// both sides of a cut could meet: then pieces are never cut.
bool Encoder::may_lose_symbols(const EncoderModel& model) const {
  const bool all_bytes = std::find(byte_ids_.begin(), byte_ids_.end(), kNoToken) == byte_ids_.end();
  if (byte_level_) return !all_bytes;
  for (const auto& merge : model.merges) {  // byte pieces stand for characters of any class
    for (const TokenId part : {merge.left, merge.right}) {
      if (std::find(byte_ids_.begin(), byte_ids_.end(), part) != byte_ids_.end()) return true;
    }
  }
  return byte_fallback_ ? !all_bytes : unk_ == kNoToken || fuse_unk_;
}

// Once no rank below the crossing rank applies, later ranks are all that can: unless an earlier
// merge has a part that only a later one makes (never so in trained merges).
void Encoder::split_off_late_merges(const EncoderModel& model) {
  const std::uint32_t crossing_rank = cutter_.crossing_rank();
  if (crossing_rank == kNoRank) return;
  std::vector<std::uint32_t> made_at;  // by token: 1 + the last rank that makes it, 0 for symbols
  for (std::uint32_t rank = 0; rank < model.merges.size(); ++rank) {
    const TokenId product = model.merges[rank].product;
    if (product >= made_at.size()) made_at.resize(product + 1, 0);
    made_at[product] = rank + 1;  // a pair listed twice has its later rank
  }
  const auto is_late = [&](TokenId token) {
    return token < made_at.size() && made_at[token] > crossing_rank;
  };
  std::uint32_t first = crossing_rank;
  for (std::uint32_t rank = 0; rank < crossing_rank; ++rank) {
    const auto& merge = model.merges[rank];
    if (is_late(merge.left) || is_late(merge.right)) first = 0;
  }
  late_merges_ = MergeTable(model.merges.size() - first);
  for (std::uint32_t rank = first; rank < model.merges.size(); ++rank) {
    const auto& merge = model.merges[rank];
    late_merges_.set({merge.left, merge.right}, rank, merge.product);
  }
}

TokenId Encoder::id_of(std::string_view character) const {
  const TokenId found = strings_.find(character);
  return found == kNoToken ? kNoToken : ids_[found];
}

void Encoder::symbols_of(std::string_view text, std::vector<TokenId>& out) const {
  // As in `tokenizers`, an unknown character waits for the next known one, or the end; byte pieces
  // of other characters go before it (which only shows where some of the 256 pieces are missing).
  bool unknown_waits = false;
  const auto push_waiting = [&] {
    if (unknown_waits && unk_ != kNoToken) out.push_back(unk_);
    unknown_waits = false;
  };
  const auto push_unknown = [&] {
    if (!fuse_unk_) push_waiting();
    unknown_waits = true;
  };
  const auto push = [&](TokenId id) {
    push_waiting();
    out.push_back(id);
  };
  if (byte_level_) {
    for (const char byte : text) {
      const TokenId id = byte_ids_[static_cast<unsigned char>(byte)];
      if (id != kNoToken) {
        push(id);
      } else {
        push_unknown();
      }
    }
    push_waiting();
    return;
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, decode_utf8(text.data() + at).length);
    at += character.size();
    if (const TokenId id = id_of(character); id != kNoToken) {
      push(id);
      continue;
    }
    const auto byte_id = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
    if (byte_fallback_ && std::all_of(character.begin(), character.end(),
                                      [&](char byte) { return byte_id(byte) != kNoToken; })) {
      for (const char byte : character) out.push_back(byte_id(byte));
    } else {
      push_unknown();
    }
  }
  push_waiting();
}

bool Encoder::rebuilds(std::string_view spelling, TokenId id, Scratch& scratch) const {
  std::vector<TokenId> symbols;
  symbols_of(spelling, symbols);
  merge_by_rank(merges_, symbols, kNoRank, scratch.merging_);
  return symbols.size() == 1 && symbols[0] == id;
}

void Encoder::encode_word_uncached(std::string_view word, bool is_piece, Scratch& scratch,
                                   std::vector<TokenId>& out) const {
  if (is_piece && ignore_merges_) {
    if (const TokenId id = id_of(word); id != kNoToken) {
      out.push_back(id);
      return;
    }
  }
  std::vector<TokenId>& symbols = scratch.ids_;
  symbols.clear();
  symbols_of(word, symbols);
  merge_by_rank(merges_, symbols, cutter_.crossing_rank(), scratch.merging_);
  out.insert(out.end(), symbols.begin(), symbols.end());
}

void Encoder::encode_word(const Scratch::Word& word, Scratch& scratch,
                          std::vector<TokenId>& out) const {
  const std::string_view text = word.text;
  if (text.size() > Scratch::kCachedBytes) {
    return encode_word_uncached(text, word.is_piece, scratch, out);
  }
  Scratch::CacheSlot& slot = scratch.cache_[word.hash & (kCacheSlots - 1)];
  if (slot.hash == word.hash && slot.length == text.size() && slot.is_piece == word.is_piece &&
      std::memcmp(slot.bytes, text.data(), text.size()) == 0) {
    out.insert(out.end(), slot.ids, slot.ids + slot.tokens);
    return;
  }
  const std::size_t before = out.size();
  encode_word_uncached(text, word.is_piece, scratch, out);
  const std::size_t tokens = out.size() - before;
  if (tokens > Scratch::kCachedTokens) return;
  slot.hash = word.hash;
  slot.length = static_cast<std::uint8_t>(text.size());
  slot.tokens = static_cast<std::uint8_t>(tokens);
  slot.is_piece = word.is_piece;
  std::memcpy(slot.bytes, text.data(), text.size());
  std::copy(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(), slot.ids);
}

void Encoder::encode_piece(std::string_view piece, Scratch& scratch,
                           std::vector<TokenId>& out) const {
  if (piece.empty()) return;
  const auto wait = [&](std::string_view text, bool is_piece, bool ends_piece) {
    std::uint64_t hash = 0;
    if (text.size() <= Scratch::kCachedBytes) {
      hash = word_key(text).hash();
      const auto* slot = reinterpret_cast<const char*>(&scratch.cache_[hash & (kCacheSlots - 1)]);
      __builtin_prefetch(slot);
      __builtin_prefetch(slot + 64);
    }
    scratch.waiting_.push_back({text, hash, is_piece, ends_piece});
  };
  // Where no merge reaches across a cut, a piece that fits into the cache gains nothing from one.
  const bool is_small = cutter_.crossing_rank() == kNoRank && piece.size() <= Scratch::kCachedBytes;
  std::string_view word = is_small ? piece : cutter_.next_word(piece);
  if (word.size() == piece.size() || (ignore_merges_ && id_of(piece) != kNoToken)) {
    wait(piece, true, true);
  } else {
    wait(word, false, false);
    for (std::string_view rest = piece.substr(word.size()); !rest.empty();
         rest.remove_prefix(word.size())) {
      word = cutter_.next_word(rest);
      wait(word, false, word.size() == rest.size());
    }
  }
  if (scratch.waiting_.size() >= Scratch::kWaiting) flush(scratch, out);
}

void Encoder::flush(Scratch& scratch, std::vector<TokenId>& out) const {
  std::size_t begin = out.size();  // of the piece under way
  for (const Scratch::Word& word : scratch.waiting_) {
    encode_word(word, scratch, out);
    if (!word.ends_piece) continue;
    if (cutter_.crossing_rank() != kNoRank && out.size() - begin > 1) {
      std::vector<TokenId>& symbols = scratch.ids_;
      symbols.assign(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end());
      merge_by_rank(late_merges_, symbols, kNoRank, scratch.merging_);
      out.resize(begin);
      out.insert(out.end(), symbols.begin(), symbols.end());
    }
    begin = out.size();
  }
  scratch.waiting_.clear();
}

}  // namespace vocabshift
