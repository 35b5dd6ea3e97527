#include "core/token_store.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core/filled.h"
#include "core/hash.h"

namespace vocabshift {

namespace {

constexpr char kMagic[] = "vocabshift ids 2";  // 16 bytes, the terminating 0 not written
constexpr std::size_t kMagicBytes = 16;
constexpr std::uint32_t kLastBlock = 0xFFFFFFFFu;

}  // namespace

TokenStore::TokenStore(const std::string& path) : file_(OpenFile::to_write(path)) {
  write(kMagic, kMagicBytes);
}

TokenStore TokenStore::open(const std::string& path) {
  TokenStore store;
  store.file_ = OpenFile::to_read(path);
  const std::uint64_t size = store.file_->size();
  const auto damaged = [&] { return std::invalid_argument(path + " is no finished token file"); };
  char magic[kMagicBytes];
  if (size < kMagicBytes) throw damaged();
  store.read(0, magic, kMagicBytes);
  if (std::memcmp(magic, kMagic, kMagicBytes) != 0) throw damaged();
  store.end_ = kMagicBytes;
  for (;;) {
    Block block;
    if (size - store.end_ < sizeof(Block)) throw damaged();
    store.read(store.end_, &block, sizeof(Block));
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

void TokenStore::write(const void* data, std::size_t bytes) {
  file_->write(data, bytes);
  end_ += bytes;
}

void TokenStore::read(std::uint64_t offset, void* data, std::size_t bytes) const {
  if (!file_->read_at(offset, data, bytes)) {
    throw std::invalid_argument(file_->name() + " ends too early");
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
  if (!file_) {
    std::vector<TokenId> copy;
    append_in_parts(copy, ids);
    memory_.push_back(std::move(copy));
  }
  Block header{group, 0, ids.size(), 0};
  if (file_) header.checksum = checksum_of(header, ids);
  blocks_.push_back(header);
  if (!file_) return;
  write(&header, sizeof(header));
  offsets_.push_back(end_);
  write(ids.data(), ids.size_bytes());
}

void TokenStore::finish(Count tokens) {
  tokens_ = tokens;
  if (!file_) return;
  const Block last = last_block();
  write(&last, sizeof(last));
}

std::size_t TokenStore::group_count() const {
  std::size_t count = 0;
  for (const Block& block : blocks_) count = std::max<std::size_t>(count, block.group + 1);
  return count;
}

std::span<const TokenId> TokenStore::read(std::size_t block, std::vector<TokenId>& buffer) const {
  if (!file_) return memory_[block];
  buffer.resize(blocks_[block].size);
  read(offsets_[block], buffer.data(), buffer.size() * sizeof(TokenId));
  if (checksum_of(blocks_[block], buffer) != blocks_[block].checksum) {
    throw std::invalid_argument(file_->name() + " is damaged: a block does not add up");
  }
  return buffer;
}

}  // namespace vocabshift
