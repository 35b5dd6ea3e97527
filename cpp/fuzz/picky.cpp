// PickyBPE and OBPE on drawn text: the events, tokens and words of a slow reading, which counts
// everything anew after each event; and its segmentation beside that of a merge list.
#include <map>
#include <set>

#include "core/picky_train.h"
#include "fuzz/fuzz.h"
#include "fuzz/slow.h"

using namespace vocabshift;

namespace {

struct Word {
  std::string text;
  std::vector<Count> counts;  // weighted, by language
  Count occurrences = 0;
  std::vector<TokenId> ids = {};

  Count all() const {
    Count sum = 0;
    for (const Count count : counts) sum += count;
    return sum;
  }
};

struct Slow {
  Vocabulary tokens = byte_vocabulary();
  std::vector<Pair> made_from = std::vector<Pair>(256, {kNoToken, kNoToken});
  std::vector<bool> present = std::vector<bool>(256, true);
  std::vector<PickyEvent> events = {};
  std::vector<Word> words = {};

  std::vector<TokenId> walk(TokenId token) const {
    if (present[token]) return {token};
    std::vector<TokenId> parts = walk(made_from[token].left);
    for (const TokenId part : walk(made_from[token].right)) parts.push_back(part);
    return parts;
  }

  void remove_if_rare(TokenId token, Count merged, double threshold) {
    Count rest = 0;
    for (const Word& word : words) {
      rest += word.all() * static_cast<Count>(std::count(word.ids.begin(), word.ids.end(), token));
    }
    const double share = static_cast<double>(merged) / static_cast<double>(rest + merged);
    if (made_from[token].left == kNoToken || !(share > threshold)) return;
    present[token] = false;
    const std::vector<TokenId> parts = walk(token);
    events.push_back({token, kNoToken, kNoToken, rest, parts});
    for (Word& word : words) {
      std::vector<TokenId> ids;
      for (const TokenId id : word.ids) {
        if (id == token) {
          ids.insert(ids.end(), parts.begin(), parts.end());
        } else {
          ids.push_back(id);
        }
      }
      word.ids = ids;
    }
  }

  void train(const PairScore& score, const MergeRule& rule, double threshold,
             std::size_t vocab_size, Count min_count) {
    while (static_cast<std::size_t>(std::count(present.begin(), present.end(), true)) <
           vocab_size) {
      std::map<std::uint64_t, std::vector<Count>> pairs;  // by key, which decides ties
      for (const Word& word : words) {
        for (std::size_t i = 0; i + 1 < word.ids.size(); ++i) {
          auto& counts = pairs[Pair{word.ids[i], word.ids[i + 1]}.key()];
          counts.resize(score.languages());
          for (std::size_t j = 0; j < counts.size(); ++j) counts[j] += word.counts[j];
        }
      }
      Count best = 0;
      Pair pair{};
      for (const auto& [key, counts] : pairs) {
        Count all = 0;
        for (const Count count : counts) all += count;
        const Pair own{static_cast<TokenId>(key >> 32), static_cast<TokenId>(key)};
        if (all < min_count || score(counts.data()) <= best) continue;
        if (!rule.allows(std::string(tokens[own.left]) + std::string(tokens[own.right]))) continue;
        best = score(counts.data());
        pair = own;
      }
      if (best == 0) return;
      const std::string spelt = std::string(tokens[pair.left]) + std::string(tokens[pair.right]);
      TokenId product = tokens.find(spelt);
      if (product == kNoToken) {
        product = tokens.add(spelt);
        made_from.push_back(pair);
        present.push_back(true);
      }
      present[product] = true;
      Count merged = 0;
      for (Word& word : words) merged += fuzz::replace_pair(word.ids, pair, product) * word.all();
      events.push_back({pair.left, pair.right, product, merged, {}});
      remove_if_rare(pair.left, merged, threshold);
      if (pair.left != pair.right) remove_if_rare(pair.right, merged, threshold);
    }
  }

  // Begin and end of each token.
  std::set<std::pair<std::size_t, std::size_t>> spans(const std::vector<TokenId>& ids) const {
    std::set<std::pair<std::size_t, std::size_t>> found;
    std::size_t begin = 0;
    for (const TokenId id : ids) {
      found.emplace(begin, begin + tokens[id].size());
      begin += tokens[id].size();
    }
    return found;
  }

