// Levenshtein's distance of sequences of symbols, such as ids.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vocabshift {

// Bits instead of cells of the table, 64 at a time: Hyyrö, "A bit-vector algorithm for computing
// Levenshtein and Damerau edit distances" (2003), figure 5, and its section on longer patterns.
class EditDistance {
 public:
  using Symbols = std::span<const std::int64_t>;

  std::int64_t operator()(Symbols one, Symbols other);

 private:
  // Where each symbol stands in 64 symbols of a pattern.
  class Places {
   public:
    explicit Places(Symbols pattern);
    std::uint64_t of(std::int64_t symbol) const { return slots_[slot_of(symbol)].places; }

   private:
    struct Slot {
      std::int64_t symbol = 0;
      std::uint64_t places = 0;  // none: the slot is free
    };
    std::size_t slot_of(std::int64_t symbol) const;

    static constexpr std::size_t kSlots = 128;  // always half free
    Slot slots_[kSlots];
  };

  std::vector<std::int8_t> deltas_;  // of each symbol of the text: from its cell to the next one
};

}  // namespace vocabshift
