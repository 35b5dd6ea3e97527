#include "core/script_words.h"

#include <algorithm>

#include "core/stop.h"
#include "core/unicode.h"
#include "core/utf8.h"

namespace vocabshift {

namespace {

// By script number: whether the script is one that a language is written in.
std::vector<bool> find_proper_scripts() {
  std::vector<bool> is_proper(tables::kScriptCount);
  for (std::size_t i = 0; i < is_proper.size(); ++i) {
    const std::string_view name = tables::kScriptNames[i];
    is_proper[i] = name != "Unknown" && name != "Common" && name != "Inherited";
  }
  return is_proper;
}

}  // namespace

std::uint8_t script_of_word(std::string_view word) {
  static const std::vector<bool> is_proper = find_proper_scripts();
  for (std::size_t at = 0; at < word.size();) {
    const Decoded next = decode_utf8(word.data() + at);
    at += next.length;
    if (!(char_class(next.code_point) & kLetter)) continue;
    const std::uint8_t script = script_of(next.code_point);
    if (is_proper[script]) return script;
  }
  return 0;
}

ScriptWords words_by_script(const PreTokenizer& pre_tokenizer, const Documents& documents,
                            std::size_t threads) {
  const std::size_t shards = std::max<std::size_t>(threads, 1);
  const std::vector<std::size_t> borders = balanced_shards(documents, shards);
  std::vector<ScriptWords> parts(shards);
  parallel_for(shards, [&](std::size_t shard) {
    ScriptWords& part = parts[shard];
    for (std::size_t i = borders[shard]; i < borders[shard + 1]; ++i) {
      pre_tokenizer.split(documents[i], [&](std::string_view word) {
        may_stop(word.size() + 16);
        const std::int64_t start = word.data() - documents.text.data();
        part.starts.push_back(start);
        part.ends.push_back(start + static_cast<std::int64_t>(word.size()));
        part.scripts.push_back(script_of_word(word));
      });
    }
  });
  ScriptWords all = std::move(parts[0]);
  for (std::size_t shard = 1; shard < shards; ++shard) {
    const ScriptWords& part = parts[shard];
    all.starts.insert(all.starts.end(), part.starts.begin(), part.starts.end());
    all.ends.insert(all.ends.end(), part.ends.begin(), part.ends.end());
    all.scripts.insert(all.scripts.end(), part.scripts.begin(), part.scripts.end());
  }
  return all;
}

}  // namespace vocabshift
