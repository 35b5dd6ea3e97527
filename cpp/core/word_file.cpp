#include "core/word_file.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "core/hash.h"

namespace vocabshift {

namespace {

static_assert(std::endian::native == std::endian::little, "files are written as memory has them");

constexpr std::uint64_t kMagic = 0x3173'6472'6f77'7376;  // "vswords1": the digit is the version
constexpr std::size_t kRecordHead = 16;

struct FileHead {
  std::uint64_t magic;
  std::uint64_t groups;
  std::uint64_t payload_bytes;
  std::uint64_t checksum;  // of the three above and the groups' numbers of words
};

struct BlockHead {
  std::uint64_t bytes;
  std::uint64_t records;
  std::uint64_t checksum;  // of the two above and the bytes
};

std::uint64_t checksum_of(const FileHead& head, const std::vector<std::uint64_t>& words) {
  const std::string_view bytes(reinterpret_cast<const char*>(words.data()), words.size() * 8);
  return mix(hash_bytes(bytes) ^ head.magic,
             hash_bytes({reinterpret_cast<const char*>(&head), 24}) ^ kSeed1);
}

std::uint64_t checksum_of(const BlockHead& head, std::string_view bytes) {
  return mix(hash_bytes(bytes) ^ head.bytes, head.records ^ kSeed1);
}

[[noreturn]] void refuse(const char* what, const std::string& path) {
  const int code = errno ? errno : EIO;
  throw std::system_error(code, std::generic_category(), std::string(what) + path);
}

std::unique_ptr<std::FILE, FileCloser> open(const std::string& path, const char* mode) {
  errno = 0;
  std::unique_ptr<std::FILE, FileCloser> file(std::fopen(path.c_str(), mode));
  if (!file) refuse("cannot open ", path);
  std::setvbuf(file.get(), nullptr, _IONBF, 0);  // blocks are our own
  return file;
}

}  // namespace

WordFileWriter::WordFileWriter(std::string path, std::size_t groups)
    : path_(std::move(path)),
      file_(open(path_, "wb")),
      block_(sizeof(BlockHead), '\0'),
      words_(groups, 0) {
  const FileHead none{};
  write(&none, sizeof(none));
}

void WordFileWriter::write(const void* data, std::size_t bytes) {
  errno = 0;
  if (std::fwrite(data, 1, bytes, file_.get()) != bytes) refuse("cannot write ", path_);
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
  write(block_.data(), block_.size());
  payload_bytes_ += block_.size();
  block_.resize(sizeof(BlockHead));
  block_records_ = 0;
}

void WordFileWriter::finish() {
  write_block();
  write(words_.data(), words_.size() * 8);
  FileHead head{kMagic, words_.size(), payload_bytes_, 0};
  head.checksum = checksum_of(head, words_);
  errno = 0;
  if (std::fseek(file_.get(), 0, SEEK_SET) != 0) refuse("cannot write ", path_);
  write(&head, sizeof(head));
  if (std::fclose(file_.release()) != 0) refuse("cannot write ", path_);
}

WordFileReader::WordFileReader(std::string path)
    : path_(std::move(path)), file_(open(path_, "rb")) {
  const std::uint64_t size = file_size();
  if (size < sizeof(FileHead)) damaged("it is too short");
  FileHead head;
  read(&head, sizeof(head));
  if (head.magic != kMagic) damaged("it was never finished, or another version wrote it");
  if (head.groups > size / 8 || head.payload_bytes > size ||
      sizeof(head) + head.payload_bytes + head.groups * 8 != size) {
    damaged("its size is not what it was");
  }
  words_.resize(head.groups);
  seek(sizeof(head) + head.payload_bytes);
  read(words_.data(), words_.size() * 8);
  if (checksum_of(head, words_) != head.checksum) damaged("its header does not add up");
  std::uint64_t room = head.payload_bytes / kRecordHead;
  for (const std::uint64_t words : words_) {
    if (words > room) damaged("it claims more words than it holds");
    room -= words;
  }
  seek(sizeof(head));
  payload_left_ = head.payload_bytes;
  left_ = words_;
}

bool WordFileReader::next_block() {
  if (payload_left_ == 0) {
    for (const std::uint64_t left : left_) {
      if (left != 0) damaged("words are missing");
    }
    return false;
  }
  BlockHead head;
  if (payload_left_ < sizeof(head)) damaged("a block is cut short");
  read(&head, sizeof(head));
  payload_left_ -= sizeof(head);
  if (head.bytes > payload_left_) damaged("a block is cut short");
  block_.resize(head.bytes);
  read(block_.data(), block_.size());
  payload_left_ -= head.bytes;
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
  if (record.group >= left_.size() || left_[record.group]-- == 0) {
    damaged("it holds other words than it claims");
  }
  record.word = std::string_view(block_).substr(at_, length);
  at_ += length;
  return true;
}

void WordFileReader::damaged(const char* what) const {
  throw std::invalid_argument(path_ + " is no whole file of counted words: " + what +
                              "; remove it and count again");
}

void WordFileReader::read(void* data, std::size_t bytes) {
  errno = 0;
  if (std::fread(data, 1, bytes, file_.get()) == bytes) return;
  if (std::feof(file_.get())) damaged("it ends too early");
  refuse("cannot read ", path_);
}

void WordFileReader::seek(std::uint64_t offset) {
  errno = 0;
  if (fseeko(file_.get(), static_cast<off_t>(offset), SEEK_SET) != 0) refuse("cannot read ", path_);
}

std::uint64_t WordFileReader::file_size() {
  errno = 0;
  if (fseeko(file_.get(), 0, SEEK_END) != 0) refuse("cannot read ", path_);
  const off_t size = ftello(file_.get());
  if (size < 0) refuse("cannot read ", path_);
  seek(0);
  return static_cast<std::uint64_t>(size);
}

}  // namespace vocabshift
