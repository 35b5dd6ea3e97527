#include "fuzz/fuzz.h"

namespace vocabshift::fuzz {

namespace {

// Tables over all of Unicode, made once.
struct Steps {
  SentencePolicy without_period{{U'?', U'!', U'\u0964', U'\u3002'}, false};
  SentencePolicy with_period{{U'?', U'!', U'\u0964', U'\u3002'}, true};
  SyllableRules syllables{
      {"Devanagari", "Tamil", "Khmer"}, {U'\u094D', U'\u0BCD', U'\u17D2'}, {"\u0915\u094D\u0937"}};
  std::vector<CharacterRuns> runs;

  Steps() {
    for (const std::size_t longest : {0u, 1u, 3u}) {
      for (const auto cut :
           {CharacterRuns::Cut::kAround, CharacterRuns::Cut::kAfter, CharacterRuns::Cut::kBefore}) {
        runs.emplace_back(kNumber, Ranges{}, longest, cut);
        runs.emplace_back(kSymbol, Ranges{}, longest, cut);
        runs.emplace_back(0, Ranges{{U' ', U' '}, {U'\u0966', U'\u096F'}}, longest, cut);
      }
    }
  }

 private:
  using Ranges = std::vector<std::pair<char32_t, char32_t>>;
};

}  // namespace

PreTokenizer take_pre_tokenizer(Input& input) {
  static const Steps known;
  std::vector<PreTokenizer::Step> steps;
  for (int left = input.ConsumeIntegralInRange(0, 3); left > 0; --left) {
    switch (input.ConsumeIntegralInRange(0, 4)) {
      case 0:
        steps.emplace_back(take_pattern(input));
        break;
      case 1:
        steps.emplace_back(JoinedWords{take_pattern(input)});
        break;
      case 2:
        steps.emplace_back(input.ConsumeBool() ? known.with_period : known.without_period);
        break;
      case 3:
        steps.emplace_back(known.syllables);
        break;
      default:
        steps.emplace_back(
            known.runs[input.ConsumeIntegralInRange<std::size_t>(0, known.runs.size() - 1)]);
    }
  }
  return PreTokenizer(std::move(steps));
}

EncoderModel take_model(Input& input) {
  EncoderModel model;
  model.tokens = byte_vocabulary();
  for (int left = input.ConsumeIntegralInRange(0, 60); left > 0; --left) {
    const TokenId count = model.tokens.size();
    // The newest tokens and the commonest letters are drawn more often.
    const auto token = [&] {
      const auto drawn = input.ConsumeIntegral<std::uint8_t>();
      if (drawn < 96 || count == 256)
        return model.tokens.find(std::string(1, static_cast<char>(drawn | 0x60)));
      return count - 1 - static_cast<TokenId>(drawn % std::min<TokenId>(count, 32));
    };
    const TokenId a = token(), b = token();
    const std::string product = std::string(model.tokens[a]) + std::string(model.tokens[b]);
    if (product.size() > 256) continue;  // thirty doublings would fill the memory
    TokenId made = model.tokens.find(product);
    if (made == kNoToken) made = model.tokens.add(product);
    model.merges.push_back({a, b, made});
  }
  for (TokenId id = 0; id < model.tokens.size(); ++id) model.ids.push_back(id);
  return model;
}

MergeRule take_rule(Input& input) {
  MergeRule rule;
  rule.max_token_bytes = input.ConsumeIntegralInRange<std::size_t>(0, 12);
  rule.max_words = input.ConsumeIntegralInRange<std::size_t>(0, 3);
  rule.whole_characters = input.ConsumeBool();
  rule.whole_first = input.ConsumeBool();
  if (input.ConsumeBool()) rule.terminals = {U'.', U'\u0964'};
  if (input.ConsumeBool()) rule.conjoiners = {U'\u094D', U'\u0BCD', U'\u17D2'};
  if (input.ConsumeBool()) rule.forbidden = {"the", " a", "<s>"};
  return rule;
}

}  // namespace vocabshift::fuzz
