#include "core/regex_program.h"

#include <algorithm>
#include <string_view>

namespace vocabshift {

namespace {

constexpr std::size_t kMostInstructions = 4000, kMostFacts = 6000;

struct TooLarge {};

}  // namespace

// Writes a tree from its end to its start: what follows a part is known when it is written.
class RegexProgram::Writer {
 public:
  Writer(const RegexTree& tree, RegexProgram& program) : tree_(tree), program_(program) {}

  // The instruction that `node` begins with, `next` following it inside `depth` - 1 groups.
  std::uint32_t write(std::uint32_t number, std::uint32_t next, std::uint32_t depth) {
    const RegexNode& node = tree_.nodes[number];
    switch (node.kind) {
      case RegexNode::kSequence:
        for (auto part = node.parts.rbegin(); part != node.parts.rend(); ++part) {
          next = write(*part, next, depth);
        }
        return next;
      case RegexNode::kChoice: {
        std::uint32_t first = write(node.parts.back(), next, depth);
        for (auto part = node.parts.rbegin() + 1; part != node.parts.rend(); ++part) {
          const std::uint32_t own = write(*part, next, depth);
          first = add({.op = Op::kSplit, .next = own, .other = first, .depth = depth});
        }
        return first;
      }
      case RegexNode::kSet:
        return add({.op = Op::kRead,
                    .folded = node.folded,
                    .next = next,
                    .set = node.set,
                    .depth = depth});
      case RegexNode::kRepeat:
        return repeat(node, next, depth);
      case RegexNode::kAtomic: {
        const std::uint32_t end = add({.op = Op::kAtomicEnd, .next = next, .depth = depth + 1});
        const std::uint32_t inner = write(node.parts[0], end, depth + 1);
        return add({.op = Op::kAtomic, .next = inner, .depth = depth});
      }
      case RegexNode::kLook: {
        const std::uint32_t inner = write(node.parts[0], add({.op = Op::kAccept}), 1);
        const Op op = node.negated ? Op::kLookNot : Op::kLook;
        return add({.op = op, .next = next, .other = inner, .depth = depth});
      }
      case RegexNode::kBehind: {
        const Op op = node.at_start ? Op::kBehindOrStart : Op::kBehind;
        return add({.op = op, .next = next, .set = node.set, .depth = depth});
      }
      case RegexNode::kTextEnd:
        return add({.op = Op::kTextEnd, .next = next, .depth = depth});
    }
    return next;
  }

  std::uint32_t add(Instruction instruction) {
    if (program_.code_.size() == kMostInstructions) throw TooLarge();
    instruction.fact = program_.fact_count_;
    program_.fact_count_ += instruction.depth;
    if (program_.fact_count_ > kMostFacts) throw TooLarge();
    program_.code_.push_back(instruction);
    return static_cast<std::uint32_t>(program_.code_.size() - 1);
  }

 private:
  std::uint32_t split(std::uint32_t again, std::uint32_t done, bool lazy, std::uint32_t depth) {
    return add({.op = Op::kSplit,
                .next = lazy ? done : again,
                .other = lazy ? again : done,
                .depth = depth});
  }

  std::uint32_t repeat(const RegexNode& node, std::uint32_t next, std::uint32_t depth) {
    const std::uint32_t part = node.parts[0];
    std::uint32_t first = next;
    std::uint32_t least = node.least;
    if (node.most == RegexNode::kEndless) {
      const std::uint32_t loop = split(0, next, node.lazy, depth);
      const std::uint32_t body = write(part, loop, depth);
      (node.lazy ? program_.code_[loop].other : program_.code_[loop].next) = body;
      first = least == 0 ? loop : body;
      if (least > 0) --least;
    } else {
      for (std::uint32_t i = least; i < node.most; ++i) {
        first = split(write(part, first, depth), next, node.lazy, depth);
      }
    }
    for (std::uint32_t i = 0; i < least; ++i) first = write(part, first, depth);
    return first;
  }

  const RegexTree& tree_;
  RegexProgram& program_;
};

std::optional<RegexProgram> RegexProgram::compile(std::string_view regex) {
  const std::optional<RegexTree> tree = parse_regex(regex);
  if (!tree) return std::nullopt;
  RegexProgram program;
  try {
    Writer writer(*tree, program);
    program.start_ = writer.write(tree->root, writer.add({.op = Op::kAccept}), 1);
  } catch (const TooLarge&) {
    return std::nullopt;
  }
  program.may_be_empty_ = tree->nodes[tree->root].may_be_empty;
  if (!program.order_instructions() || program.has_long_folds() ||
      !program.classes_.number(tree->sets)) {
    return std::nullopt;
  }
  return program;
}

// False for a loop that reads nothing.
bool RegexProgram::order_instructions() {
  const auto count = static_cast<std::uint32_t>(code_.size());
  std::vector<std::uint32_t> waits_for(count);
  std::vector<std::vector<std::uint32_t>> asked_by(count);
  std::vector<std::uint32_t> ready;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Instruction& own = code_[i];
    const bool asks = own.op != Op::kRead && own.op != Op::kAccept;
    const bool asks_other = own.op == Op::kSplit || own.op == Op::kLook || own.op == Op::kLookNot;
    if (asks) asked_by[own.next].push_back(i);
    if (asks_other) asked_by[own.other].push_back(i);
    waits_for[i] = static_cast<std::uint32_t>(asks) + static_cast<std::uint32_t>(asks_other);
    if (!asks) ready.push_back(i);
    if (own.op == Op::kRead) {
      readers_.push_back(i);
      code_[i].place = static_cast<std::uint32_t>(readers_.size());
    }
  }
  std::size_t done = 0;
  for (; done < ready.size(); ++done) {
    const std::uint32_t i = ready[done];
    if (code_[i].op != Op::kRead) order_.push_back(i);
    for (const std::uint32_t asker : asked_by[i]) {
      if (--waits_for[asker] == 0) ready.push_back(asker);
    }
  }
  return done == count;
}

