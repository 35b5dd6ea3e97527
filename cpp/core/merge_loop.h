// The merge loop of every trainer: start from a vocabulary and sequences, merge the best pair
// until there is a reason to stop. Byte-pair encoding exactly as `tokenizers` trains it
// (docs/algorithms/bpe.md): overlapping pairs are counted, merges run left to right.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/chunk_merger.h"
#include "core/language_choice.h"
#include "core/merge_queue.h"
#include "core/merge_rule.h"
#include "core/pair_index.h"
#include "core/sequences.h"
#include "core/types.h"
#include "core/vocabulary.h"

namespace vocabshift {

struct Merge {
  TokenId left;
  TokenId right;
  TokenId product;
  Count count;  // of the pair when it was merged
};

enum class Stopped {
  kVocabSize,     // as many tokens as asked for
  kMinFrequency,  // no pair is left that occurs often enough
  kNoPairLeft,
  kFloor,   // no pair is left at or above the floor the caller allowed
  kMemory,  // going on would take more memory than allowed
};

// What happens to a pair whose product is a token already.
enum class Duplicates {
  kReuseId,
  kRefusePair,
  // The id is taken again as long as no merge holds that token. Later merges cannot let an earlier
  // one happen then, so that running all of them by rank ends where training ended.
  kReuseUnheld,
};

struct Limits {
  std::size_t vocab_size = 0;  // tokens in the vocabulary, those it started with included
  Count min_frequency = 1;     // a pair must count at least this much
  Count lowest_floor = 1;      // counts below this are not to be trusted: stop there (kFloor)
  TieBreak tie_break = TieBreak::kIds;
  // No result depends on these:
  std::size_t threads = 1;
  std::size_t chunks_per_thread = 4096;  // of a pair; fewer are not worth a thread
};

class MergeLoop {
 public:
  // `held`: by id, whether a merge that was done before holds the token; may be shorter than the
  // vocabulary. Only kReuseUnheld asks.
  MergeLoop(Vocabulary vocabulary, Sequences sequences, MergeRule rule, Duplicates duplicates,
            std::vector<bool> held = {});

  // A tick that throws stops the run, and the loop can only be thrown away then.
  Stopped run(const Limits& limits, const Tick& tick);

  // The same where the sequences have sections: language i is section i. Each merge is the best
  // pair of the language that `choice` names, and is made in all sections. What `choice` measures
  // is the languages, or sections after theirs, as many, which only lend their tokens. Pairs count
  // apart in sections, and one that is rare in the language it is chosen for may be frequent
  // elsewhere: so all of them are kept, which takes more memory than run.
  Stopped run_by_language(const Limits& limits, LanguageChoice& choice, bool measures_others,
                          const Tick& tick);

  const std::vector<Merge>& merges() const { return merges_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  Sequences& sequences() { return sequences_; }
  // Tokens that the merges so far have saved, every occurrence counted once; of a run by language,
  // in the languages.
  Count tokens_saved() const { return tokens_saved_; }
  // Of a run by language: whom each merge served, and the tokens saved in each language.
  const std::vector<std::uint32_t>& served() const { return served_; }
  const std::vector<Count>& saved_by_language() const { return saved_by_language_; }
  std::size_t peak_memory_bytes() const { return peak_memory_bytes_; }

 private:
  struct Part {
    Chunks chunks;  // to be merged while other parts are
    Chunks seam;    // to be merged after that
  };
  struct ListEnd {
    Sequences::ChunkAt* next;
    std::size_t step;  // 0: there is no list, and all is written to one place
  };

  // Pairs of one language, best first. Most are rare and never come up: they wait, in no order.
  struct LanguageQueue {
    MergeQueue queue;
    std::vector<Candidate> waiting;  // those below the floor
    Count floor = 0;
  };

  bool may_make(TokenId existing) const;
  void prepare(const Limits& limits);
  void index_by_language();
  void merge_in_sections(const Merge& merge, bool is_reused, LanguageChoice& choice,
                         bool measures_others);
  void push(std::uint32_t section, Candidate candidate);
  bool refill(LanguageQueue& queue, Count lowest);
  void note_memory(std::size_t of_queues);
  std::size_t bytes_of_queues() const;
  void widen_if_full();
  void build_index(const std::function<Count(Count largest)>& choose_floor);
  Count apply(Pair pair, TokenId product, Chunks chunks, bool is_reused);
  std::vector<Part> parts_of(Chunks chunks);
  void update_counts(Pair pair, TokenId product);
  void add_new_pairs(Neighbours ChunkMerger::* which, TokenId product, bool product_is_left);

  Vocabulary vocabulary_;
  Sequences sequences_;
  MergeRule rule_;
  Duplicates duplicates_;
  std::vector<bool> held_;  // by id
  PairIndex index_;
  MergeQueue queue_;
  std::vector<LanguageQueue> queues_;  // of a run by language
  std::vector<std::uint32_t> served_;
  std::vector<Count> saved_by_language_;
  std::uint32_t section_ = 0;  // of the chunks being merged
  Count floor_ = 0;            // pairs below it are not in the index
  TokenId nothing_ = 0;        // stands for the neighbour that a first or last token does not have
  std::vector<ChunkMerger> mergers_;  // one per thread
  std::size_t chunks_per_thread_ = 1;
  std::vector<ListEnd> lists_;   // of the new pairs of one side
  std::vector<Candidate> born_;  // new pairs of the merge under way
  std::vector<Merge> merges_;
  Count tokens_saved_ = 0;
  std::size_t peak_memory_bytes_ = 0;
};

}  // namespace vocabshift
