// A regex is refused, or its automaton splits any text into all of its parts; so does the same
// automaton with the text twice, whose tables are full of what the first one needed.
#include "fuzz/fuzz.h"

using namespace vocabshift;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto behavior = input.PickValueInArray(
      {Automaton::Behavior::kIsolated, Automaton::Behavior::kMergedWithPrevious,
       Automaton::Behavior::kMergedWithNext, Automaton::Behavior::kContiguous});
  const bool is_inverted = input.ConsumeBool();
  const fuzz::Exact regex(fuzz::take_text(input, 200));
  const auto automaton = Automaton::compile(regex, behavior, is_inverted);
  if (!automaton) return 0;
  const fuzz::Exact text(fuzz::rest_as_text(input));
  const std::string_view whole = text;
  if (whole.empty()) return 0;
  std::vector<std::size_t> first, again;
  for (auto* ends : {&first, &again}) {
    std::size_t at = 0;
    automaton->split(whole, [&](std::string_view pre_token) {
      fuzz::require(!pre_token.empty(), "no pre-token is empty");
      fuzz::require(pre_token.data() == whole.data() + at, "pre-tokens follow one another");
      at += pre_token.size();
      ends->push_back(at);
    });
    fuzz::require(at == whole.size(), "pre-tokens are the whole text");
  }
  fuzz::require(first == again, "a text is split alike every time");
  return 0;
}
