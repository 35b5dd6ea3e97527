// Files of counted words: checkpoints of a counter, and the runs that a counter in a memory budget
// writes. Owns the format and the check that a file is whole; knows nothing of what it is for.
//
// A header (version, sizes, checksum), blocks (size, number of records, checksum) of records
// (length u32, group u32, count u64, bytes), then the number of records of each group. Little
// endian. The header is written last, so that what was cut short has none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/open_file.h"
#include "core/types.h"

namespace vocabshift {

struct WordRecord {
  std::string_view word;
  std::uint32_t group;
  Count count;
};

// Whether records are in the order of their words' bytes, then groups.
enum class Sorted : std::uint32_t { kNo, kYes };

class WordFileWriter {
 public:
  WordFileWriter(std::shared_ptr<OpenFile> file, std::size_t groups, Sorted sorted);

  void add(const WordRecord& record);  // group < groups

  // Nothing may be added afterwards. Without it the file is not valid.
  void finish();

 private:
  void write_block();

  std::shared_ptr<OpenFile> file_;
  Sorted sorted_;
  std::string block_;  // its head first
  std::uint64_t block_records_ = 0;
  std::uint64_t payload_bytes_ = 0;   // of the blocks, their heads included
  std::vector<std::uint64_t> words_;  // by group
};

// Reads a file block by block. std::invalid_argument where it is not one of these, or not whole:
// whatever the bytes are, nothing worse happens.
class WordFileReader {
 public:
  explicit WordFileReader(std::shared_ptr<OpenFile> file);

  bool is_sorted() const { return sorted_ == Sorted::kYes; }

  // Number of records of each group, in all no more than the file has room for.
  const std::vector<std::uint64_t>& words() const { return words_; }

  // Bytes of the file's records: at least as many as their words have.
  std::uint64_t payload_bytes() const { return end_ - kHeadBytes; }

  // Goes on to the next block; false at the end of the file. Views into the last one end here.
  bool next_block();

  // The next record of the block, false at its end.
  bool next(WordRecord& record);

  [[noreturn]] void damaged(const char* what) const;

 private:
  static constexpr std::uint64_t kHeadBytes = 32;

  void read_at(std::uint64_t offset, void* data, std::size_t bytes);

  std::shared_ptr<OpenFile> file_;
  Sorted sorted_ = Sorted::kNo;
  std::vector<std::uint64_t> words_, left_;  // by group; left_: not read yet
  std::uint64_t offset_ = kHeadBytes;        // of the next block
  std::uint64_t end_ = kHeadBytes;           // of the last one
  std::string block_;
  std::size_t at_ = 0;  // in block_
  std::uint64_t records_left_ = 0;
};

}  // namespace vocabshift
