// From a corpus to supermerges, in memory that does not grow with the text (BoundlessBPE).
//
// Word merges are learned before, from counted words (boundless_loop.h says why that is exact).
// Here the corpus is read twice more. What can join are neighbouring words, inside one piece, that
// are tokens of the word vocabulary and that the caller lets join; a run of them ends at any other.
// The first pass counts borders between such words, in a sketch with one hash that only
// overestimates; every supermerge across a border counts at most as much as that border did. So
// borders below the floor (the count of the last word merge, which no accepted merge lies below)
// are cut, and the second pass counts the short runs that are left, which repeat.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/boundless_loop.h"
#include "core/word_counts.h"
#include "core/words_in_pieces.h"

namespace vocabshift {

class BoundlessStage {
 public:
  struct Words {
    Vocabulary tokens;           // the 256 bytes, then the product of each merge
    std::vector<Merge> merges;   // with the count that each pair had
    std::vector<bool> may_join;  // by token id
  };
  // `weights[group]` multiplies the counts of a group's documents; `vocab_size` is that of the
  // whole run, and the word merges must be all up to that size. `expected_words`, any number,
  // only sets the size of the sketch.
  BoundlessStage(Words words, WordsInPieces cutter, std::vector<Count> weights,
                 std::size_t vocab_size, Count min_count, std::size_t expected_words);

  // First all documents through count_borders, then all of them again through count_runs.
  void count_borders(const Documents& documents, const GivenCuts& cuts, std::size_t group);
  void count_runs(const Documents& documents, const GivenCuts& cuts, std::size_t group);

  // Takes the runs out.
  BoundlessTrained train(const MergeRule& rule, const Tick& tick);

  Count floor() const { return floor_; }
  std::size_t threads() const { return cutter_.threads(); }

 private:
  // Tokens of neighbouring words that may join, kNoToken for others and between pieces.
  void look_up(std::string_view piece, std::span<const std::size_t> word_ends,
               std::vector<TokenId>& out) const;
  Count weight_of(std::size_t group) const;
  std::size_t cell_of(TokenId left, TokenId right) const;

  Words words_;
  WordsInPieces cutter_;
  std::vector<Count> weights_;
  std::size_t vocab_size_;
  Count min_count_;
  Count floor_;
  std::size_t cells_;  // a power of two
  std::unique_ptr<std::atomic<Count>[]> sketch_;
  std::vector<std::vector<std::unique_ptr<WordTable>>> runs_;  // [group][thread], null if unused
};

}  // namespace vocabshift
