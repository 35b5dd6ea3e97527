#include "core/encode.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/stop.h"
#include "core/utf8.h"

namespace vocabshift {

Encoder::Encoder(EncoderModel model)
    : strings_(std::move(model.tokens)),
      ids_(std::move(model.ids)),
      merges_(model.merges),
      byte_level_(model.byte_level),
      ignore_merges_(model.ignore_merges),
      byte_fallback_(model.byte_fallback),
      fuse_unk_(model.fuse_unk),
      unk_(model.unk) {
  byte_ids_.fill(kNoToken);
  for (int byte = 0; byte < 256; ++byte) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    const char raw = static_cast<char>(byte);
    const char piece[] = {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'};
    const TokenId found =
        strings_.find(byte_level_ ? std::string_view(&raw, 1) : std::string_view(piece, 6));
    if (found != kNoToken) byte_ids_[static_cast<std::size_t>(byte)] = ids_[found];
  }
  if (!may_lose_symbols(model)) prepare_words(model);
  prepare_short_tokens();
}

// Words and pieces that are a token: the short ones are in the cache from the beginning. Others are
// looked for (skipped_to_) where merges alone do not make them.
void Encoder::prepare_short_tokens() {
  const auto is_made = [&](std::uint32_t i) {
    return tree_.usable() && tree_.makes(ids_[i]) && tree_.fits(strings_[i]);
  };
  const bool has_words = !ignore_merges_ || cutter_.crossing_rank() != kNoRank;
  short_tokens_ = WordCache(ids_.size());
  constexpr std::uint32_t kAhead = 16;  // tokens whose slots are asked for before they are needed
  for (std::uint32_t i = 0; i < ids_.size(); ++i) {
    if (i + kAhead < ids_.size()) {
      const std::string_view later = strings_[i + kAhead];
      if (later.size() <= CacheKey::kShort) {
        short_tokens_.prefetch(CacheKey::of(later, later.size(), ignore_merges_));
      }
    }
    const std::string_view token = strings_[i];
    const bool made = is_made(i);
    if (token.size() <= CacheKey::kShort && !token.empty()) {
      const auto put = [&](bool is_piece) {
        const CacheKey key = CacheKey::of(token, token.size(), is_piece);
        TokenId known[WordCache::kMostTokens];
        if (short_tokens_.copy(key, token, known) != known) return;  // spelt alike: the first
        short_tokens_.put(key, token, &ids_[i], 1);
      };
      if (made && has_words) put(false);
      if (ignore_merges_) put(true);
    } else if (ignore_merges_ && !made) {
      skipped_to_.add(token);
      skipped_ids_.push_back(ids_[i]);
    }
  }
}

// Where pieces may be cut into words, and the quick ways for words.
void Encoder::prepare_words(const EncoderModel& model) {
  std::vector<std::uint32_t> string_of;  // token id -> index into strings_
  for (std::uint32_t i = 0; i < ids_.size(); ++i) {
    if (ids_[i] >= string_of.size()) string_of.resize(ids_[i] + 1, kNoToken);
    string_of[ids_[i]] = i;
  }
  std::vector<std::string_view> products;
  products.reserve(model.merges.size());
  for (const auto& merge : model.merges) products.push_back(strings_[string_of[merge.product]]);
  cutter_ = WordCutter(products, model.space);
  const std::uint32_t crossing_rank = cutter_.crossing_rank();
  if (crossing_rank != kNoRank) {
    late_merges_ = LateMerges(model.merges, first_late_rank(model), merges_);
  }
  if (!byte_level_) return;
  tree_ = MergeTree(byte_ids_, model.merges, crossing_rank, merges_);
  std::array<TokenId, 256> ids = byte_ids_;
  std::sort(ids.begin(), ids.end());
  has_borders_ = std::adjacent_find(ids.begin(), ids.end()) == ids.end();
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
std::size_t Encoder::first_late_rank(const EncoderModel& model) const {
  const std::uint32_t crossing_rank = cutter_.crossing_rank();
  std::vector<std::uint32_t> made_at;  // by token: 1 + the last rank that makes it, 0 for symbols
  for (std::uint32_t rank = 0; rank < model.merges.size(); ++rank) {
    const TokenId product = model.merges[rank].product;
    if (product >= made_at.size()) made_at.resize(product + std::size_t{1}, 0);
    made_at[product] = rank + 1;  // a pair listed twice has its later rank
  }
  const auto is_late = [&](TokenId token) {
    return token < made_at.size() && made_at[token] > crossing_rank;
  };
  for (std::uint32_t rank = 0; rank < crossing_rank; ++rank) {
    const auto& merge = model.merges[rank];
    if (is_late(merge.left) || is_late(merge.right)) return 0;
  }
  return crossing_rank;
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
  // Documents were checked, but words may have been counted as they came, or read from a file.
  if (first_invalid_utf8(text) != kAllValid) {
    throw std::invalid_argument("a model of characters was given a word that is not UTF-8");
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

std::vector<std::int64_t> Encoder::last_merges() const {
  std::vector<std::int64_t> last(ids_.size(), kNotRebuilt);
  std::vector<TokenId> symbols;
  std::vector<std::uint32_t> ranks;
  MergeScratch scratch;
  scratch.log = &ranks;
  for (std::uint32_t i = 0; i < ids_.size(); ++i) {
    symbols.clear();
    ranks.clear();
    symbols_of(strings_[i], symbols);
    merge_by_rank(merges_, symbols, kNoRank, scratch);
    if (symbols.size() == 1 && symbols[0] == ids_[i]) {
      last[i] = ranks.empty() ? kNoMerge : std::int64_t{ranks.back()};
    }
  }
  return last;
}

void Encoder::encode_uncached(const Scratch::Word& word, Scratch& scratch,
                              std::vector<TokenId>& out) const {
  if (word.is_piece && ignore_merges_ && word.text.size() > CacheKey::kShort) {
    if (const TokenId found = skipped_to_.find(word.text); found != kNoToken) {
      out.push_back(skipped_ids_[found]);
      return;
    }
  }
  if (has_borders_ && word.text.size() >= kLong) return encode_long(word.text, scratch, out);
  if (tree_.usable() && tree_.fits(word.text)) {
    return tree_.encode(word.text, scratch.tree_, out);
  }
  merge_all(word.text, scratch, out);
}

void Encoder::encode_cut_piece(std::string_view piece, const char* readable_end, Scratch& scratch,
                               std::vector<TokenId>& out) const {
  if (piece.empty()) return;
  std::string_view word = cutter_.next_word(piece);
  if (word.size() == piece.size() || (ignore_merges_ && id_of(piece) != kNoToken)) {
    return wait(piece, readable_end, true, true, scratch, out);
  }
  wait(word, readable_end, false, false, scratch, out);
  for (std::string_view rest = piece.substr(word.size()); !rest.empty();
       rest.remove_prefix(word.size())) {
    word = cutter_.next_word(rest);
    wait(word, readable_end, false, word.size() == rest.size(), scratch, out);
  }
}

void Encoder::flush(Scratch& scratch, std::vector<TokenId>& out) const {
  encode_waiting(scratch, out);
}

void Encoder::encode_waiting(Scratch& scratch, std::vector<TokenId>& out) const {
  constexpr std::size_t kRoom = 512;
  TokenId room[kRoom];  // ids are gathered here: growing `out` costs more than a short word
  TokenId* to = room;
  const auto empty_room = [&] {
    out.insert(out.end(), room, to);
    to = room;
  };
  const bool is_superword_model = cutter_.crossing_rank() != kNoRank;
  const std::size_t count = std::exchange(scratch.waiting_count_, 0);
  std::size_t begin = std::exchange(scratch.piece_begin_, Scratch::kNoPiece);
  if (begin == Scratch::kNoPiece) begin = out.size();
  may_stop(count * 8);
  for (std::size_t i = 0; i < count; ++i) {
    const Scratch::Word& word = scratch.waiting_[i];
    if (to > room + kRoom - WordCache::kMostTokens) empty_room();
    const bool may_be_cached = word.text.size() <= WordCache::kMaxWord;
    TokenId* const end = may_be_cached ? scratch.cache_.copy(word.key, word.text, to) : to;
    if (end != to) {
      to = end;
    } else {
      empty_room();
      const std::size_t before = out.size();
      encode_uncached(word, scratch, out);
      if (may_be_cached &&
          !scratch.cache_.put(word.key, word.text, out.data() + before, out.size() - before)) {
        scratch.cache_ = short_tokens_;
      }
    }
    if (is_superword_model && word.ends_piece) {
      empty_room();
      late_merges_.apply(out, begin, scratch.ids_, scratch.merging_);
      begin = out.size();
    }
    if (scratch.piece_ends_ && word.ends_piece) {
      scratch.piece_ends_->push_back(out.size() + static_cast<std::size_t>(to - room));
    }
  }
  empty_room();
  if (count > 0 && !scratch.waiting_[count - 1].ends_piece) scratch.piece_begin_ = begin;
}

}  // namespace vocabshift
