#include "core/replay.h"

#include "core/merge_by_rank.h"
#include "core/segmenter.h"

namespace vocabshift {

std::vector<Replay> replay_merges(WordCounter& words, const Encoder* encoder,
                                  const std::vector<ModelMerge>& merges, const Tick& tick) {
  constexpr std::size_t kTickEvery = 1 << 14;  // words
  MergeTable table(merges.size());
  for (std::uint32_t rank = 0; rank < merges.size(); ++rank) {
    table.set({merges[rank].left, merges[rank].right}, rank, merges[rank].product);
  }
  Segmenter segment = encoder ? Segmenter({}, encoder) : Segmenter(std::size_t{kNoToken});
  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> ranks;
  MergeScratch scratch;
  scratch.log = &ranks;
  std::vector<Replay> replays(words.group_count());
  std::size_t done = 0;
  const std::size_t total = words.bound().words;
  for (std::size_t group = 0; group < replays.size(); ++group) {
    Replay& replay = replays[group];
    replay.happened.resize(merges.size());
    words.for_each_word_of(group, [&](std::string_view word, Count count) {
      if (tick && ++done % kTickEvery == 0) tick(done, total);
      const std::span<const TokenId> segmented = segment(word);
      replay.words += count;
      replay.tokens += count * segmented.size();
      if (segmented.size() < 2) return;
      tokens.assign(segmented.begin(), segmented.end());
      ranks.clear();
      merge_by_rank(table, tokens, kNoRank, scratch);
      for (const std::uint32_t rank : ranks) replay.happened[rank] += count;
    });
  }
  return replays;
}

}  // namespace vocabshift