// Whether two letters in either case may be read one after the other that together are another
// character in lower case: "ss" matches ß there, "st" ﬆ. The engine has rules of its own for where.
bool RegexProgram::has_long_folds() const {
  constexpr std::string_view kPairs[] = {"ss", "ff", "fi", "fl", "st"};
  for (const std::uint32_t reader : readers_) {
    const char first = code_[reader].folded;
    if (first != 's' && first != 'f') continue;
    std::vector<bool> seen(code_.size());
    std::vector<std::uint32_t> open{code_[reader].next};
    while (!open.empty()) {
      const std::uint32_t i = open.back();
      open.pop_back();
      if (seen[i]) continue;
      seen[i] = true;
      const Instruction& own = code_[i];
      if (own.op == Op::kRead) {
        const char pair[] = {first, own.folded};
        if (std::find(std::begin(kPairs), std::end(kPairs), std::string_view(pair, 2)) !=
            std::end(kPairs)) {
          return true;
        }
        continue;
      }
      if (own.op == Op::kAccept) continue;
      open.push_back(own.next);
      if (own.op == Op::kSplit) open.push_back(own.other);
    }
  }
  return false;
}

RegexProgram::Facts RegexProgram::at_end() const {
  Facts facts(fact_count_ / 64 + 1);
  set_bit(facts, fact_count_);
  return facts;
}

RegexProgram::Facts RegexProgram::complete(const Facts& facts, std::uint8_t before) const {
  Facts all = facts;
  const bool is_end = facts[fact_count_ / 64] >> (fact_count_ % 64) & 1;
  const auto copy = [&](const Instruction& own, std::uint32_t from) {
    for (std::uint32_t level = 0; level < own.depth; ++level) {
      if (fact(all, from, level)) set_bit(all, own.fact + level);
    }
  };
  for (const std::uint32_t i : order_) {
    const Instruction& own = code_[i];
    switch (own.op) {
      case Op::kSplit:
        copy(own, fact(all, own.next) ? own.next : own.other);
        break;
      case Op::kLook:
        if (fact(all, own.other)) copy(own, own.next);
        break;
      case Op::kLookNot:
        if (!fact(all, own.other)) copy(own, own.next);
        break;
      case Op::kBehindOrStart:
        if (before == text_start()) copy(own, own.next);
        [[fallthrough]];
      case Op::kBehind:
        if (classes_.has(own.set, before)) copy(own, own.next);
        break;
      case Op::kTextEnd:
        if (is_end) copy(own, own.next);
        break;
      case Op::kAtomic:  // what is decided in the group stays so: only the levels around it
        for (std::uint32_t level = 0; level < own.depth; ++level) {
          if (fact(all, own.next, level + 1)) set_bit(all, own.fact + level);
        }
        break;
      case Op::kAtomicEnd:
        set_bit(all, own.fact);
        for (std::uint32_t level = 1; level < own.depth; ++level) {
          if (fact(all, own.next, level - 1)) set_bit(all, own.fact + level);
        }
        break;
      case Op::kAccept:
        set_bit(all, own.fact);
        break;
      case Op::kRead:
        break;
    }
  }
  return all;
}

RegexProgram::Facts RegexProgram::one_earlier(const Facts& complete, std::uint8_t read) const {
  Facts earlier(complete.size());
  for (const std::uint32_t i : readers_) {
    const Instruction& own = code_[i];
    if (!classes_.has(own.set, read)) continue;
    for (std::uint32_t level = 0; level < own.depth; ++level) {
      if (fact(complete, own.next, level)) set_bit(earlier, own.fact + level);
    }
  }
  return earlier;
}

std::uint32_t RegexProgram::next_place(const Facts& complete, std::uint32_t place) const {
  std::uint32_t at = place == 0 ? start_ : code_[readers_[place - 1]].next;
  if (!fact(complete, at)) return kNoMatch;
  for (;;) {
    const Instruction& own = code_[at];
    if (own.op == Op::kAccept) return kMatched;
    if (own.op == Op::kRead) return own.place;
    at = own.op == Op::kSplit && !fact(complete, own.next) ? own.other : own.next;
  }
}

}  // namespace vocabshift
