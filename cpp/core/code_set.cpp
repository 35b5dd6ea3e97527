#include "core/code_set.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/unicode.h"

namespace vocabshift {

void CodeSet::append(char32_t first, char32_t last) {
  if (!ranges_.empty() && first <= ranges_.back().last + 1) {
    ranges_.back().last = std::max(ranges_.back().last, last);
  } else {
    ranges_.push_back({first, last});
  }
}

CodeSet& CodeSet::operator|=(const CodeSet& other) {
  std::vector<Range> both(ranges_.size() + other.ranges_.size());
  std::merge(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(),
             both.begin(), [](const Range& a, const Range& b) { return a.first < b.first; });
  ranges_.clear();
  for (const Range& range : both) append(range.first, range.last);
  return *this;
}

CodeSet CodeSet::operator~() const {
  CodeSet rest;
  char32_t next = 0;
  for (const Range& range : ranges_) {
    if (next < range.first) rest.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLast) rest.ranges_.push_back({next, kLast});
  return rest;
}

namespace {

constexpr char32_t kBlockSize = char32_t{1} << tables::kBlockBits;

// The code points whose value in a two-stage table is wanted.
template <class Value, class Wanted>
CodeSet members(const std::uint16_t* index, const Value* blocks, Wanted&& wanted) {
  std::array<bool, 256> is_wanted;
  for (unsigned value = 0; value < 256; ++value) is_wanted[value] = wanted(value);
  CodeSet set;
  std::uint32_t before = ~0u;  // a block whose values are all wanted, or all not
  bool before_is_in = false;
  for (char32_t start = 0; start <= CodeSet::kLast; start += kBlockSize) {
    const std::uint32_t number = index[start / kBlockSize];
    const Value* const block = blocks + std::size_t{number} * kBlockSize;
    if (number != before) {
      const auto in =
          std::count_if(block, block + kBlockSize, [&](Value v) { return is_wanted[v]; });
      before = in == 0 || in == kBlockSize ? number : ~0u;
      before_is_in = in != 0;
    }
    if (number == before) {
      if (before_is_in) set.append(start, start + kBlockSize - 1);
      continue;
    }
    for (char32_t i = 0; i < kBlockSize; ++i) {
      if (is_wanted[block[i]]) set.append(start + i, start + i);
    }
  }
  return set;
}

template <class Wanted>
CodeSet by_category(Wanted&& wanted) {
  return members(tables::kCategoryIndex, tables::kCategoryBlocks, wanted);
}

// In the order of CATEGORIES in cpp/tables/generate.py.
constexpr std::string_view kCategories[32] = {
    "cn", "cc", "cf", "co", "ll", "lm", "lo", "lt", "lu", "mc", "me", "mn", "nd", "nl", "no",
    "pc", "pd", "pe", "pf", "pi", "po", "ps", "sc", "sk", "sm", "so", "zl", "zp", "zs"};
constexpr unsigned kCategoryMask = 31, kAlphabetic = 32, kUppercase = 64, kLowercase = 128;

constexpr std::pair<std::string_view, std::string_view> kLongNames[] = {
    {"other", "c"},
    {"unassigned", "cn"},
    {"control", "cc"},
    {"format", "cf"},
    {"privateuse", "co"},
    {"letter", "l"},
    {"lowercaseletter", "ll"},
    {"modifierletter", "lm"},
    {"otherletter", "lo"},
    {"titlecaseletter", "lt"},
    {"uppercaseletter", "lu"},
    {"mark", "m"},
    {"combiningmark", "m"},
    {"spacingmark", "mc"},
    {"enclosingmark", "me"},
    {"nonspacingmark", "mn"},
    {"number", "n"},
    {"decimalnumber", "nd"},
    {"letternumber", "nl"},
    {"othernumber", "no"},
    {"punctuation", "p"},
    {"punct", "p"},
    {"connectorpunctuation", "pc"},
    {"dashpunctuation", "pd"},
    {"closepunctuation", "pe"},
    {"finalpunctuation", "pf"},
    {"initialpunctuation", "pi"},
    {"otherpunctuation", "po"},
    {"openpunctuation", "ps"},
    {"symbol", "s"},
    {"currencysymbol", "sc"},
    {"modifiersymbol", "sk"},
    {"mathsymbol", "sm"},
    {"othersymbol", "so"},
    {"separator", "z"},
    {"lineseparator", "zl"},
    {"paragraphseparator", "zp"},
    {"spaceseparator", "zs"},
};

bool has_category(unsigned value, std::string_view names) {  // "lu", or "l" for all of them
  return kCategories[value & kCategoryMask].starts_with(names);
}

std::string folded_name(std::string_view name) {
  std::string folded;
  for (const char c : name) {
    if (c == '_') continue;
    folded.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
  }
  return folded;
}

}  // namespace

std::optional<CodeSet> posix_set(std::string_view name) {
  if (name == "alpha") return by_category([](unsigned v) { return (v & kAlphabetic) != 0; });
  if (name == "upper") return by_category([](unsigned v) { return (v & kUppercase) != 0; });
  if (name == "lower") return by_category([](unsigned v) { return (v & kLowercase) != 0; });
  if (name == "digit") return by_category([](unsigned v) { return has_category(v, "nd"); });
  if (name == "alnum") {
    return by_category([](unsigned v) { return (v & kAlphabetic) || has_category(v, "nd"); });
  }
  if (name == "word") {
    return by_category([](unsigned v) {
      return (v & kAlphabetic) || has_category(v, "m") || has_category(v, "nd") ||
             has_category(v, "pc");
    });
  }
  if (name == "space") {
    return members(tables::kClassIndex, tables::kClassBlocks,
                   [](unsigned v) { return (v & kSpace) != 0; });
  }
  if (name == "xdigit") return (CodeSet('0', '9') |= CodeSet('A', 'F')) |= CodeSet('a', 'f');
  if (name == "ascii") return CodeSet(0, 0x7F);
  if (name == "cntrl") return by_category([](unsigned v) { return has_category(v, "cc"); });
  if (name == "punct") {
    return by_category([](unsigned v) { return has_category(v, "p") || has_category(v, "s"); });
  }
  return std::nullopt;
}

std::optional<CodeSet> property_set(std::string_view name) {
  if (name == "any") return CodeSet(0, CodeSet::kLast);
  for (const auto& [long_name, category] : kLongNames) {
    if (name == long_name) name = category;
  }
  const bool is_category =
      (name.size() == 1 || name.size() == 2) &&
      std::any_of(std::begin(kCategories), std::end(kCategories),
                  [&](std::string_view category) { return category.starts_with(name); });
  if (is_category) return by_category([&](unsigned v) { return has_category(v, name); });
  for (std::size_t script = 1; script < tables::kScriptCount; ++script) {
    if (folded_name(tables::kScriptNames[script]) != name) continue;
    return members(tables::kScriptIndex, tables::kScriptBlocks,
                   [&](unsigned v) { return v == script; });
  }
  return posix_set(name);
}

bool is_caseless(const CodeSet& set) {
  if (set.empty()) return true;
  const CodeSet known = by_category([](unsigned v) {
    return has_category(v, "p") || has_category(v, "z") || has_category(v, "cc") ||
           has_category(v, "cf") || has_category(v, "sm") || has_category(v, "sc") ||
           has_category(v, "nd");
  });
  CodeSet beyond = set;
  return (beyond &= ~known).empty();
}

}  // namespace vocabshift
