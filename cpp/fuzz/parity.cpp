// Parity-aware BPE on drawn text of several languages: the merges, and whom each serves, are those
// of a slow reading, on one thread and two.
#include <deque>
#include <map>

#include "core/train.h"
#include "core/word_layout.h"
#include "fuzz/fuzz.h"
#include "fuzz/slow.h"

using namespace vocabshift;

namespace {

struct Language {
  std::map<std::string, Count> counts;
  std::vector<fuzz::SlowWord> words;

  Count tokens() const {
    Count sum = 0;
    for (const fuzz::SlowWord& word : words) sum += word.ids.size() * word.count;
    return sum;
  }
  Count characters() const {
    Count sum = 0;
    for (const auto& [word, count] : counts) {
      for (const char byte : word) sum += count * ((byte & 0xC0) != 0x80);
    }
    return sum;
  }
};

struct Slow {
  Vocabulary tokens = byte_vocabulary();
  std::vector<Language> trained = {}, parallel = {};
  std::vector<Merge> merges = {};
  std::vector<std::uint32_t> served = {};

  void segment() {
    for (auto* languages : {&trained, &parallel}) {
      for (Language& language : *languages) {
        for (const auto& [word, count] : language.counts) {
          language.words.push_back({fuzz::ids_of_bytes(tokens, word), count});
        }
      }
    }
  }

  // A token's place in the order of byte-level images.
  std::string image(TokenId token) const {
    static const Vocabulary bytes = byte_vocabulary();
    std::string places;
    for (const char& byte : tokens[token]) {
      places.push_back(static_cast<char>(bytes.find(std::string_view(&byte, 1))));
    }
    return places;
  }

  void train(const Limits& limits, const MergeRule& rule, const ParityWindow& window) {
    const std::size_t n = trained.size();
    std::vector<Count> lengths;
    for (const Language& language : trained) {
      lengths.push_back(parallel.empty() ? language.characters() : 1);
    }
    std::vector<bool> exhausted(n);
    std::deque<std::size_t> last;
    while (tokens.size() < limits.vocab_size) {
      std::vector<Count> needed;
      for (const Language& each : parallel.empty() ? trained : parallel) {
        needed.push_back(each.tokens());
      }
      std::size_t worst = n, worst_free = n;
      for (std::size_t i = 0; i < n; ++i) {
        if (exhausted[i]) continue;
        const auto is_worse = [&](std::size_t than) {
          return than == n || needed[i] * lengths[than] > needed[than] * lengths[i];
        };
        if (is_worse(worst)) worst = i;
        const auto recent = static_cast<double>(std::count(last.begin(), last.end(), i));
        if (window.size > 0 &&
            recent / static_cast<double>(window.size) > window.alpha / static_cast<double>(n)) {
          continue;
        }
        if (is_worse(worst_free)) worst_free = i;
      }
      const std::size_t language = worst_free == n ? worst : worst_free;
      if (language == n) return;
      last.push_back(language);
      if (last.size() > window.size) last.pop_front();
      Merge best{kNoToken, kNoToken, kNoToken, 0};
      std::pair<std::string, std::string> best_images;
      for (const auto& [key, count] : fuzz::count_pairs(trained[language].words)) {
        const TokenId left = static_cast<TokenId>(key >> 32), right = static_cast<TokenId>(key);
        if (count < limits.min_frequency || count < best.count) continue;
        if (!rule.allows(std::string(tokens[left]) + std::string(tokens[right]))) continue;
        const std::pair<std::string, std::string> images(image(left), image(right));
        const bool is_last = limits.tie_break == TieBreak::kLastByteImages && images > best_images;
        if (count == best.count && !is_last) continue;
        best = {left, right, kNoToken, count};
        best_images = images;
      }
      if (best.count == 0) {
        exhausted[language] = true;
        continue;
      }
      const std::string product = std::string(tokens[best.left]) + std::string(tokens[best.right]);
      best.product = tokens.find(product);
      if (best.product == kNoToken) best.product = tokens.add(product);
      merges.push_back(best);
      served.push_back(static_cast<std::uint32_t>(language));
      for (auto* languages : {&trained, &parallel}) {
        for (Language& each : *languages) {
          for (fuzz::SlowWord& word : each.words) {
            fuzz::replace_pair(word.ids, {best.left, best.right}, best.product);
          }
        }
      }
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const PreTokenizer pre_tokenizer = fuzz::take_pre_tokenizer(input);
  const MergeRule rule = fuzz::take_rule(input);
  Limits limits{.vocab_size = 256 + input.ConsumeIntegralInRange<std::size_t>(0, 80),
                .min_frequency = input.ConsumeIntegralInRange<Count>(1, 3)};
  limits.tie_break = input.ConsumeBool() ? TieBreak::kIds : TieBreak::kLastByteImages;
  limits.chunks_per_thread = 1;  // so that short texts are shared too
  const std::size_t languages = input.ConsumeIntegralInRange<std::size_t>(1, 4);
  const ParityWindow window{input.ConsumeIntegralInRange<std::size_t>(0, 12),
                            input.ConsumeIntegralInRange(0, 12) / 4.0};
  // Every second group of lines is parallel text, if there is any.
  const bool has_parallel = input.ConsumeBool();
  const auto runs = fuzz::take_threads(input);
  const fuzz::Lines lines(fuzz::rest_as_text(input));

  Slow slow;
  slow.trained.resize(languages);
  if (has_parallel) slow.parallel.resize(languages);
  const auto is_parallel = [&](std::size_t line) { return has_parallel && line / languages % 2; };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    auto& into = is_parallel(i) ? slow.parallel : slow.trained;
    pre_tokenizer.split(lines.documents()[i], [&](std::string_view word) {
      ++into[i % languages].counts[std::string(word)];
    });
  }
  slow.segment();
  std::vector<std::uint32_t> of_group;
  for (std::uint32_t i = 0; i < languages; ++i) of_group.push_back(i);
  bool has_text = true;
  for (const Language& language : slow.trained) {
    has_text &= has_parallel || language.characters() > 0;
  }
  if (has_text) slow.train(limits, rule, window);
  for (const std::size_t threads : runs) {
    WordCounter counter(pre_tokenizer, threads), parallel(pre_tokenizer, threads);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      (is_parallel(i) ? parallel : counter).add(lines.document(i), i % languages);
    }
    Parity parity{languages, of_group, has_parallel ? &parallel : nullptr, of_group, window};
    limits.threads = threads;
    Trained trained;
    try {
      trained = train_bpe(counter, {.of_group = std::vector<Count>(languages, 1)}, limits, rule,
                          std::nullopt, 0, {}, false, &parity);
    } catch (const std::invalid_argument&) {
      fuzz::require(!has_text, "only a language without text is refused");
      return 0;
    }
    fuzz::require(has_text, "a language without text is refused");
    fuzz::require(fuzz::are_equal(trained.merges, slow.merges), "the merges of a slow reading");
    fuzz::require(trained.served == slow.served, "each for the same language");
    Count tokens = 0;
    for (std::size_t i = 0; i < languages; ++i) {
      fuzz::require(trained.language_tokens[i] == slow.trained[i].tokens(),
                    "as many tokens are left in each");
      const Language& measured = has_parallel ? slow.parallel[i] : slow.trained[i];
      fuzz::require(trained.measured_tokens[i] == measured.tokens(), "and in what is measured");
      tokens += slow.trained[i].tokens();
    }
    fuzz::require(trained.tokens == tokens, "and in all");
  }
  return 0;
}
