#include "core/automaton.h"

#include <algorithm>

#include "core/hash.h"
#include "core/utf8.h"

namespace vocabshift {

namespace automaton {

namespace {

// Fewer characters at a time for a regex of many instructions and classes: a block may add a state
// for each of its characters.
std::size_t block_bytes(const RegexProgram& program) {
  const std::size_t state_bytes =
      (program.text_start() + 1) * sizeof(Edge) + program.place_count() * sizeof(Moves);
  return std::clamp((std::size_t{1} << 24) / state_bytes, std::size_t{1} << 10,
                    std::size_t{1} << 14);
}

// States that are kept from block to block.
std::size_t most_states(const RegexProgram& program) { return block_bytes(program) / 4; }

// Memory for cells that a thread uses again. Steps may be nested, so there is more than one.
thread_local std::vector<std::vector<Cell>> spare_cells;

}  // namespace

std::size_t Tables::Hash::operator()(const RegexProgram::Facts& facts) const {
  return hash_bytes({reinterpret_cast<const char*>(facts.data()), facts.size() * 8});
}

Tables::Tables(const RegexProgram& program) : program_(program) {}

Edge* Tables::add_state(const RegexProgram::Facts& facts) {
  const auto [found, is_new] = states_.try_emplace(facts);
  if (is_new) {
    found->second = std::make_unique<Edge[]>(program_.text_start() + std::size_t{1});
    facts_.emplace(found->second.get(), &found->first);
    state_count_.store(states_.size(), std::memory_order_relaxed);
  }
  return found->second.get();
}

Moves* Tables::add_moves(RegexProgram::Facts facts) {
  const auto [found, is_new] = moves_.try_emplace(std::move(facts));
  if (is_new) {
    found->second = std::make_unique<Moves[]>(program_.place_count() + std::size_t{1});
    facts_.emplace(found->second.get(), &found->first);
  }
  return found->second.get();
}

Edge* Tables::state_of(const RegexProgram::Facts& facts) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return add_state(facts);
}

RegexProgram::Facts Tables::facts_of(const Edge* state) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return *facts_.at(state);
}

void Tables::find(Edge* state, std::uint8_t read) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Edge& edge = state[read];
  if (edge.state.load(std::memory_order_relaxed)) return;  // another thread was first
  RegexProgram::Facts all = program_.complete(*facts_.at(state), read);
  Edge* const earlier = add_state(program_.one_earlier(all, read));
  edge.after.store(add_moves(std::move(all)), std::memory_order_relaxed);
  edge.state.store(earlier, std::memory_order_release);
}

std::uint16_t Tables::find_move(const Moves* moves, std::uint32_t place) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto& facts = *facts_.at(moves);
  // An empty match is a boundary like any other; the next match begins after a character.
  std::uint32_t next = program_.next_place(facts, place - 1);
  bool ends = place == kNoPlace && next != RegexProgram::kNoMatch;
  if (place != kNoPlace && next == RegexProgram::kMatched) {
    ends = true;
    next = program_.next_place(facts, 0);
  }
  const bool goes_on = next != RegexProgram::kMatched && next != RegexProgram::kNoMatch;
  const std::uint32_t number = goes_on ? next + 1 : kNoPlace;
  const auto move = static_cast<std::uint16_t>(number << 1 | static_cast<std::uint32_t>(ends));
  const_cast<Moves*>(moves)[place].store(move, std::memory_order_relaxed);
  return move;
}

Reader::Reader(const RegexProgram& program, Tables& shared, std::string_view text)
    : program_(program), text_(text), tables_(&shared) {
  if (!spare_cells.empty()) {
    cells_ = std::move(spare_cells.back());
    spare_cells.pop_back();
  }
  const std::size_t wanted = std::min(text.size(), block_bytes(program) + 3) + 1;
  if (cells_.size() < wanted) cells_.resize(wanted);
  const std::size_t blocks = (text.size() - 1) / block_bytes(program) + 1;
  ends_.resize(blocks);
  ends_[blocks - 1] = program.at_end();
  for (std::size_t block = blocks - 1; block > 0; --block) {
    choose_tables();
    Edge* const end = tables_->state_of(ends_[block]);
    ends_[block - 1] =
        tables_->facts_of(read_back(block_start(block), block_start(block + 1), end));
  }
}

Reader::~Reader() {
  try {
    spare_cells.push_back(std::move(cells_));
  } catch (...) {  // no memory: nothing is kept
  }
}

const char* Reader::block_start(std::size_t number) const {
  const char* const end = text_.data() + text_.size();
  if (number >= ends_.size()) return end;
  const char* at = text_.data() + number * block_bytes(program_);
  while (at < end && is_continuation_byte(*at)) ++at;
  return at;
}

void Reader::choose_tables() {
  if (tables_->state_count() < most_states(program_)) return;
  own_.emplace(program_);
  tables_ = &*own_;
}

bool Reader::read() {
  if (next_ == ends_.size()) return false;
  choose_tables();
  begin_ = block_start(next_);
  const char* const end = block_start(next_ + 1);
  read_back(begin_, end, tables_->state_of(ends_[next_]));
  ++next_;
  return true;
}

// The state at `begin`, given the one at `end`. Fills the cells of the characters between.
Edge* Reader::read_back(const char* begin, const char* end, Edge* state) {
  may_stop(static_cast<std::size_t>(end - begin));
  const auto edge_at = [&](std::uint8_t read) -> const Edge& {
    Edge& edge = state[read];
    if (!edge.state.load(std::memory_order_acquire)) [[unlikely]]
      tables_->find(state, read);
    return edge;
  };
  Cell* cell = cells_.data() + cells_.size() - 1;  // for the place at the end, whose moves are the
  first_ = cell;                                   // next block's
  if (begin == end) return state;
  const char* at = end;
  while (at > begin) {
    const auto last = static_cast<unsigned char>(*--at);
    std::uint8_t read;
    if (last < 0x80) {
      read = program_.ascii_class(last);
    } else {
      while (is_continuation_byte(*at)) --at;
      read = program_.class_of(decode_utf8(at).code_point);
    }
    const Edge& edge = edge_at(read);
    cell->moves = edge.after.load(std::memory_order_relaxed);
    --cell;
    cell->at = static_cast<std::uint32_t>(at - begin);
    state = edge.state.load(std::memory_order_relaxed);
  }
  first_ = cell;
  // The moves before the first character need the one before it.
  std::uint8_t before = program_.text_start();
  if (begin > text_.data()) {
    const char* previous = begin - 1;
    while (is_continuation_byte(*previous)) --previous;
    before = program_.class_of(decode_utf8(previous).code_point);
  }
  cell->moves = edge_at(before).after.load(std::memory_order_relaxed);
  return state;
}

}  // namespace automaton

std::optional<Automaton> Automaton::compile(std::string_view regex, Behavior behavior,
                                            bool is_inverted) {
  std::optional<RegexProgram> program = RegexProgram::compile(regex);
  if (!program) return std::nullopt;
  // An empty match between two others would be one of the things that are merged.
  if (behavior != Behavior::kIsolated && program->may_be_empty()) return std::nullopt;
  return Automaton(std::make_shared<const Shared>(std::move(*program)), behavior, is_inverted);
}

}  // namespace vocabshift
