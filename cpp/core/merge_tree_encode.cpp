// Encoding with a merge tree that is made.
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "core/merge_tree.h"
#include "core/platform.h"
#include "core/stop.h"

namespace vocabshift {

const MergeTree::Node* MergeTree::child_of(const Node& node, unsigned char byte) const {
  if (node.children == 0) return nullptr;
  const Node* const first = &nodes_[node.first_child];
  if (node.children == 1) return first->byte == byte ? first : nullptr;
  const std::uint8_t* const labels = &labels_[node.first_child];
#if VOCABSHIFT_SSE2
  if (node.children <= 16) {
    const __m128i sixteen = _mm_loadu_si128(reinterpret_cast<const __m128i*>(labels));
    const __m128i same = _mm_cmpeq_epi8(sixteen, _mm_set1_epi8(static_cast<char>(byte)));
    const unsigned found =
        static_cast<unsigned>(_mm_movemask_epi8(same)) & ((1u << node.children) - 1);
    return found ? first + std::countr_zero(found) : nullptr;
  }
#endif
  const void* const found = std::memchr(labels, byte, node.children);
  return found ? first + (static_cast<const std::uint8_t*>(found) - labels) : nullptr;
}

MergeTree::Number MergeTree::longest_at(std::string_view text, std::size_t at) const {
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const Node* node = &nodes_[byte_at(at)];
  if (++at == text.size()) return node->longest;
  const std::uint32_t second = by_two_bytes_[byte_at(at - 1) * std::size_t{256} + byte_at(at)];
  if (second == 0) return node->longest;
  for (node = &nodes_[second]; ++at < text.size();) {
    const Node* const child = child_of(*node, byte_at(at));
    if (!child) break;
    node = child;
  }
  return node->longest;
}

// Whether encoding the bytes of both gives the two: undoes the last merge of either, again and
// again, and looks whether what then stood at the border would have been joined before it. The
// left one comes first where a merge is possible at two places.
bool MergeTree::stand_side_by_side(Number left, Number right) const {
  Number limit = kNone;  // merges from this one on came too late
  for (;;) {
    if (product_of(left, right) < limit) return false;
    if (left > right) {
      if (left < 256) return true;
      limit = left;
      left = parts_[left][1];
    } else {
      if (right < 256) return true;
      limit = right + 1;
      right = parts_[right][0];
    }
  }
}

// The definition itself: the earliest merge, the leftmost of its places, again and again. Of few
// tokens that takes fewer looks into memory than the search for tokens and its steps back.
// products[i]: of tokens i and i + 1.
template <std::size_t kMost>
void MergeTree::merge_few(std::array<Number, kMost>& tokens, std::size_t count,
                          std::array<Number, kMost>& products, std::vector<TokenId>& out) const {
  while (count > 1) {
    std::size_t first = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (products[i] < products[first]) first = i;
    }
    if (products[first] == kNone) break;
    tokens[first] = products[first];
    --count;
    for (std::size_t i = first + 1; i < count; ++i) {
      tokens[i] = tokens[i + 1];
      products[i - 1] = products[i];
    }
    if (first > 0) products[first - 1] = product_of(tokens[first - 1], tokens[first]);
    if (first + 1 < count) products[first] = product_of(tokens[first], tokens[first + 1]);
  }
  for (std::size_t i = 0; i < count; ++i) out.push_back(ids_[tokens[i]]);
}

void MergeTree::merge_short(std::string_view text, std::vector<TokenId>& out) const {
  std::array<Number, kShort + 1> tokens, products;
  const std::size_t count = text.size();
  for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<unsigned char>(text[i]);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    products[i] = byte_pairs_[tokens[i] << 8 | tokens[i + 1]];
  }
  merge_few(tokens, count, products, out);
}

