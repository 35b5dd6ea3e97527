// What the core makes of a text, as checksums: `core_check TEXT FOLDER`. They must be equal on all
// systems, and between the ways of core/platform.h, which it compares itself. For machines without
// Python, such as an emulated one. In FOLDER it makes files that do not stay.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/encode.h"
#include "core/hash.h"
#include "core/nfc.h"
#include "core/open_file.h"
#include "core/platform.h"
#include "core/superwords.h"
#include "core/threads.h"
#include "core/train.h"
#include "core/utf8.h"
#include "core/word_counts.h"

namespace {

using namespace vocabshift;

constexpr std::size_t kThreads = 2;
constexpr TokenId kWords = 1500, kWithSuperwords = 2000;

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("not so: ") + what);
}

class Sum {
 public:
  void add(std::string_view bytes) { state_ = mix(state_ ^ kSeed0, hash_bytes(bytes) ^ kSeed1); }
  void add(std::uint64_t value) { state_ = mix(state_ ^ kSeed0, value ^ kSeed1); }
  void print(const std::string& of) const {
    std::printf("%-24s %016llx\n", of.c_str(), static_cast<unsigned long long>(state_));
  }

 private:
  std::uint64_t state_ = 0;
};

void check_arithmetic() {
  const std::uint64_t most = ~std::uint64_t{0};
  std::vector<std::uint64_t> numbers{0, 1, 2, 0xFFFFFFFFu, 0x100000000u, most - 1, most};
  for (std::uint64_t i = 1; i <= 200; ++i) numbers.push_back(hash_pair(i) >> i % 64);
  Sum sum;
  for (const std::uint64_t a : numbers) {
    for (const std::uint64_t b : numbers) {
      require(multiply(a, b) == multiply_portably(a, b), "products of 128 bits");
      std::uint64_t product, total;
      require(multiply_overflows(a, b, &product) == (a != 0 && b > most / a), "a * b overflows");
      require(add_overflows(a, b, &total) == (b > most - a), "a + b overflows");
      require(product == a * b && total == a + b, "sums and products modulo 2^64");
      sum.add(multiply(a, b).high);
      sum.add(product);
    }
    const std::uint64_t swapped = swap_bytes(a);
    for (int i = 0; i < 8; ++i) {
      require((swapped >> 8 * i & 255) == (a >> (56 - 8 * i) & 255), "bytes swap");
    }
  }
  sum.print("arithmetic");
}

void check_files(const std::string& folder) {
  const std::string name = folder + "/vocabshift-\u0928\u093e\u092e";
  std::string block(100'000, 'x');
  {
    const auto file = OpenFile::to_write(name);
    for (int i = 0; i < 10; ++i) file->write(block.data(), block.size());
    file->write_at(0, "head", 4);
    file->close();
  }
  const auto read = OpenFile::to_read(name);
  require(read->size() == 10 * block.size(), "a file is as long as what was written");
  parallel_for(4, [&](std::size_t shard) {
    std::string got(5, ' ');
    for (int i = 0; i < 100; ++i) {
      require(read->read_at(0, got.data(), 5) && got == "headx", "threads read at a place");
      require(read->read_at(shard * 1000 + 7, got.data(), 5) && got == "xxxxx", "and elsewhere");
    }
  });
  require(!read->read_at(10 * block.size() - 1, block.data(), 2), "a file ends");
  for (int i = 0; i < 3; ++i) {
    const auto own = OpenFile::temporary(folder);
    own->write("own", 3);
    require(own->size() == 3, "a temporary file is its own");
  }
  try {
    OpenFile::to_read(folder + "/there is none");
    require(false, "a missing file is refused");
  } catch (const std::system_error& error) {
    require(error.code() == std::errc::no_such_file_or_directory, "the system says why");
  }
  std::puts("files                    as they should be");
}

struct Lines {
  explicit Lines(const std::string& text) : text_(text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      starts_.push_back(static_cast<std::int64_t>(at));
      ends_.push_back(static_cast<std::int64_t>(end));
      at = end + 1;
    }
  }
  Documents documents() const { return {text_, starts_.data(), ends_.data(), starts_.size()}; }

 private:
  const std::string& text_;
  std::vector<std::int64_t> starts_, ends_;
};

