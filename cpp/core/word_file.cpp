#include "core/word_file.h"

#include <bit>
#include <cstring>
#include <stdexcept>

#include "core/hash.h"

namespace vocabshift {

namespace {

static_assert(std::endian::native == std::endian::little, "files are written as memory has them");

constexpr std::uint64_t kMagic = 0x3173'6472'6f77'7376;    // "vswords1": the digit is the version
constexpr std::size_t kBlockBytes = std::size_t{1} << 16;  // a longer word has a longer block
constexpr std::size_t kRecordHead = 16;

struct FileHead {
  std::uint64_t magic;
  std::uint32_t groups;
  Sorted sorted;
  std::uint64_t payload_bytes;
  std::uint64_t checksum;  // of the four above and the groups' numbers of words
};

struct BlockHead {
  std::uint64_t bytes;
  std::uint64_t records;
  std::uint64_t checksum;  // of the two above and the bytes
};

std::uint64_t checksum_of(const FileHead& head, const std::vector<std::uint64_t>& words) {
  const std::string_view numbers(reinterpret_cast<const char*>(words.data()), words.size() * 8);
  const std::string_view fields(reinterpret_cast<const char*>(&head), sizeof(head) - 8);
  return mix(hash_bytes(numbers) ^ kSeed0, hash_bytes(fields) ^ kSeed1);
}

std::uint64_t checksum_of(const BlockHead& head, std::string_view bytes) {
  return mix(hash_bytes(bytes) ^ head.bytes, head.records ^ kSeed1);
}

}  // namespace

WordFileWriter::WordFileWriter(std::shared_ptr<OpenFile> file, std::size_t groups, Sorted sorted)
    : file_(std::move(file)), sorted_(sorted), block_(sizeof(BlockHead), '\0'), words_(groups, 0) {
  const FileHead none{};
  file_->write(&none, sizeof(none));
}

void WordFileWriter::add(const WordRecord& record) {
  if (block_.size() + kRecordHead + record.word.size() > kBlockBytes) write_block();
  ++words_.at(record.group);
  ++block_records_;
  const auto length = static_cast<std::uint32_t>(record.word.size());
  char head[kRecordHead];
  std::memcpy(head, &length, 4);
  std::memcpy(head + 4, &record.group, 4);
  std::memcpy(head + 8, &record.count, 8);
  block_.append(head, kRecordHead).append(record.word);
}

void WordFileWriter::write_block() {
  if (block_records_ == 0) return;
  BlockHead head{block_.size() - sizeof(BlockHead), block_records_, 0};
  head.checksum = checksum_of(head, std::string_view(block_).substr(sizeof(BlockHead)));
  std::memcpy(block_.data(), &head, sizeof(head));
  file_->write(block_.data(), block_.size());
  payload_bytes_ += block_.size();
  block_.resize(sizeof(BlockHead));
  block_records_ = 0;
}

void WordFileWriter::finish() {
  write_block();
  file_->write(words_.data(), words_.size() * 8);
  FileHead head{kMagic, static_cast<std::uint32_t>(words_.size()), sorted_, payload_bytes_, 0};
  head.checksum = checksum_of(head, words_);
  file_->write_at(0, &head, sizeof(head));
}

WordFileReader::WordFileReader(std::shared_ptr<OpenFile> file) : file_(std::move(file)) {
  static_assert(sizeof(FileHead) == kHeadBytes);
  const std::uint64_t size = file_->size();
  if (size < sizeof(FileHead)) damaged("it is too short");
  FileHead head;
  read_at(0, &head, sizeof(head));
  if (head.magic != kMagic) damaged("it was never finished, or another version wrote it");
  if (head.payload_bytes > size ||
      sizeof(head) + head.payload_bytes + std::uint64_t{head.groups} * 8 != size) {
    damaged("its size is not what it was");
  }
  words_.resize(head.groups);
  read_at(sizeof(head) + head.payload_bytes, words_.data(), words_.size() * 8);
  if (checksum_of(head, words_) != head.checksum) damaged("its header does not add up");
  std::uint64_t room = head.payload_bytes / kRecordHead;
  for (const std::uint64_t words : words_) {
    if (words > room) damaged("it claims more words than it holds");
    room -= words;
  }
  sorted_ = head.sorted;
  end_ = sizeof(head) + head.payload_bytes;
  left_ = words_;
}

bool WordFileReader::next_block() {
  if (offset_ == end_) {
    for (const std::uint64_t left : left_) {
      if (left != 0) damaged("words are missing");
    }
    return false;
  }
  BlockHead head;
  if (end_ - offset_ < sizeof(head)) damaged("a block is cut short");
  read_at(offset_, &head, sizeof(head));
  offset_ += sizeof(head);
  if (head.bytes > end_ - offset_) damaged("a block is cut short");
  block_.resize(head.bytes);
  read_at(offset_, block_.data(), block_.size());
  offset_ += head.bytes;
  if (checksum_of(head, block_) != head.checksum) damaged("a block does not add up");
  at_ = 0;
  records_left_ = head.records;
  return true;
}

bool WordFileReader::next(WordRecord& record) {
  if (records_left_ == 0) {
    if (at_ != block_.size()) damaged("a block holds more than its words");
    return false;
  }
  --records_left_;
  std::uint32_t length;
  if (block_.size() - at_ < kRecordHead) damaged("a word is cut short");
  const char* head = block_.data() + at_;
  std::memcpy(&length, head, 4);
  std::memcpy(&record.group, head + 4, 4);
  std::memcpy(&record.count, head + 8, 8);
  at_ += kRecordHead;
  if (length == 0 || length > block_.size() - at_) damaged("a word is cut short");
  if (record.group >= left_.size() || left_[record.group] == 0) {
    damaged("it holds other words than it claims");
  }
  --left_[record.group];
  record.word = std::string_view(block_).substr(at_, length);
  at_ += length;
  return true;
}

void WordFileReader::damaged(const char* what) const {
  throw std::invalid_argument(file_->name() + " is no whole file of counted words: " + what +
                              "; remove it and count again");
}

void WordFileReader::read_at(std::uint64_t offset, void* data, std::size_t bytes) {
  if (!file_->read_at(offset, data, bytes)) damaged("it ends too early");
}

}  // namespace vocabshift
