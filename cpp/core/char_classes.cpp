#include "core/char_classes.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace vocabshift {

bool CharClasses::number(const std::vector<CodeSet>& sets) {
  if (sets.size() > Bits().size()) return false;
  struct Change {
    char32_t at;
    std::size_t set;
  };
  std::vector<Change> changes;
  for (std::size_t set = 0; set < sets.size(); ++set) {
    for (const CodeSet::Range& range : sets[set].ranges()) {
      changes.push_back({range.first, set});
      changes.push_back({range.last + 1, set});
    }
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.at < b.at; });
  std::vector<std::uint8_t> numbers(CodeSet::kLast + 1);
  std::unordered_map<Bits, std::uint8_t> known;
  Bits in;  // which sets
  char32_t from = 0;
  for (std::size_t i = 0; from <= CodeSet::kLast;) {
    for (; i < changes.size() && changes[i].at == from; ++i) in.flip(changes[i].set);
    const char32_t to = i < changes.size() ? changes[i].at : CodeSet::kLast + 1;
    const auto [own, is_new] = known.try_emplace(in, static_cast<std::uint8_t>(known.size()));
    if (known.size() > kMost) return false;
    std::fill(numbers.begin() + from, numbers.begin() + to, own->second);
    from = to;
  }
  count_ = known.size();
  sets_.resize(sets.size());
  for (const auto& [members, number] : known) {
    for (std::size_t set = 0; set < sets.size(); ++set) sets_[set][number] = members[set];
  }
  std::copy_n(numbers.begin(), ascii_.size(), ascii_.begin());
  std::unordered_map<std::string_view, std::uint16_t> blocks;
  for (std::size_t at = 0; at < numbers.size(); at += kBlock) {
    const std::string_view block(reinterpret_cast<const char*>(&numbers[at]), kBlock);
    const auto [own, is_new] = blocks.try_emplace(block, static_cast<std::uint16_t>(blocks.size()));
    index_.push_back(own->second);
    if (is_new) blocks_.insert(blocks_.end(), &numbers[at], &numbers[at] + kBlock);
  }
  return true;
}

}  // namespace vocabshift
