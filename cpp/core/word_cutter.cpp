#include "core/word_cutter.h"

#include <algorithm>

#include "core/merge_table.h"
#include "core/unicode.h"
#include "core/utf8.h"

namespace vocabshift {

WordCutter::WordCutter(const std::vector<std::string_view>& products, std::string_view space)
    : metaspace_(space == " " ? "" : space) {
  std::array<std::array<std::uint32_t, kTargets>, 4> first{};  // rank that first holds a place
  for (auto& row : first) row.fill(kNoRank);
  std::vector<std::array<std::uint32_t, 3>> inside;  // (rank, target, last byte)
  for (std::uint32_t rank = 0; rank < products.size(); ++rank) {
    const std::string_view text = products[rank];
    for (std::size_t at = 1; at < text.size(); ++at) {
      const std::size_t target = target_at(text, at);
      if (target == kTargets) continue;
      Before before;
      if (class_before(text, at, &before)) {
        first[before][target] = std::min(first[before][target], rank);
      } else {
        inside.push_back(
            {rank, static_cast<std::uint32_t>(target), static_cast<unsigned char>(text[at - 1])});
      }
    }
  }
  const std::size_t space_target = metaspace_.empty() ? ' ' : kMetaspace;
  crossing_rank_ = first[kWordBefore][space_target];
  for (const Before before : {kWordBefore, kNumberBefore, kOtherBefore}) {
    for (std::size_t target = 0; target < kTargets; ++target) {
      may_cut_[before][target] = first[before][target] >= crossing_rank_;
    }
  }
  for (const auto& [rank, target, last_byte] : inside) {
    if (rank < crossing_rank_) not_after_[target].set(last_byte);
  }
  for (std::size_t target = 0; target < kTargets; ++target) {
    const bool ever =
        std::any_of(may_cut_.begin(), may_cut_.end(), [&](const auto& row) { return row[target]; });
    if (target < kMetaspace) {
      is_target_[target] = ever;
    } else if (!metaspace_.empty()) {
      is_target_[static_cast<unsigned char>(metaspace_[0])] = ever;
    }
  }
  for (unsigned byte = 0; byte < 128; ++byte) {
    const char text[] = {static_cast<char>(byte), 'a'};
    Before before;
    if (!class_before({text, 2}, 1, &before)) continue;
    for (std::size_t target = 0; target < 128; ++target) {
      ascii_cuts_[byte][target] = may_cut_[before][target] && !not_after_[target][byte];
    }
  }
}

std::size_t WordCutter::target_at(std::string_view text, std::size_t at) const {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return byte;
  return !metaspace_.empty() && text.substr(at).starts_with(metaspace_) ? kMetaspace : kTargets;
}

bool WordCutter::class_before(std::string_view text, std::size_t at, Before* before) const {
  std::size_t lead = at - 1;
  while (lead > 0 && is_continuation_byte(text[lead])) --lead;
  const auto byte = static_cast<unsigned char>(text[lead]);
  const std::size_t length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
  if (is_continuation_byte(text[lead]) || length != at - lead) return false;
  const char32_t c = decode_utf8(text.data() + lead).code_point;
  if (c >= 0x110000) return false;  // a token of a byte-level model may hold any bytes
  const std::uint8_t bits = char_class(c);
  const bool is_metaspace =
      !metaspace_.empty() && text.substr(lead, length) == std::string_view(metaspace_);
  *before = bits & kSpace || is_metaspace ? kSpaceBefore
            : bits & (kLetter | kMark)    ? kWordBefore
            : bits & kNumber              ? kNumberBefore
                                          : kOtherBefore;
  return true;
}

std::string_view WordCutter::next_word(std::string_view rest) const {
  for (std::size_t at = 1; at < rest.size(); ++at) {
    const auto byte = static_cast<unsigned char>(rest[at]);
    if (!is_target_[byte]) continue;
    const auto byte_before = static_cast<unsigned char>(rest[at - 1]);
    if ((byte | byte_before) < 0x80) {
      if (ascii_cuts_[byte_before][byte]) return rest.substr(0, at);
      continue;
    }
    const std::size_t target = target_at(rest, at);
    if (target == kTargets || not_after_[target][byte_before]) {
      continue;
    }
    Before before;
    if (class_before(rest, at, &before) && may_cut_[before][target]) return rest.substr(0, at);
  }
  return rest;
}

}  // namespace vocabshift
