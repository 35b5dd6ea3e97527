#include "core/picky_train.h"

#include <stdexcept>
#include <string>

#include "core/platform.h"
#include "core/stop.h"

namespace vocabshift {

namespace {

// Calls visit(ends) with the ends, in bytes, of the tokens of each word, and its text.
template <class Visit>
void for_each_word(const PickyLoop& loop, Visit&& visit) {
  const PlacedTokens& tokens = loop.words();
  std::string text;
  std::vector<std::uint32_t> ends;  // no word is longer
  for (PlacedTokens::Word word = 0; word < tokens.word_count(); ++word) {
    text.clear();
    ends.clear();
    for (auto at = tokens.begin(word); at != PlacedTokens::kNowhere; at = tokens.after(at)) {
      may_stop(4);
      text.append(loop.vocabulary()[tokens.at(at)]);
      ends.push_back(static_cast<std::uint32_t>(text.size()));
    }
    visit(word, text, ends);
  }
}

// Tokens of `ends` that begin and end as a token of `others` does.
Count in_common(const std::vector<std::uint32_t>& ends, const std::vector<std::uint32_t>& others) {
  Count common = 0;
  std::uint32_t begin = 0, other_begin = 0;
  for (std::size_t i = 0, j = 0; i < ends.size() && j < others.size();) {
    common += begin == other_begin && ends[i] == others[j];
    const std::uint32_t end = ends[i], other_end = others[j];
    may_stop(2);
    if (end <= other_end) begin = ends[i++];
    if (other_end <= end) other_begin = others[j++];
  }
  return common;
}

}  // namespace

void add_words(PickyLoop& loop, WordCounter& counter, const std::vector<GroupWeight>& groups) {
  if (groups.size() < counter.group_count()) {
    throw std::invalid_argument("every group of words needs a weight");
  }
  std::string word;
  std::vector<PickyLoop::Weight> weights;
  Count occurrences = 0;
  Count of_all = 0;  // no pair or token counts more
  const auto flush = [&] {
    if (!word.empty()) loop.add_word(word, weights, occurrences);
    weights.clear();
    occurrences = 0;
  };
  counter.for_each_sorted_record([&](const WordRecord& record) {
    if (record.word != word) {
      flush();
      word.assign(record.word);
    }
    const GroupWeight& group = groups[record.group];
    Count weighted, in_bytes;
    if (multiply_overflows(record.count, group.weight, &weighted) ||
        multiply_overflows(weighted, record.word.size(), &in_bytes) ||
        add_overflows(of_all, in_bytes, &of_all)) {
      WordSum::overflow();
    }
    occurrences += record.count;
    for (PickyLoop::Weight& weight : weights) {
      if (weight.language == group.language) {
        weight.count += weighted;
        return;
      }
    }
    weights.push_back({group.language, weighted});
  });
  flush();
  counter.clear();
}

PickyComparison compare_segmentations(const PickyLoop& loop, const Encoder& exported,
                                      const std::vector<std::uint32_t>& lengths) {
  PickyComparison result;
  Encoder::Scratch scratch(exported);
  std::vector<TokenId> ids;
  std::vector<std::uint32_t> exported_ends;
  for_each_word(loop, [&](PlacedTokens::Word word, const std::string& text,
                          std::vector<std::uint32_t>& ends) {
    const TokenId whole = loop.vocabulary().find(text);
    if (whole != kNoToken && loop.present()[whole])
      ends.assign(1, static_cast<std::uint32_t>(text.size()));
    ids.clear();
    exported.encode_piece(text, scratch, ids);
    exported.flush(scratch, ids);
    exported_ends.clear();
    std::uint32_t end = 0;
    for (const TokenId id : ids) {
      may_stop(2);
      exported_ends.push_back(end += lengths.at(id));
    }
    const Count occurrences = loop.occurrences(word);
    result.words += occurrences;
    result.words_differing += ends == exported_ends ? 0 : occurrences;
    result.replayed_tokens += occurrences * ends.size();
    result.exported_tokens += occurrences * exported_ends.size();
    result.tokens_differing +=
        occurrences * (exported_ends.size() - in_common(exported_ends, ends));
  });
  return result;
}

Count count_tokens(const PickyLoop& loop) {
  Count tokens = 0;
  for_each_word(loop, [&](PlacedTokens::Word word, const std::string&,
                          const std::vector<std::uint32_t>& ends) {
    tokens += loop.occurrences(word) * ends.size();
  });
  return tokens;
}

}  // namespace vocabshift
