#include "core/merge_tree.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>

#include "core/platform.h"

namespace vocabshift {

namespace {

std::size_t count_products(const std::vector<ModelMerge>& merges, std::size_t limit) {
  std::vector<bool> seen;
  std::size_t count = 0;
  for (std::size_t i = 0; i < limit; ++i) {
    const TokenId product = merges[i].product;
    if (product >= seen.size()) seen.resize(std::max<std::size_t>(product + 1, 2 * seen.size()));
    count += !seen[product];
    seen[product] = true;
  }
  return count;
}

struct Entry {
  std::uint64_t next;  // eight bytes, the first one highest
  std::uint32_t token;
};

// By `next`: many of them digit by digit, the lowest first.
void sort_entries(std::span<Entry> entries, std::vector<Entry>& room) {
  constexpr std::size_t kFew = 8192, kBits = 16;
  if (entries.size() < kFew) {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.next < b.next; });
    return;
  }
  room.resize(entries.size());
  std::vector<std::uint32_t> begins;
  std::span<Entry> from = entries, to = room;
  for (std::size_t shift = 0; shift < 64; shift += kBits) {
    begins.assign((std::size_t{1} << kBits) + 1, 0);
    const auto digit = [&](const Entry& entry) { return entry.next >> shift & 0xFFFF; };
    for (const Entry& entry : from) ++begins[digit(entry) + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    for (const Entry& entry : from) to[begins[digit(entry)]++] = entry;
    std::swap(from, to);
  }
}

}  // namespace

MergeTree::MergeTree(const std::array<TokenId, 256>& byte_ids,
                     const std::vector<ModelMerge>& merges, std::size_t limit,
                     const MergeTable& table) {
  limit = std::min(limit, merges.size());
  if (limit + 256 >= std::size_t{1} << kBits) return;
  const std::size_t products = count_products(merges, limit);  // each is accepted once at most
  pairs_.assign(std::bit_ceil(products * 3 / 2 + 2), kFree);
  pair_mask_ = pairs_.size() - 1;
  filter_.assign(std::bit_ceil(products * 8 + 64) / 64, 0);
  filter_mask_ = filter_.size() * 64 - 1;
  ids_.reserve(products + 256);
  parts_.reserve(products + 256);
  begins_.reserve(products + 257);
  for (Number byte = 0; byte < 256; ++byte) {
    ids_.push_back(byte_ids[byte]);
    parts_.push_back({byte, byte});
    bytes_.push_back(static_cast<char>(byte));
    begins_.push_back(byte + 1);
  }
  usable_ = accept_merges(merges, limit, table);
  if (usable_) build_trie();
  byte_pairs_.assign(std::size_t{1} << 16, kNone);
  for (Number token = 256; token < ids_.size(); ++token) {
    if (length(token) == 2) byte_pairs_[parts_[token][0] << 8 | parts_[token][1]] = token;
  }
  std::string().swap(bytes_);
}

// False where the merges are no trees.
bool MergeTree::accept_merges(const std::vector<ModelMerge>& merges, std::size_t limit,
                              const MergeTable& table) {
  TokenId most = *std::max_element(ids_.begin(), ids_.end());
  for (std::size_t i = 0; i < limit; ++i) {
    most = std::max({most, merges[i].left, merges[i].right, merges[i].product});
  }
  std::vector<Number> number_of(most + std::size_t{1}, kNone);
  for (Number byte = 0; byte < 256; ++byte) {
    if (number_of[ids_[byte]] != kNone) return false;
    number_of[ids_[byte]] = byte;
  }
  std::vector<ModelMerge> others;  // which must never happen
  for (std::size_t rank = 0; rank < limit; ++rank) {
    const ModelMerge& merge = merges[rank];
    if (table.has_doubles() && table.find(merge.left, merge.right).rank != rank) continue;
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
    if (product == kNone) {
      note_misfit(left, right);
    } else if (!spells(product, left, right)) {
      return false;
    }
  }
  if (misfits_.size() > kMostMisfits) return false;
  misfit_begins_.resize(kMisfitBits);
  misfit_mask_ = ~std::uint64_t{0} >> (64 - 8 * misfit_begin_);
  for (std::string misfit : misfits_) {
    misfit.resize(std::max<std::size_t>(misfit.size(), 8));
    misfit_begins_[begin_hash(load8(misfit.data()) & misfit_mask_)] = true;
  }
  made_.resize(number_of.size());
  for (const TokenId id : ids_) made_[id] = true;
  return true;
}

