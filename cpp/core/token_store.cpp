#include "core/token_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "core/filled.h"
#include "core/hash.h"

namespace vocabshift {

namespace {

constexpr char kMagic[] = "vocabshift ids 2";  // 16 bytes, the terminating 0 not written
constexpr std::size_t kMagicBytes = 16;
constexpr std::uint32_t kLastBlock = 0xFFFFFFFFu;

[[noreturn]] void fail(const std::string& path) {
  throw std::system_error(errno, std::generic_category(), path);
}

void read_fully(int file, const std::string& path, void* data, std::size_t bytes,
                std::uint64_t at) {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::pread(file, to, bytes, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path);
    if (got == 0) throw std::invalid_argument(path + " ends too early");
    to += got;
    at += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

}  // namespace

TokenStore::TokenStore(const std::string& path) : path_(path) {
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) fail(path);
  write(kMagic, kMagicBytes);
}

TokenStore TokenStore::open(const std::string& path) {
  TokenStore store;
  store.path_ = path;
  store.file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (store.file_ < 0) fail(path);
  struct stat status;
  if (::fstat(store.file_, &status) != 0) fail(path);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto damaged = [&] { return std::invalid_argument(path + " is no finished token file"); };
  char magic[kMagicBytes];
  if (size < kMagicBytes) throw damaged();
  read_fully(store.file_, path, magic, kMagicBytes, 0);
  if (std::memcmp(magic, kMagic, kMagicBytes) != 0) throw damaged();
  store.end_ = kMagicBytes;
  for (;;) {
    Block block;
    if (size - store.end_ < sizeof(Block)) throw damaged();
    read_fully(store.file_, path, &block, sizeof(Block), store.end_);
    store.end_ += sizeof(Block);
    if (block.reserved != 0) throw damaged();
    if (block.group == kLastBlock) {
      store.tokens_ = block.size;
      if (store.end_ != size || block.checksum != store.last_block().checksum) throw damaged();
      return store;
    }
    if (block.size > (size - store.end_) / sizeof(TokenId)) throw damaged();
    store.blocks_.push_back(block);
    store.offsets_.push_back(store.end_);
    store.end_ += block.size * sizeof(TokenId);
  }
}

TokenStore::TokenStore(TokenStore&& other) noexcept { *this = std::move(other); }

TokenStore& TokenStore::operator=(TokenStore&& other) noexcept {
  std::swap(blocks_, other.blocks_);
  std::swap(offsets_, other.offsets_);
  std::swap(memory_, other.memory_);
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(end_, other.end_);
  std::swap(tokens_, other.tokens_);
  return *this;
}

TokenStore::~TokenStore() {
  if (file_ >= 0) ::close(file_);
}

void TokenStore::write(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  end_ += bytes;
  while (bytes > 0) {
    const ssize_t done = ::write(file_, from, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(path_);
    from += done;
    bytes -= static_cast<std::size_t>(done);
  }
}

std::uint64_t TokenStore::checksum_of(const Block& block, std::span<const TokenId> ids) {
  const auto* const bytes = reinterpret_cast<const char*>(ids.data());
  const std::uint64_t of_head = mix(block.size ^ kSeed0, block.group ^ kSeed1);
  return mix(of_head ^ block.reserved, hash_bytes({bytes, ids.size_bytes()}) ^ kSeed0);
}

// Ends the file: the number of tokens, and a checksum of all heads.
TokenStore::Block TokenStore::last_block() const {
  Block last{kLastBlock, 0, tokens_, 0};
  last.checksum = checksum_of(last, {});
  for (const Block& block : blocks_) {
    last.checksum = mix(last.checksum ^ kSeed0, block.checksum ^ checksum_of(block, {}));
  }
  return last;
}

void TokenStore::append(std::uint32_t group, std::span<const TokenId> ids) {
  if (file_ < 0) {
    std::vector<TokenId> copy;
    append_in_parts(copy, ids);
    memory_.push_back(std::move(copy));
  }
  Block header{group, 0, ids.size(), 0};
  if (file_ >= 0) header.checksum = checksum_of(header, ids);
  blocks_.push_back(header);
  if (file_ < 0) return;
  write(&header, sizeof(header));
  offsets_.push_back(end_);
  write(ids.data(), ids.size_bytes());
}

void TokenStore::finish(Count tokens) {
  tokens_ = tokens;
  if (file_ < 0) return;
  const Block last = last_block();
  write(&last, sizeof(last));
}

std::size_t TokenStore::group_count() const {
  std::size_t count = 0;
  for (const Block& block : blocks_) count = std::max<std::size_t>(count, block.group + 1);
  return count;
}

std::span<const TokenId> TokenStore::read(std::size_t block, std::vector<TokenId>& buffer) const {
  if (file_ < 0) return memory_[block];
  buffer.resize(blocks_[block].size);
  read_fully(file_, path_, buffer.data(), buffer.size() * sizeof(TokenId), offsets_[block]);
  if (checksum_of(blocks_[block], buffer) != blocks_[block].checksum) {
    throw std::invalid_argument(path_ + " is damaged: a block does not add up");
  }
  return buffer;
}

}  // namespace vocabshift
