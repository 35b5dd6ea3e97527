// One-stage BPE with supermerges (BoundlessBPE, arXiv 2504.00178): merges inside words and merges
// of whole neighbouring words compete by count in one run.
//
// A supermerge joins two units that stand side by side, each a word that has become one token or
// what earlier supermerges have joined. It uses up words that hold no pair any more, so merges
// inside words never depend on supermerges: they are learned first, alone, and handed in as a list
// with the count that each pair had when it merged. The run then takes, at each step, the better of
// the next word merge and the best supermerge, by the rule of merge_queue.h over both kinds: the
// highest count, then the smaller (left_id, right_id), ids in order of creation over both kinds.
// (The relative order of word tokens is that of their own list, so ties inside it stay decided.)
//
// A pair of units is live from one moment on: when both are there and unlocked, that is, when the
// word merge that completes the later one is taken. Its count only falls after that, and never
// rises before: units do not come back. So a lazy heap is exact.
//
// `floor` is a count that no accepted merge lies below: the last word merge's if the list is as
// long as the vocabulary allows, since each supermerge that is taken counts at least as much as the
// word merge it is preferred to, and counts of word merges never rise. Pairs below it are dropped.
//
// One rule for strings that can be made both ways ("'rE" inside a word and as "'r" + "E"): a
// supermerge whose product is a token already, or one that word merges make at any time, is refused
// for good. So no string has two ids and word merges stay independent.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "core/merge_loop.h"

namespace vocabshift {

struct BoundlessTrained {
  Vocabulary vocabulary;
  std::vector<Merge> merges;        // both kinds, in the order in which they were taken
  std::vector<bool> is_supermerge;  // of each merge
  Stopped stopped = Stopped::kVocabSize;
  std::size_t peak_memory_bytes = 0;  // of the runs and pairs
};

class BoundlessLoop {
 public:
  // `words` holds the 256 bytes, then the product of each of `merges`, in order.
  BoundlessLoop(const Vocabulary& words, const std::vector<Merge>& merges, MergeRule rule,
                Count floor);

  // Adds neighbouring words, each a token of `words` or completed later as one, that may join.
  // `weight` decides which pairs merge; `occurrences` only counts tokens.
  void add_run(std::span<const TokenId> words, Count weight, Count occurrences);

  // Merges until there are `vocab_size` tokens or no pair counts `min_count`; call once.
  BoundlessTrained run(std::size_t vocab_size, Count min_count, const Tick& tick);

 private:
  // Units are numbered apart from tokens: words as in `words`, then supermerges, as they come.
  using Unit = TokenId;
  using At = std::uint32_t;  // place of a unit among all runs
  static constexpr At kNowhere = 0xFFFFFFFFu;

  struct PairState {
    std::uint64_t key;  // of units
    Count count;
    std::vector<At> places;  // of the left unit, ascending; some may be stale
  };
  struct Neighbours {         // of the merged places, on one side
    std::vector<Count> sums;  // by unit
    std::vector<Unit> touched;
    std::vector<std::pair<Unit, At>> seen;  // and the place of the left one of the new pair
    void see(Unit unit, Count count, At place);
    void clear();
  };
  struct Run {
    Count weight;
    Count occurrences;
  };

  void index_pairs();
  void announce(std::uint32_t pair);
  bool is_unlocked(Unit unit) const { return token_of_[unit] != kNoToken; }
  bool find_best(Candidate* best);
  bool take_supermerge(const Candidate& best);
  void take_word_merge(const Candidate& next);
  TokenId add_token(Unit unit, std::string_view bytes, Pair tokens, Count count, bool is_super);
  void merge_places(std::uint32_t pair, Unit product);
  void consume(Unit left, Unit right, Count count);
  void add_new_pairs(Neighbours& side, Unit product, bool product_is_left);
  std::size_t memory_bytes() const;

  const Vocabulary& words_;
  const std::vector<Merge>& word_merges_;
  MergeRule rule_;
  Count floor_;
  std::size_t next_word_ = 0;

  std::vector<Unit> units_;  // by place; kNoToken where a merge has taken it
  std::vector<At> next_, previous_;
  std::vector<std::uint32_t> run_of_;
  std::vector<Run> runs_;

  std::vector<TokenId> token_of_;  // by unit; kNoToken while it is locked
  std::vector<Unit> unit_of_;      // by token id
  std::vector<PairState> pairs_;
  std::unordered_map<std::uint64_t, std::uint32_t> pair_of_;  // by key
  std::vector<std::vector<std::uint32_t>> waiting_;           // by locked word: pairs with it
  std::size_t places_in_pairs_ = 0;
  MergeQueue queue_;
  Neighbours left_, right_;
  BoundlessTrained result_;
};

}  // namespace vocabshift
