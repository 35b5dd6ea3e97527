// Files of counted words: checkpoints of a counter, and the runs that a counter in a memory budget
// writes. Owns the format and the check that a file is whole; knows nothing of what it is for.
//
// A header (version, sizes, checksum), blocks (size, number of records, checksum) of records
// (length u32, group u32, count u64, bytes), then the number of records of each group. Little
// endian. The header is written last, so that what was cut short has none.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace vocabshift {

struct WordRecord {
  std::string_view word;
  std::uint32_t group;
  Count count;
};

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Writes a file; std::system_error where the system refuses (a full disk, say).
class WordFileWriter {
 public:
  WordFileWriter(std::string path, std::size_t groups);

  void add(const WordRecord& record);  // group < groups

  // Nothing may be added afterwards. Without it the file is not valid.
  void finish();

  static constexpr std::size_t kBlockBytes = std::size_t{1}
                                             << 18;  // a longer word has a longer one

 private:
  void write_block();
  void write(const void* data, std::size_t bytes);

  std::string path_;
  std::unique_ptr<std::FILE, FileCloser> file_;
  std::string block_;  // its head first
  std::uint64_t block_records_ = 0;
  std::uint64_t payload_bytes_ = 0;   // of the blocks, their heads included
  std::vector<std::uint64_t> words_;  // by group
};

// Reads a file block by block; std::system_error where the system refuses, std::invalid_argument
// where the file is not one of these, or is not whole. Whatever the bytes are, nothing else
// happens.
class WordFileReader {
 public:
  explicit WordFileReader(std::string path);

  // Number of records of each group, in all no more than the file has room for.
  const std::vector<std::uint64_t>& words() const { return words_; }

  // Goes on to the next block; false at the end of the file. Views into the last one end here.
  bool next_block();

  // The next record of the block, false at its end.
  bool next(WordRecord& record);

 private:
  [[noreturn]] void damaged(const char* what) const;
  void read(void* data, std::size_t bytes);
  void seek(std::uint64_t offset);
  std::uint64_t file_size();

  std::string path_;
  std::unique_ptr<std::FILE, FileCloser> file_;
  std::vector<std::uint64_t> words_, left_;  // by group; left_: not read yet
  std::uint64_t payload_left_ = 0;
  std::string block_;
  std::size_t at_ = 0;  // in block_
  std::uint64_t records_left_ = 0;
};

}  // namespace vocabshift