void MergeTree::note_misfit(Number left, Number right) {
  std::string& misfit = misfits_.emplace_back(bytes_of(left));
  misfit += bytes_of(right);
  misfit_begin_ = std::min(misfit_begin_, misfit.size());
}

bool MergeTree::fits(std::string_view text) const {
  if (misfits_.empty() || text.size() < misfit_begin_) return true;
  std::size_t at = 0;
  for (; at + 8 <= text.size(); ++at) {
    if (begins_misfit(text.substr(at), load8(text.data() + at))) return false;
  }
  char end[16] = {};  // the last bytes, fewer than eight
  std::memcpy(end, text.data() + at, text.size() - at);
  for (std::size_t i = 0; at + i + misfit_begin_ <= text.size(); ++i) {
    if (begins_misfit(text.substr(at + i), load8(end + i))) return false;
  }
  return true;
}

// Whether a text, which begins with the bytes of `begin`, begins with a misfit.
bool MergeTree::begins_misfit(std::string_view text, std::uint64_t begin) const {
  if (!misfit_begins_[begin_hash(begin & misfit_mask_)]) return false;
  return std::any_of(misfits_.begin(), misfits_.end(),
                     [&](const std::string& misfit) { return text.starts_with(misfit); });
}

bool MergeTree::spells(Number token, Number left, Number right) const {
  const std::string_view text = bytes_of(token);
  return text.size() == length(left) + length(right) && text.starts_with(bytes_of(left)) &&
         text.ends_with(bytes_of(right));
}

void MergeTree::accept(Number left, Number right, TokenId product) {
  const auto number = static_cast<Number>(ids_.size());
  const std::uint64_t key = static_cast<std::uint64_t>(left) << kBits | right;
  const std::uint64_t hash = hash_pair(key);
  filter_[(hash >> 32 & filter_mask_) / 64] |= std::uint64_t{1} << (hash >> 32) % 64;
  std::size_t at = hash & pair_mask_;
  while (pairs_[at] != kFree) at = (at + 1) & pair_mask_;
  pairs_[at] = key << kBits | number;
  ids_.push_back(product);
  parts_.push_back({left, right});
  bytes_.append(bytes_, begins_[left], length(left));
  bytes_.append(bytes_, begins_[right], length(right));
  begins_.push_back(static_cast<std::uint32_t>(bytes_.size()));
}

// All tokens in the order of their bytes: eight bytes of each, then the next eight of those that
// are alike so far.
std::vector<MergeTree::Number> MergeTree::by_bytes() const {
  std::vector<Entry> entries(ids_.size()), room;
  for (Number token = 0; token < ids_.size(); ++token) entries[token].token = token;
  struct Open {  // tokens that begin with the same `depth` bytes and are longer
    std::size_t begin, end, depth;
  };
  std::vector<Open> open{{0, entries.size(), 0}};
  while (!open.empty()) {
    const auto [begin, end, depth] = open.back();
    open.pop_back();
    for (std::size_t i = begin; i < end; ++i) {
      const std::string_view rest = bytes_of(entries[i].token).substr(depth);
      std::uint64_t next = 0;
      std::memcpy(&next, rest.data(), std::min<std::size_t>(rest.size(), 8));
      entries[i].next = swap_bytes(next);
    }
    sort_entries({&entries[begin], end - begin}, room);
    for (std::size_t first = begin, last; first < end; first = last) {
      last = first + 1;
      while (last < end && entries[last].next == entries[first].next) ++last;
      if (last - first == 1) continue;
      // One that ends here is the beginning of the others, but for bytes 0.
      const auto from = entries.begin() + static_cast<std::ptrdiff_t>(first);
      const auto to = entries.begin() + static_cast<std::ptrdiff_t>(last);
      const auto longer = std::partition(from, to, [&, most = depth + 8](const Entry& entry) {
        return length(entry.token) <= most;
      });
      std::sort(from, longer,
                [&](const Entry& a, const Entry& b) { return length(a.token) < length(b.token); });
      open.push_back({static_cast<std::size_t>(longer - entries.begin()), last, depth + 8});
    }
  }
  std::vector<Number> tokens;
  tokens.reserve(entries.size());
  for (const Entry& entry : entries) tokens.push_back(entry.token);
  return tokens;
}

