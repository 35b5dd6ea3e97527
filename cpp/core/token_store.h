// Token ids of a whole corpus in blocks, in memory or in a file: written once, read block by block.
// The file is also the checkpoint of the superword stage's counting. Owns the file's format; knows
// nothing of what the ids mean.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/open_file.h"
#include "core/types.h"

namespace vocabshift {

class TokenStore {
 public:
  TokenStore() = default;                        // in memory
  explicit TokenStore(const std::string& path);  // into a new file
  // A finished file; std::invalid_argument where it is not whole, std::system_error where it cannot
  // be read. What the blocks hold is checked when they are read.
  static TokenStore open(const std::string& path);
  TokenStore(TokenStore&&) noexcept = default;
  TokenStore& operator=(TokenStore&&) noexcept = default;

  // std::system_error where the disk is full.
  void append(std::uint32_t group, std::span<const TokenId> ids);
  // Ends the file; `tokens` is kept beside the blocks.
  void finish(Count tokens);

  std::size_t block_count() const { return blocks_.size(); }
  std::uint32_t group_of(std::size_t block) const { return blocks_[block].group; }
  std::size_t group_count() const;
  Count tokens() const { return tokens_; }  // as given to finish
  // The ids of a block, in `buffer` where they come from a file. May be called by many threads.
  // std::invalid_argument where the file is not what was written.
  std::span<const TokenId> read(std::size_t block, std::vector<TokenId>& buffer) const;

 private:
  struct Block {
    std::uint32_t group;
    std::uint32_t reserved;
    std::uint64_t size;      // ids
    std::uint64_t checksum;  // of the rest and the ids
  };

  static std::uint64_t checksum_of(const Block& block, std::span<const TokenId> ids);
  Block last_block() const;
  void write(const void* data, std::size_t bytes);
  void read(std::uint64_t offset, void* data, std::size_t bytes) const;

  std::vector<Block> blocks_;
  std::vector<std::uint64_t> offsets_;        // of the blocks' ids in the file, in bytes
  std::vector<std::vector<TokenId>> memory_;  // of the blocks, where there is no file
  std::shared_ptr<OpenFile> file_;            // null where they are in memory
  std::uint64_t end_ = 0;                     // bytes written
  Count tokens_ = 0;
};

}  // namespace vocabshift
