// Normal form C is UTF-8, is its own normal form, and a line's is that of the line by itself.
#include "core/nfc.h"

#include "fuzz/fuzz.h"

using namespace vocabshift;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const fuzz::Exact text(fuzz::rest_as_text(input));
  std::string room, again, longer;
  const auto normal = to_nfc(text, room);
  if (!normal) return 0;
  const fuzz::Exact once(*normal);
  fuzz::require(first_invalid_utf8(once) == kAllValid, "the normal form is UTF-8");
  const auto twice = to_nfc(once, again);
  fuzz::require(twice && *twice == std::string_view(once), "a normal form is its own");
  const std::string more =
      std::string(std::string_view(text)) + "\n" + std::string(std::string_view(text));
  const auto both = to_nfc(more, longer);
  const std::string expected =
      std::string(std::string_view(once)) + "\n" + std::string(std::string_view(once));
  fuzz::require(both && *both == expected, "lines are normalized by themselves");
  return 0;
}