void MergeTree::build_trie() {
  struct Open {  // a node whose children are to be made, and the tokens that pass through it
    std::uint32_t node;
    std::uint32_t begin, end;
    std::uint32_t depth;
  };
  const std::vector<Number> tokens = by_bytes();
  nodes_.reserve(bytes_.size());  // an upper bound; pages never written take no memory
  shorter_.assign(ids_.size(), kNone);
  std::vector<Open> open;
  const auto add_children = [&](Number longest, std::uint32_t begin, std::uint32_t end,
                                std::uint32_t depth) {
    const std::size_t opened = open.size();
    while (begin < end) {
      const char byte = bytes_[begins_[tokens[begin]] + depth];
      const std::uint32_t first = begin;
      while (begin < end && bytes_[begins_[tokens[begin]] + depth] == byte) ++begin;
      open.push_back({static_cast<std::uint32_t>(nodes_.size()), first, begin, depth + 1});
      nodes_.push_back({longest, 0, 0, static_cast<unsigned char>(byte)});
    }
    std::reverse(open.begin() + static_cast<std::ptrdiff_t>(opened), open.end());
  };
  const auto add_chain = [&](Number longest, Number token, std::uint32_t depth) {
    for (const char byte : bytes_of(token).substr(depth)) {
      const auto next = static_cast<std::uint32_t>(nodes_.size() + 1);
      nodes_.push_back({longest, next, 1, static_cast<unsigned char>(byte)});
    }
    shorter_[token] = longest;
    nodes_.back().longest = token;
    nodes_.back().children = 0;
  };
  add_children(kNone, 0, static_cast<std::uint32_t>(tokens.size()), 0);
  while (!open.empty()) {  // depth first: the first child is next
    auto [node, begin, end, depth] = open.back();
    open.pop_back();
    if (length(tokens[begin]) == depth) {  // the token that ends here comes first
      shorter_[tokens[begin]] = nodes_[node].longest;
      nodes_[node].longest = tokens[begin++];
    }
    const std::size_t first = nodes_.size();
    nodes_[node].first_child = static_cast<std::uint32_t>(first);
    if (end - begin == 1) {  // a single token is left: most nodes are on such chains
      nodes_[node].children = 1;
      add_chain(nodes_[node].longest, tokens[begin], depth);
      continue;
    }
    add_children(nodes_[node].longest, begin, end, depth);
    nodes_[node].children = static_cast<std::uint16_t>(nodes_.size() - first);
  }
  labels_.reserve(nodes_.size() + 16);
  for (const Node& node : nodes_) labels_.push_back(node.byte);
  labels_.resize(nodes_.size() + 16);  // sixteen are looked at
  by_two_bytes_.resize(std::size_t{1} << 16);
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    for (std::uint32_t i = 0; i < nodes_[byte].children; ++i) {
      const std::uint32_t child = nodes_[byte].first_child + i;
      by_two_bytes_[byte << 8 | nodes_[child].byte] = child;
    }
  }
}

}  // namespace vocabshift
