#include "core/nfc.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/stop.h"
#include "core/unicode.h"
#include "core/utf8.h"

namespace vocabshift {

namespace {

constexpr char32_t kNone = 0x110000;

// Of Hangul, which is composed by rule: Unicode Standard, section 3.12.
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kFinals = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kFinalCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kFinalCount;

// What two characters compose to, or kNone.
char32_t compose(char32_t first, char32_t second) {
  const std::uint64_t pair = static_cast<std::uint64_t>(second) << 32 | first;
  const auto* const end = tables::kCompositions + tables::kCompositionCount;
  const auto* const found = std::lower_bound(tables::kCompositions, end, pair);
  return found != end && *found == pair ? tables::kComposed[found - tables::kCompositions] : kNone;
}

char32_t compose_hangul(char32_t first, char32_t second) {
  if (first - kLeads < kLeadCount && second - kVowels < kVowelCount) {
    return kSyllables + ((first - kLeads) * kVowelCount + second - kVowels) * kFinalCount;
  }
  const char32_t syllable = first - kSyllables;
  if (syllable < kSyllableCount && syllable % kFinalCount == 0 && second > kFinals &&
      second < kFinals + kFinalCount) {
    return first + second - kFinals;
  }
  return kNone;
}

struct Mark {  // or another character
  char32_t code_point;
  unsigned combining;
};

unsigned class_of(char32_t code_point) { return tables::nfc_value(code_point) & tables::kNfcClass; }

// Calls part(code point) for what a character is taken apart into.
template <class F>
void decompose(char32_t code_point, F&& part) {
  if (const char32_t syllable = code_point - kSyllables; syllable < kSyllableCount) {
    part(kLeads + syllable / (kVowelCount * kFinalCount));
    part(kVowels + syllable / kFinalCount % kVowelCount);
    if (syllable % kFinalCount != 0) part(kFinals + syllable % kFinalCount);
    return;
  }
  const auto* const end = tables::kDecomposed + tables::kDecomposedCount;
  const auto* const found = std::lower_bound(tables::kDecomposed, end, code_point);
  if (found == end || *found != code_point) return part(code_point);
  const auto number = found - tables::kDecomposed;
  for (auto i = tables::kPartsBegin[number]; i < tables::kPartsBegin[number + 1]; ++i) {
    part(tables::kParts[i]);
  }
}

// Whether normalizing may begin anew here: what stands before cannot change it, nor it that.
bool begins_anew(char32_t code_point) {
  constexpr unsigned kNot = tables::kNfcClass | tables::kNfcSecond;
  const unsigned value = tables::nfc_value(code_point);
  if (!(value & tables::kNfcUnsure)) return !(value & kNot);
  if (value & kNot) return false;
  char32_t first = kNone;
  decompose(code_point, [&](char32_t part) { first = first == kNone ? part : first; });
  return !(tables::nfc_value(first) & kNot);
}

void append_utf8(char32_t c, std::string& out) {
  if (c < 0x80) return out.push_back(static_cast<char>(c));
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr unsigned kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  out.push_back(static_cast<char>(kFirst[more] | c >> 6 * more));
  for (int i = more - 1; i >= 0; --i) out.push_back(static_cast<char>(0x80 | (c >> 6 * i & 0x3F)));
}

// Appends the normal form of a text: its characters taken apart, marks in order, put together.
void append_normal(std::string_view text, std::vector<Mark>& parts, std::string& out) {
  parts.clear();
  for (const char* at = text.data(); at < text.data() + text.size();) {
    const Decoded next = decode_utf8(at);
    at += next.length;
    decompose(next.code_point, [&](char32_t part) { parts.push_back({part, class_of(part)}); });
  }
  const auto is_starter = [](const Mark& part) { return part.combining == 0; };
  for (auto run = parts.begin(); run != parts.end();) {
    const auto end = std::find_if(run, parts.end(), is_starter);
    std::stable_sort(run, end, [](Mark a, Mark b) { return a.combining < b.combining; });
    run = std::find_if_not(end, parts.end(), is_starter);
  }
  std::size_t count = 0, starter = parts.size();
  int last = -1;  // class of what stands after the starter; -1: nothing
  for (const Mark part : parts) {
    if (starter < count && last < static_cast<int>(part.combining)) {
      const char32_t first = parts[starter].code_point;
      char32_t whole = compose(first, part.code_point);
      if (whole == kNone) whole = compose_hangul(first, part.code_point);
      if (whole != kNone) {
        parts[starter].code_point = whole;
        continue;
      }
    }
    last = static_cast<int>(part.combining);
    if (part.combining == 0) {
      starter = count;
      last = -1;
    }
    parts[count++] = part;
  }
  for (std::size_t i = 0; i < count; ++i) append_utf8(parts[i].code_point, out);
}

// The end of the ASCII at `at`.
const char* skip_ascii(const char* at, const char* end) {
  for (std::uint64_t word; end - at >= 8; at += 8) {
    std::memcpy(&word, at, 8);
    if (word & 0x8080808080808080U) break;
  }
  while (at < end && !(*at & 0x80)) ++at;
  return at;
}

// Up to where a text is known to be in normal form.
struct Known {
  const char* end;   // the first character that may have to change, or the end of the text
  const char* anew;  // the last character before `end`, or that itself, that begins_anew
};

Known find_change(const char* at, const char* const end) {
  char32_t starter = kNone;  // the last one
  const char* anew = at;
  bool is_composed = false;  // that one
  unsigned last = 0;         // combining class of the character before; 0: the starter itself
  while (at < end) {
    if (!(*at & 0x80)) {
      at = skip_ascii(at, end);
      anew = at - 1;
      starter = static_cast<unsigned char>(*anew);
      is_composed = false;
      last = 0;
      continue;
    }
    const Decoded next = decode_utf8(at);
    const unsigned value = tables::nfc_value(next.code_point);
    if (value == 0) [[likely]] {
      anew = at;
      starter = next.code_point;
      is_composed = false;
      last = 0;
      at += next.length;
      continue;
    }
    if (value & tables::kNfcUnsure) return {at, begins_anew(next.code_point) ? at : anew};
    const unsigned combining = value & tables::kNfcClass;
    if (combining != 0 && combining < last) return {at, anew};  // out of order
    if (value & tables::kNfcSecond && starter != kNone) {
      // A character of the same class in between, or any before a starter, blocks the pair.
      const bool is_blocked = combining == 0 ? last != 0 : last == combining;
      if (!is_blocked && compose(starter, next.code_point) != kNone) return {at, anew};
      // It may come before a mark that the starter is composed of, and compose with what is left.
      if (is_composed && combining != 0) return {at, anew};
    }
    if (combining == 0) {
      if (!(value & tables::kNfcSecond)) anew = at;
      starter = next.code_point;
      is_composed = value & tables::kNfcComposed;
    }
    last = combining;
    at += next.length;
  }
  return {end, end};
}

}  // namespace

std::optional<std::string_view> to_nfc(std::string_view text, std::string& room) {
  const char* const end = text.data() + text.size();
  Known known = find_change(text.data(), end);
  if (known.end == end) return text;
  room.clear();
  std::vector<Mark> parts;
  const char* at = text.data();  // up to here all is in `room`
  const auto is_known = [](char32_t c) { return !(tables::nfc_value(c) & tables::kNfcUnknown); };
  for (; known.end < end; known = find_change(at, end)) {
    room.append(at, known.anew);
    const char* stop = known.end;
    Decoded next = decode_utf8(stop);
    do {
      if (!is_known(next.code_point)) return std::nullopt;
      stop += next.length;
      if (stop == end) break;
      next = decode_utf8(stop);
    } while (!begins_anew(next.code_point));
    append_normal({known.anew, stop}, parts, room);
    may_stop(static_cast<std::size_t>(stop - at));
    at = stop;
  }
  room.append(at, end);
  return room;
}

}  // namespace vocabshift
