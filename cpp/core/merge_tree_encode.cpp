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
// bytes that takes fewer looks into memory than the search for tokens and its steps back.
void MergeTree::merge_short(std::string_view text, std::vector<TokenId>& out) const {
  std::array<Number, kShort + 1> tokens, products;  // products[i]: of tokens i and i + 1
  std::size_t count = text.size();
  for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<unsigned char>(text[i]);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    products[i] = byte_pairs_[tokens[i] << 8 | tokens[i + 1]];
  }
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

void MergeTree::encode(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const {
  if (text.size() <= kShort) return merge_short(text, out);
  if (scratch.tokens.size() < text.size()) scratch.tokens.resize(text.size());
  std::uint64_t few_closed = 0;
  std::uint64_t* closed = &few_closed;
  if (text.size() >= 64) {
    scratch.closed.assign(text.size() / 64 + 1, 0);
    closed = scratch.closed.data();
  }
  Number* const tokens = scratch.tokens.data();
  std::size_t count = 0;
  Number token = text.empty() ? kNone : longest_at(text, 0);
  constexpr std::size_t kBetween = 1 << 10;  // steps: most texts are words
  std::size_t steps = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (++steps % kBetween == 0) may_stop(kBetween * 8);
    const std::size_t end = at + length(token);
    const bool is_closed = closed[end / 64] >> end % 64 & 1;
    if (!is_closed && (count == 0 || stand_side_by_side(tokens[count - 1], token))) {
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
  for (std::size_t i = 0; i < count; ++i) out.push_back(ids_[tokens[i]]);
}

}  // namespace vocabshift