void MergeTree::encode(const SureBorders::Known* known, std::size_t count,
                       std::vector<TokenId>& out) const {
  const auto token_of = [&](SureBorders::Known one) {
    return one < 256 ? one : byte_pairs_[one & (SureBorders::kPair - 1)];
  };
  if (count == 1) return out.push_back(ids_[token_of(known[0])]);
  std::array<Number, SureBorders::kMost> tokens, products;
  for (std::size_t i = 0; i < count; ++i) tokens[i] = token_of(known[i]);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    products[i] = (known[i] | known[i + 1]) < 256 ? byte_pairs_[known[i] << 8 | known[i + 1]]
                                                  : product_of(tokens[i], tokens[i + 1]);
  }
  merge_few(tokens, count, products, out);
}

void MergeTree::encode(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const {
  if (text.size() <= kShort) return merge_short(text, out);
  if (text.size() > kWindow) return encode_windows(text, scratch, out);
  for (const Number token : search(text, scratch)) out.push_back(ids_[token]);
}

// A long text, window by window. Each begins where a token of the one before
// ends, far from its end, where what follows could change it. That is so indeed if the tokens on
// both sides may be neighbours. If they may not, the text is searched as a whole. A window with the
// bytes of the one before has its tokens, so one letter a million times takes little time.
void MergeTree::encode_windows(std::string_view text, Scratch& scratch,
                               std::vector<TokenId>& out) const {
  const std::size_t before = out.size();
  std::string_view last;  // window
  Number end = kNone;     // last token that is out
  std::span<const Number> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view window = text.substr(at, kWindow);
    if (window != last) tokens = search(window, scratch);
    last = window;
    if (end != kNone && !stand_side_by_side(end, tokens[0])) break;
    const bool is_last = at + window.size() == text.size();
    const std::size_t sure = is_last ? window.size() : window.size() - kUnsure;
    std::size_t size = 0;
    for (const Number token : tokens) {
      if (size + length(token) > sure) break;
      size += length(token);
      end = token;
      out.push_back(ids_[token]);
    }
    if (size == 0) break;  // a token as long as a window
    at += size;
    if (at == text.size()) return;
  }
  out.resize(before);
  for (const Number token : search(text, scratch)) out.push_back(ids_[token]);
}

// The tokens of `text`, valid until the next search: the longest one first, and back where none
// fits.
std::span<const MergeTree::Number> MergeTree::search(std::string_view text,
                                                     Scratch& scratch) const {
  if (scratch.tokens.size() < text.size()) scratch.tokens.resize(text.size());
  std::uint64_t few_closed = 0;
  std::uint64_t* closed = &few_closed;
  const bool is_long = text.size() >= kRemembering;
  if (is_long) {
    scratch.closed.assign(text.size() / 64 + 1, 0);
    closed = scratch.closed.data();
    if (scratch.pairs.empty()) scratch.pairs.assign(kPairs, ~std::uint64_t{0});
  }
  const auto may_follow = [&](Number left, Number right) {
    if (!is_long) return stand_side_by_side(left, right);
    const std::uint64_t key = static_cast<std::uint64_t>(left) << kBits | right;
    std::uint64_t& slot = scratch.pairs[hash_pair(key) % kPairs];
    if (slot >> 1 != key) slot = key << 1 | std::uint64_t{stand_side_by_side(left, right)};
    return (slot & 1) != 0;
  };
  Number* const tokens = scratch.tokens.data();
  std::size_t count = 0;
  Number token = text.empty() ? kNone : longest_at(text, 0);
  constexpr std::size_t kBetween = 1 << 10;  // steps: most texts are words
  std::size_t steps = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (++steps % kBetween == 0) may_stop(kBetween * 8);
    const std::size_t end = at + length(token);
    const bool is_closed = closed[end / 64] >> end % 64 & 1;
    if (!is_closed && (count == 0 || may_follow(tokens[count - 1], token))) {
      tokens[count++] = token;
      at = end;
      if (at < text.size()) token = longest_at(text, at);
    } else if (shorter_[token] != kNone) {
      token = shorter_[token];
    } else {
      if (count == 0) throw std::logic_error("a text without an encoding");
      closed[at / 64] |= std::uint64_t{1} << at % 64;
      token = tokens[--count];  // ends where it is closed: a shorter one is next
      at -= length(token);
    }
  }
  return {tokens, count};
}

}  // namespace vocabshift
