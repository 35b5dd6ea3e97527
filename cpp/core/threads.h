// parallel_for over shards: shard i is always the same part of the work, so results that are
// combined in shard order do not depend on timing.
#pragma once

#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "core/types.h"

namespace vocabshift {

// Runs work(shard) for 0 <= shard < shards, each on its own thread as far as the system gives any;
// rethrows the first exception in shard order.
template <class F>
void parallel_for(std::size_t shards, F&& work) {
  if (shards <= 1) {
    if (shards == 1) work(std::size_t{0});
    return;
  }
  std::vector<std::exception_ptr> failures(shards);
  const auto guarded = [&](std::size_t shard) {
    try {
      work(shard);
    } catch (...) {
      failures[shard] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(shards - 1);
  try {
    while (threads.size() < shards - 1) threads.emplace_back(guarded, threads.size() + 1);
  } catch (const std::system_error&) {  // no more threads to be had: this one does the rest
  }
  for (std::size_t shard = threads.size() + 1; shard < shards; ++shard) guarded(shard);
  guarded(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

// Documents of one text, as parallel arrays of byte offsets.
struct Documents {
  std::string_view text;
  const std::int64_t* starts;
  const std::int64_t* ends;  // exclusive
  std::size_t count;

  std::string_view operator[](std::size_t i) const {
    return text.substr(static_cast<std::size_t>(starts[i]),
                       static_cast<std::size_t>(ends[i] - starts[i]));
  }
};

// Borders 0 = b[0] <= … <= b[shards] = count that cut documents into parts of about equal bytes.
std::vector<std::size_t> balanced_shards(const Documents& documents, std::size_t shards);

}  // namespace vocabshift
