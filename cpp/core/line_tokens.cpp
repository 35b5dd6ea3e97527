#include "core/line_tokens.h"

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "core/stop.h"

namespace vocabshift {

namespace {

void check(bool fits, const char* what) {
  if (!fits) throw std::invalid_argument(what);
}

void check_offsets(const EncodedDocuments& encoded, std::size_t n_lines) {
  const auto& offsets = encoded.offsets;
  check(offsets.size() == n_lines + 1 && offsets.front() == 0 &&
            std::is_sorted(offsets.begin(), offsets.end()) &&
            offsets.back() == static_cast<std::int64_t>(encoded.ids.size()),
        "offsets must ascend from 0 to the number of ids, one more than there are lines");
}

std::span<const TokenId> ids_of(const EncodedDocuments& encoded, std::size_t line) {
  const auto begin = static_cast<std::size_t>(encoded.offsets[line]);
  return encoded.ids.subspan(begin, static_cast<std::size_t>(encoded.offsets[line + 1]) - begin);
}

// Writes the places of a line's tokens, laid end to end behind `spaces` spaces that are not
// counted. Whether their bytes are these spaces and the line.
bool lay_end_to_end(std::string_view line, std::size_t spaces, std::span<const TokenId> ids,
                    const TokenBytes& tokens, std::int64_t* starts, std::int64_t* ends) {
  std::size_t at = 0;  // among spaces and line
  for (const TokenId id : ids) {
    may_stop(4);
    check(id + std::size_t{1} < tokens.bounds.size(), "an id is not of the vocabulary");
    const auto begin = static_cast<std::size_t>(tokens.bounds[id]);
    const auto end = static_cast<std::size_t>(tokens.bounds[id + 1]);
    check(begin <= end && end <= tokens.bytes.size(), "a token is outside of the bytes");
    std::string_view token = tokens.bytes.substr(begin, end - begin);
    const std::size_t start = at < spaces ? 0 : at - spaces;
    if (at < spaces && !token.empty()) {
      if (token.front() != ' ') return false;
      token.remove_prefix(1);
    }
    if (!line.substr(start).starts_with(token)) return false;
    at += end - begin;
    *starts++ = static_cast<std::int64_t>(start);
    *ends++ = static_cast<std::int64_t>(at < spaces ? 0 : at - spaces);
  }
  return at == line.size() + spaces;
}

}  // namespace

PlacedLines place_tokens(const DocumentSource& lines, const EncodedDocuments& encoded,
                         const TokenBytes& tokens) {
  check_offsets(encoded, lines.count());
  PlacedLines found{std::vector<std::int64_t>(encoded.ids.size()),
                    std::vector<std::int64_t>(encoded.ids.size()),
                    std::vector<std::int8_t>(lines.count(), PlacedLines::kInexact)};
  std::string room;
  for (std::size_t number = 0; number < lines.count(); ++number) {
    const std::span<const TokenId> ids = ids_of(encoded, number);
    const std::string_view line = lines.get(number, room);
    may_stop(line.size());
    std::int64_t* const starts = found.starts.data() + encoded.offsets[number];
    std::int64_t* const ends = found.ends.data() + encoded.offsets[number];
    for (const std::size_t spaces : {0, 1}) {
      if (lay_end_to_end(line, spaces, ids, tokens, starts, ends)) {
        found.spaces[number] = static_cast<std::int8_t>(spaces);
        break;
      }
    }
    if (found.spaces[number] != PlacedLines::kInexact) continue;
    std::int64_t at = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      check(ids[i] + std::size_t{1} < tokens.bounds.size(), "an id is not of the vocabulary");
      starts[i] = at;
      ends[i] = at += tokens.bounds[ids[i] + 1] - tokens.bounds[ids[i]];
    }
  }
  return found;
}

KeptTokens kept_tokens(const TokensInLines& before, const TokensInLines& after,
                       const ChangedWords& changed) {
  const std::size_t n_lines = changed.first.size();
  check(changed.words.size() == 3 * n_lines, "every line needs a word: begin, end, growth");
  for (const TokensInLines* side : {&before, &after}) {
    check_offsets(side->encoded, n_lines);
    check(side->starts.size() == side->encoded.ids.size() &&
              side->ends.size() == side->encoded.ids.size(),
          "every token needs a start and an end");
  }
  KeptTokens found{std::vector<std::int64_t>(n_lines), std::vector<std::int64_t>(n_lines)};
  for (std::size_t line = 0; line < n_lines; ++line) {
    const std::int64_t begin = changed.words[3 * line], end = changed.words[3 * line + 1];
    const std::int64_t grown = changed.words[3 * line + 2];
    const auto text_before = [&](std::int64_t place) {
      const std::int64_t at = changed.first[line] + place;
      check(at >= 0 && at < static_cast<std::int64_t>(changed.n_text.size()),
            "a token is outside of the lines");
      return changed.n_text[static_cast<std::size_t>(at)];
    };
    const auto has_text = [&](std::int64_t from, std::int64_t to) {
      return from < to && text_before(to) > text_before(from);
    };
    const auto first_of = [&](const TokensInLines& side, std::size_t of) {
      return static_cast<std::size_t>(side.encoded.offsets[of]);
    };
    const std::size_t first = first_of(after, line), stop = first_of(after, line + 1);
    std::size_t at = first;  // places ascend, but for a word that shrank
    for (std::size_t i = first_of(before, line); i < first_of(before, line + 1); ++i) {
      may_stop(8);
      const std::int64_t start = before.starts[i];
      const bool follows = has_text(std::max(start, end), std::max(before.ends[i], end));
      if (!follows && !has_text(std::min(start, begin), std::min(before.ends[i], begin))) continue;
      ++found.outside[line];
      const std::int64_t place = start + (follows && start >= begin ? grown : 0);
      while (at > first && after.starts[at - 1] >= place) --at;
      while (at < stop &&
             (after.starts[at] < place || (after.starts[at] == place && after.ends[at] == place))) {
        ++at;
      }
      found.kept[line] +=
          at < stop && after.starts[at] == place && after.encoded.ids[at] == before.encoded.ids[i];
    }
  }
  return found;
}

}  // namespace vocabshift