  PickyComparison compare(const std::vector<ModelMerge>& merges) const {
    PickyComparison result;
    for (const Word& word : words) {
      const TokenId whole = tokens.find(word.text);
      const bool is_whole = whole != kNoToken && present[whole];
      const auto own = spans(is_whole ? std::vector<TokenId>{whole} : word.ids);
      const auto other = spans(fuzz::slow_merges(tokens, merges, word.text));
      Count differing = 0;
      for (const auto& span : other) differing += !own.contains(span);
      result.words += word.occurrences;
      result.words_differing += own == other ? 0 : word.occurrences;
      result.replayed_tokens += word.occurrences * own.size();
      result.exported_tokens += word.occurrences * other.size();
      result.tokens_differing += word.occurrences * differing;
    }
    return result;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const PreTokenizer pre_tokenizer = fuzz::take_pre_tokenizer(input);
  const MergeRule rule = fuzz::take_rule(input);
  const double threshold = input.ConsumeIntegralInRange(1, 20) / 20.0;
  const std::size_t vocab_size = 256 + input.ConsumeIntegralInRange<std::size_t>(0, 80);
  const Count min_count = input.ConsumeIntegralInRange<Count>(1, 3);
  PairScore score;
  if (input.ConsumeBool()) {
    std::vector<bool> is_high{true, false};
    for (int left = input.ConsumeIntegralInRange(0, 2); left > 0; --left) {
      is_high.push_back(input.ConsumeBool());
    }
    const double powers[] = {-2, -0.5, -1e300 * 1e300};
    score = PairScore(is_high, input.ConsumeIntegralInRange(1, 4) / 4.0,
                      powers[input.ConsumeIntegralInRange(0, 2)]);
  }
  const std::size_t groups = input.ConsumeIntegralInRange<std::size_t>(1, 4);
  std::vector<GroupWeight> weights;
  for (std::size_t i = 0; i < groups; ++i) {
    weights.push_back({input.ConsumeIntegralInRange<Count>(1, 3),
                       input.ConsumeIntegralInRange<std::uint32_t>(
                           0, static_cast<std::uint32_t>(score.languages()) - 1)});
  }
  const fuzz::Lines lines(fuzz::rest_as_text(input));

  WordCounter counter(pre_tokenizer, 1);
  std::map<std::string, Word> words;  // in the order in which the loop gets them
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const GroupWeight& group = weights[i % groups];
    counter.add(lines.document(i), i % groups);
    pre_tokenizer.split(lines.documents()[i], [&](std::string_view text) {
      Word& word = words[std::string(text)];
      word.counts.resize(score.languages());
      word.counts[group.language] += group.weight;
      ++word.occurrences;
    });
  }
  Slow slow;
  for (auto& [text, word] : words) {
    word.text = text;
    word.ids = fuzz::ids_of_bytes(slow.tokens, text);
    slow.words.push_back(word);
  }
  slow.train(score, rule, threshold, vocab_size, min_count);

  PickyLoop loop(score, rule, threshold);
  add_words(loop, counter, weights);
  loop.run(vocab_size, min_count, {});
  fuzz::require(loop.events().size() == slow.events.size(), "as many events as in a slow reading");
  std::vector<ModelMerge> merges;
  for (std::size_t i = 0; i < slow.events.size(); ++i) {
    const PickyEvent &own = loop.events()[i], &other = slow.events[i];
    fuzz::require(own.left == other.left && own.right == other.right &&
                      own.product == other.product && own.count == other.count &&
                      own.parts == other.parts,
                  "and the same");
    if (own.right != kNoToken) merges.push_back({own.left, own.right, own.product});
  }
  fuzz::require(loop.present() == slow.present, "the same tokens are there");
  fuzz::require(loop.vocabulary().size() == slow.tokens.size(), "and were there");
  Count tokens = 0;
  std::vector<TokenId> ids;
  for (PlacedTokens::Word word = 0; word < loop.words().word_count(); ++word) {
    ids.clear();
    for (auto at = loop.words().begin(word); at != PlacedTokens::kNowhere;
         at = loop.words().after(at)) {
      ids.push_back(loop.words().at(at));
    }
    fuzz::require(ids == slow.words[word].ids, "words end as in a slow reading");
    tokens += ids.size() * slow.words[word].occurrences;
  }
  fuzz::require(count_tokens(loop) == tokens, "tokens are counted as they stand");

  EncoderModel model;
  model.tokens = loop.vocabulary();
  model.merges = merges;
  std::vector<std::uint32_t> lengths;
  for (TokenId id = 0; id < model.tokens.size(); ++id) {
    model.ids.push_back(id);
    lengths.push_back(static_cast<std::uint32_t>(model.tokens[id].size()));
  }
  const PickyComparison found = compare_segmentations(loop, Encoder(std::move(model)), lengths);
  const PickyComparison expected = slow.compare(merges);
  fuzz::require(found.words == expected.words && found.words_differing == expected.words_differing,
                "as many words differ");
  fuzz::require(found.replayed_tokens == expected.replayed_tokens &&
                    found.exported_tokens == expected.exported_tokens &&
                    found.tokens_differing == expected.tokens_differing,
                "and tokens");
  return 0;
}
