// Documents of ids: cut wherever a plain reading of the piece rule lets no piece reach across, with
// the same groups on one thread and two; what is trained on groups is what a slow reading learns,
// and is replayed to the same end. Ids and offsets that do not fit are refused.
#include "core/token_groups.h"

#include <map>

#include "core/replay.h"
#include "core/train.h"
#include "fuzz/fuzz.h"
#include "fuzz/slow.h"

using namespace vocabshift;

namespace {

using Group = std::vector<TokenId>;

Group group_of(std::string_view bytes, std::size_t vocab_size) {
  Group ids;
  read_group(bytes, vocab_size, ids);
  return ids;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  PieceRule::Options options;
  options.max_characters = input.ConsumeIntegralInRange<std::size_t>(1, 16);
  options.split_by_script = input.ConsumeBool();
  options.split_by_space = input.ConsumeBool();
  options.space_is_suffix = input.ConsumeBool();
  options.space_runs = input.ConsumeBool();
  options.digits = {U'1', U'2', U'3'};
  options.never = {U'\t'};
  const PieceRule rule(options);
  MergeRule merging;
  merging.pieces = rule;
  Limits limits{.min_frequency = input.ConsumeIntegralInRange<Count>(1, 3), .chunks_per_thread = 1};
  const std::size_t more = input.ConsumeIntegralInRange<std::size_t>(0, 40);
  const auto runs = fuzz::take_threads(input);

  Vocabulary vocabulary;
  std::vector<bool> is_part;  // by id: may stand in a group with others
  std::vector<TokenId> unmergeable;
  for (int left = input.ConsumeIntegralInRange(1, 24); left > 0; --left) {
    // Some tokens are bytes, which are no text.
    std::string text = input.ConsumeRandomLengthString(4);
    if (input.ConsumeBool()) text = fuzz::as_utf8(text);
    if (input.ConsumeBool()) text = "\u2581" + text;
    if (vocabulary.find(text) != kNoToken) continue;
    const TokenId id = vocabulary.add(text);
    const bool is_given =
        !rule.shape_of(text).is_possible || input.ConsumeIntegralInRange(0, 7) == 7;
    if (is_given) unmergeable.push_back(id);
    is_part.push_back(!is_given && !text.empty());
  }
  const TokenId known = vocabulary.size();
  const bool is_sound = input.ConsumeIntegralInRange(0, 15) < 15;
  std::vector<TokenId> ids;
  std::vector<std::int64_t> offsets{0};
  while (input.remaining_bytes() > 0) {
    const auto drawn = input.ConsumeIntegral<std::uint8_t>();
    if (drawn >= 240) {
      offsets.push_back(static_cast<std::int64_t>(ids.size()) + (is_sound ? 0 : drawn - 244));
    } else {
      ids.push_back(is_sound ? drawn % known : drawn);
    }
  }
  offsets.push_back(static_cast<std::int64_t>(ids.size()));
  bool fits = true;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    fits &= offsets[i] >= (i == 0 ? 0 : offsets[i - 1]) &&
            offsets[i] <= static_cast<std::int64_t>(ids.size());
  }
  for (const TokenId id : ids) fits &= id < known;

  std::map<Group, Count> expected;
  Count all = 0;
  for (std::size_t i = 0; fits && i + 1 < offsets.size(); ++i) {
    Group group;
    for (std::int64_t at = offsets[i]; at < offsets[i + 1]; ++at) {
      const TokenId id = ids[static_cast<std::size_t>(at)];
      if (!group.empty()) {
        const std::string both =
            std::string(vocabulary[group.back()]) + std::string(vocabulary[id]);
        if (!is_part[group.back()] || !is_part[id] || !rule.shape_of(both).is_possible) {
          ++expected[group];
          ++all;
          group.clear();
        }
      }
      group.push_back(id);
    }
    if (group.empty()) continue;
    ++expected[group];
    ++all;
  }
  std::vector<fuzz::SlowWord> words;
  for (const auto& [group, count] : expected) words.push_back({group, count});
  Vocabulary after = vocabulary;
  limits.vocab_size = known + more;
  const std::vector<Merge> learned =
      fuzz::learn_slowly(after, words, limits, merging, Duplicates::kReuseUnheld);
  Count tokens_left = 0;
  for (const fuzz::SlowWord& word : words) tokens_left += word.count * word.ids.size();

  std::vector<std::string_view> texts;
  for (TokenId id = 0; id < known; ++id) texts.push_back(vocabulary[id]);
  const TokenGroups groups(rule, texts, unmergeable);
  const EncodedDocuments documents{ids, offsets};
  for (const std::size_t threads : runs) {
    WordCounter counter(PreTokenizer(std::vector<PreTokenizer::Step>{}), threads);
    try {
      fuzz::require(groups.add_to(counter, documents, 0) == all, "all groups are counted");
      fuzz::require(groups.count(documents, threads) == all, "and counted alike without a counter");
    } catch (const std::invalid_argument&) {
      fuzz::require(!fits, "ids and offsets that fit are taken");
      return 0;
    }
    fuzz::require(fits, "ids and offsets that do not fit are refused");
    std::map<Group, Count> found;
    counter.for_each_sorted_record(
        [&](const WordRecord& record) { found[group_of(record.word, known)] += record.count; });
    fuzz::require(found == expected, "groups are cut where no piece reaches across");
    limits.threads = threads;
    const Trained trained =
        train_bpe(counter, {.of_group = {1}}, limits, merging,
                  Start{nullptr, vocabulary, Duplicates::kReuseUnheld}, 0, {}, true);
    fuzz::require(fuzz::are_equal(trained.merges, learned), "the merges of a slow reading");
    fuzz::require(trained.tokens == tokens_left, "as many tokens are left");
    std::vector<ModelMerge> merges;
    for (const Merge& merge : learned) merges.push_back({merge.left, merge.right, merge.product});
    const std::vector<Replay> replays = replay_merges(counter, nullptr, merges, {});
    Count replayed = 0;
    for (const Replay& replay : replays) {
      replayed += replay.tokens;
      for (const Count happened : replay.happened) replayed -= happened;
    }
    fuzz::require(replayed == tokens_left, "replayed merges end where training ended");
  }
  return 0;
}
