// Any file is read as counted words or refused as damaged; words that are counted, saved and loaded
// are the same.
#include "core/word_file.h"

#include "core/open_file.h"
#include "core/word_counts.h"
#include "fuzz/fuzz.h"

using namespace vocabshift;

namespace {

std::uint64_t read_all(WordFileReader& reader) {
  std::uint64_t records = 0;
  WordRecord record;
  while (reader.next_block()) {
    while (reader.next(record)) {
      const fuzz::Exact read(record.word);  // all bytes of the word are there
      ++records;
    }
  }
  return records;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const char* const folder = "/dev/shm";
  fuzz::Input input(data, size);
  if (input.ConsumeBool()) {
    const std::string bytes = input.ConsumeRemainingBytesAsString();
    const auto file = OpenFile::temporary(folder);
    file->write(bytes.data(), bytes.size());
    try {
      WordFileReader reader(file);
      read_all(reader);
    } catch (const std::invalid_argument&) {
    }
    return 0;
  }
  // A good file with one byte changed: deeper than a file drawn byte by byte gets.
  const std::size_t at = input.ConsumeIntegral<std::uint16_t>();
  const char flip = input.ConsumeIntegral<char>();
  const auto file = OpenFile::temporary(folder);
  std::uint64_t written = 0;
  {
    const bool is_sorted = input.ConsumeBool();
    WordFileWriter writer(file, 3, is_sorted ? Sorted::kYes : Sorted::kNo);
    std::vector<std::pair<std::string, std::uint32_t>> words;
    while (input.remaining_bytes() > 0 && words.size() < 64) {
      words.emplace_back("w" + input.ConsumeRandomLengthString(20),
                         input.ConsumeIntegralInRange<std::uint32_t>(0, 2));
    }
    if (is_sorted) std::sort(words.begin(), words.end());
    for (const auto& [word, group] : words) writer.add({word, group, word.size()});
    written = words.size();
    writer.finish();
  }
  const std::uint64_t total = file->size();
  if (flip != 0) {
    char byte;
    const std::uint64_t place = at % total;
    file->read_at(place, &byte, 1);
    byte = static_cast<char>(byte ^ flip);
    file->write_at(place, &byte, 1);
  }
  try {
    WordFileReader reader(file);
    const std::uint64_t records = read_all(reader);
    fuzz::require(flip != 0 || records == written, "what was written is read");
  } catch (const std::invalid_argument&) {
    fuzz::require(flip != 0, "a file that is whole is read");
  }
  return 0;
}
