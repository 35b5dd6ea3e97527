#include "core/word_counts.h"

#include <cstring>
#include <stdexcept>

namespace vocabshift {

namespace {
constexpr std::size_t kFirstSlots = 1 << 12;
}

WordTable::WordTable() : slots_(kFirstSlots, Slot{}) {}

std::string_view WordTable::word_of(const Slot& slot, char* buffer) const {
  if (slot.length > WordKey::kInline) return {long_words_.data() + slot.high, slot.length};
  if (slot.length >= 8) {
    std::memcpy(buffer, &slot.low, 8);
    std::memcpy(buffer + slot.length - 8, &slot.high, 8);
  } else if (slot.length >= 4) {
    std::memcpy(buffer, &slot.low, 4);
    const auto last = static_cast<std::uint32_t>(slot.low >> 32);
    std::memcpy(buffer + slot.length - 4, &last, 4);
  } else {
    buffer[0] = static_cast<char>(slot.low);
    buffer[slot.length / 2] = static_cast<char>(slot.low >> 8);
    buffer[slot.length - 1] = static_cast<char>(slot.low >> 16);
  }
  return {buffer, slot.length};
}

WordTable::Slot& WordTable::find_or_insert(const WordKey& key, std::uint64_t hash,
                                           std::string_view word) {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.length == 0) {
      ++size_;
      slot = {key.low, key.high, key.length, 0, 0};
      if (!key.is_inline()) {
        slot.high = long_words_.size();
        long_words_.append(word);
      }
      return slot;
    }
    if (slot.low != key.low || slot.length != key.length) continue;
    if (key.is_inline()
            ? slot.high == key.high
            : std::memcmp(long_words_.data() + slot.high, word.data(), key.length) == 0) {
      return slot;
    }
  }
}

void WordTable::grow() {
  BigVector<Slot> old(slots_.size() * 2, Slot{});
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.length == 0) continue;
    const std::uint64_t high = slot.length <= WordKey::kInline ? slot.high : 0;
    std::size_t at = WordKey{slot.low, high, slot.length}.hash() & mask;
    while (slots_[at].length != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

void WordTable::add_batch(const std::string_view* words, std::size_t count) {
  if ((size_ + count) * 3 > slots_.size() * 2) grow();
  WordKey keys[kBatch];
  std::uint64_t hashes[kBatch];
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < count; ++i) {
    keys[i] = word_key(words[i]);
    hashes[i] = keys[i].hash();
    __builtin_prefetch(&slots_[hashes[i] & mask], 1);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (keys[i].is_inline()) continue;
    const Slot& slot = slots_[hashes[i] & mask];
    if (slot.low == keys[i].low) __builtin_prefetch(long_words_.data() + slot.high);
  }
  for (std::size_t i = 0; i < count; ++i) ++find_or_insert(keys[i], hashes[i], words[i]).count;
}

void WordTable::add(std::string_view word, Count count) {
  if ((size_ + 1) * 3 > slots_.size() * 2) grow();
  const WordKey key = word_key(word);
  find_or_insert(key, key.hash(), word).count += count;
}

void WordTable::merge_from(const WordTable& other) {
  other.for_each([&](std::string_view word, Count count) { add(word, count); });
}

WordCounter::WordCounter(PreTokenizer pre_tokenizer, std::size_t threads)
    : pre_tokenizer_(std::move(pre_tokenizer)), threads_(threads == 0 ? 1 : threads) {}

void WordCounter::add(const Documents& documents, std::size_t group) {
  if (group >= tables_.size()) tables_.resize(group + 1);
  auto& tables = tables_[group];
  tables.resize(threads_);
  const std::vector<std::size_t> borders = balanced_shards(documents, threads_);
  parallel_for(threads_, [&](std::size_t shard) {
    if (borders[shard] == borders[shard + 1]) return;
    if (!tables[shard]) tables[shard] = std::make_unique<WordTable>();
    WordTable& table = *tables[shard];
    std::string_view batch[WordTable::kBatch];
    std::size_t waiting = 0;
    for (std::size_t i = borders[shard]; i < borders[shard + 1]; ++i) {
      pre_tokenizer_.split(documents[i], [&](std::string_view word) {
        batch[waiting++] = word;
        if (waiting == WordTable::kBatch) {
          table.add_batch(batch, waiting);
          waiting = 0;
        }
      });
    }
    table.add_batch(batch, waiting);
  });
}

void WordCounter::finish() {
  for (auto& tables : tables_) {
    std::unique_ptr<WordTable> joined;
    for (auto& table : tables) {
      if (!joined) {
        joined = std::move(table);
      } else if (table) {
        if (table->size() > joined->size()) joined.swap(table);
        joined->merge_from(*table);
        table.reset();
      }
    }
    if (!joined) joined = std::make_unique<WordTable>();
    tables.clear();
    tables.push_back(std::move(joined));
  }
  threads_ = 0;
}

const WordTable& WordCounter::table(std::size_t group) const {
  if (threads_ != 0) throw std::logic_error("WordCounter::table before finish");
  return *tables_.at(group).front();
}

}  // namespace vocabshift
