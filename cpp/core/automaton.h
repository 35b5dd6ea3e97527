// A Split step with any regex that regex_tree.h takes, run by an automaton: pre-tokens equal to
// those of the backtracking engine, in time linear in the text whatever the regex.
//
// Two passes. The first goes from the end of the text to its start. Its state is which instructions
// of the regex succeed there (regex_program.h), so at each place it is known what every alternative
// would lead to. The second goes forward and takes the first alternative that leads to a match. The
// states and moves of both are made when a text first needs them, and kept for all threads. So this
// is a bimachine (Schützenberger 1961), made lazily; a forward automaton alone would read some
// texts again from each match on, and knows no lookahead.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/regex_program.h"
#include "core/stop.h"
#include "core/types.h"

namespace vocabshift {

namespace automaton {

// Moves of the second pass at one place of a text, by where a match is under way; 0: not known yet.
// Otherwise twice the number of the place (from 1) after the next character, plus 1 where a
// pre-token ends before it.
using Moves = std::atomic<std::uint16_t>;

// What the first pass does at a character of some class.
struct Edge {
  std::atomic<Edge*> state{nullptr};   // edges of the state before it; null: not known yet
  std::atomic<Moves*> after{nullptr};  // moves at the place after it
};

// A character of the text in the second pass.
struct Cell {
  Moves* moves;      // before it
  std::uint32_t at;  // bytes from the start of the block
};

// The states and moves found so far. Threads read them without a lock, and take one to add some.
class Tables {
 public:
  explicit Tables(const RegexProgram& program);

  std::size_t state_count() const { return state_count_.load(std::memory_order_relaxed); }
  Edge* state_of(const RegexProgram::Facts& facts);
  RegexProgram::Facts facts_of(const Edge* state);
  void find(Edge* state, std::uint8_t read);  // sets one edge
  std::uint16_t find_move(const Moves* moves, std::uint32_t place);

 private:
  struct Hash {
    std::size_t operator()(const RegexProgram::Facts& facts) const;
  };
  template <class T>
  using ByFacts = std::unordered_map<RegexProgram::Facts, std::unique_ptr<T[]>, Hash>;

  Edge* add_state(const RegexProgram::Facts& facts);
  Moves* add_moves(RegexProgram::Facts facts);

  const RegexProgram& program_;
  std::mutex mutex_;
  std::atomic<std::size_t> state_count_{0};
  ByFacts<Edge> states_;
  ByFacts<Moves> moves_;
  std::unordered_map<const void*, const RegexProgram::Facts*> facts_;  // of a state, or of moves
};

inline constexpr std::uint32_t kNoPlace = 1;  // no match is under way

// The first pass over a text, block by block: so that memory does not grow with the text.
class Reader {
 public:
  Reader(const RegexProgram& program, Tables& shared, std::string_view text);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // The next block from the start of the text; false after the last one.
  bool read();
  const char* block() const { return begin_; }
  const Cell* first() const { return first_; }
  const Cell* last() const { return cells_.data() + cells_.size() - 1; }  // exclusive
  std::uint16_t find_move(const Moves* moves, std::uint32_t place) {
    return tables_->find_move(moves, place);
  }

 private:
  const char* block_start(std::size_t number) const;
  void choose_tables();
  Edge* read_back(const char* begin, const char* end, Edge* state);

  const RegexProgram& program_;
  std::string_view text_;
  Tables* tables_;                         // the shared ones, until these are full
  std::optional<Tables> own_;              // likewise full, they are begun again
  std::vector<RegexProgram::Facts> ends_;  // at the end of each block
  std::size_t next_ = 0;                   // block
  const char* begin_ = nullptr;
  std::vector<Cell> cells_;  // filled from its end; one more than a block has characters
  const Cell* first_ = nullptr;
};

}  // namespace automaton

class Automaton {
 public:
  // What becomes of a match; what is between two is a pre-token else. "Removed" would lose text.
  enum class Behavior { kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

  // `is_inverted`: what the regex does not match is taken for the matches. None for a regex that is
  // refused. Costs about a millisecond.
  static std::optional<Automaton> compile(std::string_view regex, Behavior behavior,
                                          bool is_inverted);

  // Calls `pre_token(std::string_view)` for every pre-token of valid UTF-8 `text` (not empty).
  template <class F>
  void split(std::string_view text, F&& pre_token) const {
    if (behavior_ == Behavior::kIsolated) {
      return each_span(text, [&](std::string_view span, bool) { pre_token(span); });
    }
    std::string_view waiting;
    bool waiting_matches = false;
    each_span(text, [&](std::string_view span, bool is_match) {
      const bool matches = is_match != is_inverted_;
      const bool joins = behavior_ == Behavior::kMergedWithPrevious ? matches && !waiting_matches
                         : behavior_ == Behavior::kMergedWithNext   ? !matches && waiting_matches
                                                                    : matches == waiting_matches;
      if (!waiting.empty() && joins) {
        waiting = {waiting.data(), waiting.size() + span.size()};
      } else {
        if (!waiting.empty()) pre_token(waiting);
        waiting = span;
      }
      waiting_matches = matches;
    });
    pre_token(waiting);
  }

 private:
  struct Shared {
    explicit Shared(RegexProgram own) : program(std::move(own)), tables(program) {}
    const RegexProgram program;
    mutable automaton::Tables tables;
  };

  Automaton(std::shared_ptr<const Shared> shared, Behavior behavior, bool is_inverted)
      : shared_(std::move(shared)), behavior_(behavior), is_inverted_(is_inverted) {}

  // Matches, and what is between them.
  template <class F>
  void each_span(std::string_view text, F&& span) const {
    automaton::Reader reader(shared_->program, shared_->tables, text);
    const char* begin = text.data();
    std::uint32_t place = automaton::kNoPlace;
    while (reader.read()) {
      const char* const block = reader.block();
      const automaton::Cell* const last = reader.last();
      for (const automaton::Cell* cell = reader.first(); cell != last; ++cell) {
        std::uint32_t move = cell->moves[place].load(std::memory_order_relaxed);
        if (move == 0) [[unlikely]]
          move = reader.find_move(cell->moves, place);
        if (move & 1) {
          const char* const at = block + cell->at;
          if (begin < at) span(std::string_view(begin, at), place != automaton::kNoPlace);
          begin = at;
        }
        place = move >> 1;
      }
    }
    span(std::string_view(begin, text.data() + text.size()), place != automaton::kNoPlace);
  }

  std::shared_ptr<const Shared> shared_;
  Behavior behavior_;
  bool is_inverted_;
};

}  // namespace vocabshift