void check_pre_tokens(const std::string& text) {
  for (int i = 0; i <= static_cast<int>(Pattern::kHan); ++i) {
    Sum sum;
    PreTokenizer({static_cast<Pattern>(i)}).split(text, [&](std::string_view piece) {
      sum.add(piece);
    });
    sum.print("pattern " + std::to_string(i));
  }
  const auto regex = Automaton::compile(R"(\p{L}[\p{L}\p{M}]*|\s+(?!\S)|\s+|[^\s\p{L}]+)",
                                        Automaton::Behavior::kIsolated, false);
  require(regex.has_value(), "the automaton takes a regex");
  Sum sum;
  PreTokenizer({*regex}).split(text, [&](std::string_view piece) { sum.add(piece); });
  sum.print("automaton");
}

Encoder encoder_of(const Vocabulary& tokens, const std::vector<Merge>& merges) {
  EncoderModel model;
  model.tokens = tokens;
  for (TokenId id = 0; id < tokens.size(); ++id) model.ids.push_back(id);
  for (const Merge& merge : merges) {
    model.merges.push_back({merge.left, merge.right, merge.product});
  }
  return Encoder(std::move(model));
}

void print_merges(const std::string& name, const Trained& trained) {
  Sum sum;
  for (const Merge& merge : trained.merges) {
    for (const std::uint64_t value : {std::uint64_t{merge.left}, std::uint64_t{merge.right},
                                      std::uint64_t{merge.product}, merge.count}) {
      sum.add(value);
    }
  }
  sum.print(name + " " + std::to_string(trained.merges.size()));
}

void print_ids(const std::string& name, const Encoder& encoder, const PreTokenizer& pre_tokenizer,
               const std::string& text) {
  Encoder::Scratch scratch(encoder);
  std::vector<TokenId> ids;
  pre_tokenizer.split(text,
                      [&](std::string_view piece) { encoder.encode_piece(piece, scratch, ids); });
  encoder.flush(scratch, ids);
  Sum sum;
  for (const TokenId id : ids) sum.add(id);
  sum.print(name + " " + std::to_string(ids.size()));
}

void check_training(const std::string& text, const std::string& folder) {
  const Lines lines(text);
  const PreTokenizer words({Pattern::kIndic});
  const PreTokenizer sentences({Pattern::kIndicBoundaries, SentencePolicy({U'\u0964'}, true)});
  Trained trained;
  for (const std::size_t budget : {std::size_t{0}, std::size_t{300'000}}) {
    WordCounter counter(words, kThreads, {budget, folder});
    counter.add(lines.documents(), 0);
    trained = train_bpe(counter, {.of_group = {1}}, {.vocab_size = kWords, .threads = kThreads}, {},
                        {}, 0, {});
    print_merges(budget ? "merges, from disk" : "merges", trained);
  }
  const Encoder encoder = encoder_of(trained.vocabulary, trained.merges);
  print_ids("ids", encoder, words, text);

  const std::string file = folder + "/vocabshift-ids";
  const auto encoded = [&] {
    return SuperwordText(encoder, trained.vocabulary, sentences, {.threads = kThreads});
  };
  SuperwordStage stage(encoded(), TokenStore(file));
  stage.add(lines.documents(), nullptr, 0);
  stage.finish();
  SuperwordStage resumed(encoded(), TokenStore::open(file));
  const Trained second =
      resumed.train({1}, {.vocab_size = kWithSuperwords}, {.max_words = 4}, 0, {});
  print_merges("superwords", second);
  std::vector<Merge> all = trained.merges;
  all.insert(all.end(), second.merges.begin(), second.merges.end());
  print_ids("ids with superwords", encoder_of(second.vocabulary, all), sentences, text);
}

void check_normal_form(const std::string& text) {
  std::string room;
  const auto normal = to_nfc(text, room);
  require(normal.has_value(), "the text's characters are known");
  Sum sum;
  sum.add(*normal);
  sum.print("normal form C");
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 3) throw std::invalid_argument("core_check TEXT FOLDER");
    std::ifstream file(arguments[1], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.empty()) throw std::invalid_argument("no text");
    check_arithmetic();
    check_files(arguments[2]);
    check_pre_tokens(text);
    check_normal_form(text);
    check_training(text, arguments[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
