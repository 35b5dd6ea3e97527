#include "core/merge_tree.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace vocabshift {

MergeTree::MergeTree(const std::array<TokenId, 256>& byte_ids, const std::vector<ModelMerge>& merges,
                     std::size_t limit, const MergeTable& table) {
  limit = std::min(limit, merges.size());
  if (limit + 256 >= std::size_t{1} << kBits) return;
  pairs_.assign(std::bit_ceil(limit * 2 + 2), kFree);
  pair_mask_ = pairs_.size() - 1;
  edges_.assign(std::bit_ceil(limit * 4 + 1024), Edge{kNoKey, 0});
  edge_mask_ = edges_.size() - 1;
  parents_ = {0};
  longest_ = {kNone};
  for (Number byte = 0; byte < 256; ++byte) {  // their nodes are 1 to 256
    ids_.push_back(byte_ids[byte]);
    parts_.push_back({byte, byte});
    bytes_.push_back(static_cast<char>(byte));
    begins_.push_back(byte + 1);
    nodes_.push_back(byte + 1);
    parents_.push_back(0);
    longest_.push_back(byte);
  }
  const std::vector<Number> number_of = accept_merges(merges, limit, table);
  usable_ = !number_of.empty();
  if (usable_) find_shorter();
  std::vector<std::uint32_t>().swap(nodes_);
  std::vector<std::uint32_t>().swap(parents_);
  std::string().swap(bytes_);
}

// Numbers by id; nothing where the merges are no trees.
std::vector<MergeTree::Number> MergeTree::accept_merges(const std::vector<ModelMerge>& merges,
                                                        std::size_t limit,
                                                        const MergeTable& table) {
  TokenId most = *std::max_element(ids_.begin(), ids_.end());
  for (std::size_t i = 0; i < limit; ++i) {
    most = std::max({most, merges[i].left, merges[i].right, merges[i].product});
  }
  std::vector<Number> number_of(most + std::size_t{1}, kNone);
  for (Number byte = 0; byte < 256; ++byte) {
    if (number_of[ids_[byte]] != kNone) return {};
    number_of[ids_[byte]] = byte;
  }
  std::vector<ModelMerge> others;  // which must never happen
  for (std::size_t rank = 0; rank < limit; ++rank) {
    const ModelMerge& merge = merges[rank];
    if (table.find(merge.left, merge.right).rank != rank) continue;
    const Number left = number_of[merge.left];
    const Number right = number_of[merge.right];
    if (left == kNone || right == kNone || number_of[merge.product] != kNone) {
      others.push_back(merge);
    } else if (stand_side_by_side(left, right)) {  // if not, the two never meet
      number_of[merge.product] = static_cast<Number>(ids_.size());
      accept(left, right, merge.product);
    }
  }
  for (const ModelMerge& merge : others) {
    const Number left = number_of[merge.left];
    const Number right = number_of[merge.right];
    if (left == kNone || right == kNone) continue;  // never made
    const Number product = number_of[merge.product];
    if (product == kNone || !spells(product, left, right)) return {};
  }
  return number_of;
}

bool MergeTree::spells(Number token, Number left, Number right) const {
  const std::string_view text = bytes_of(token);
  return text.size() == length(left) + length(right) && text.starts_with(bytes_of(left)) &&
         text.ends_with(bytes_of(right));
}

void MergeTree::accept(Number left, Number right, TokenId product) {
  const auto number = static_cast<Number>(ids_.size());
  const std::uint64_t key = static_cast<std::uint64_t>(left) << kBits | right;
  std::size_t at = hash_pair(key) & pair_mask_;
  while (pairs_[at] != kFree) at = (at + 1) & pair_mask_;
  pairs_[at] = key << kBits | number;
  ids_.push_back(product);
  parts_.push_back({left, right});
  std::uint32_t node = nodes_[left];
  for (std::size_t i = begins_[right]; i < begins_[right + 1]; ++i) {
    node = child_made(node, static_cast<unsigned char>(bytes_[i]));
  }
  nodes_.push_back(node);
  longest_[node] = number;
  bytes_.append(bytes_, begins_[left], length(left));
  bytes_.append(bytes_, begins_[right], length(right));
  begins_.push_back(static_cast<std::uint32_t>(bytes_.size()));
}

// The slot of an edge, or the free one where it belongs.
inline std::size_t MergeTree::edge_slot(std::uint32_t key) const {
  std::size_t at = (key * kSeed0 >> 32) & edge_mask_;
  while (edges_[at].key != key && edges_[at].key != kNoKey) at = (at + 1) & edge_mask_;
  return at;
}

std::uint32_t MergeTree::child_made(std::uint32_t node, unsigned char byte) {
  const std::uint32_t key = node << 8 | byte;
  std::size_t at = edge_slot(key);
  if (edges_[at].key == key) return edges_[at].child;
  const auto child = static_cast<std::uint32_t>(parents_.size());
  if (child >= (1u << 24) - 1) throw std::length_error("the vocabulary is too large");
  parents_.push_back(node);
  longest_.push_back(kNone);
  if (child * std::size_t{2} > edges_.size()) {
    BigVector<Edge> old(edges_.size() * 2, Edge{kNoKey, 0});
    old.swap(edges_);
    edge_mask_ = edges_.size() - 1;
    for (const Edge& edge : old) {
      if (edge.key != kNoKey) edges_[edge_slot(edge.key)] = edge;
    }
    at = edge_slot(key);
  }
  edges_[at] = {key, child};
  return child;
}

// A node comes behind its parent, so one pass suffices.
void MergeTree::find_shorter() {
  for (std::uint32_t node = 1; node < parents_.size(); ++node) {
    if (longest_[node] == kNone) longest_[node] = longest_[parents_[node]];
  }
  shorter_.resize(ids_.size());
  for (Number token = 0; token < ids_.size(); ++token) {
    shorter_[token] = longest_[parents_[nodes_[token]]];
  }
}

MergeTree::Number MergeTree::longest_at(std::string_view text, std::size_t at) const {
  std::uint32_t node = static_cast<unsigned char>(text[at]) + 1u;
  while (++at < text.size()) {
    const Edge& edge = edges_[edge_slot(node << 8 | static_cast<unsigned char>(text[at]))];
    if (edge.key == kNoKey) break;
    node = edge.child;
  }
  return longest_[node];
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

void MergeTree::encode(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const {
  std::vector<Number>& tokens = scratch.tokens;
  std::vector<std::uint64_t>& closed = scratch.closed;
  tokens.clear();
  closed.assign(text.size() / 64 + 1, 0);
  const auto is_closed = [&](std::size_t at) { return closed[at / 64] >> at % 64 & 1; };
  Number token = text.empty() ? kNone : longest_at(text, 0);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at + length(token);
    if (!is_closed(end) && (tokens.empty() || stand_side_by_side(tokens.back(), token))) {
      tokens.push_back(token);
      at = end;
      if (at < text.size()) token = longest_at(text, at);
    } else if (shorter_[token] != kNone) {
      token = shorter_[token];
    } else {
      if (tokens.empty()) throw std::logic_error("a text without an encoding");
      closed[at / 64] |= std::uint64_t{1} << at % 64;
      token = tokens.back();  // ends where it is closed: a shorter one is next
      tokens.pop_back();
      at -= length(token);
    }
  }
  for (const Number number : tokens) out.push_back(ids_[number]);
}

}  // namespace vocabshift
