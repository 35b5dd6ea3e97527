// parallel_for over shards: shard i is always the same part of the work, so results that are
// combined in shard order do not depend on timing.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/stop.h"
#include "core/types.h"

namespace vocabshift {

// Threads of one parallel_for: the calling one asks its own check, also while it waits for the
// others, and the others stop when it was stopped.
class StopTogether {
 public:
  StopTogether() : caller_check_(Stoppable::current()) {}

  void check_caller() {
    check_other();
    if (!caller_check_ || !*caller_check_) return;
    try {
      (*caller_check_)();
    } catch (...) {
      is_stopped_ = true;
      throw;
    }
  }
  void stop_others() { is_stopped_ = true; }
  void check_other() const {
    if (is_stopped_) throw StoppedElsewhere();
  }
  void end_one() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++ended_;
    one_ended_.notify_one();
  }
  void wait_for(std::size_t threads) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!one_ended_.wait_for(lock, std::chrono::milliseconds(stop::kWaitBetweenMs),
                                [&] { return ended_ == threads; })) {
      lock.unlock();
      check_caller();
      lock.lock();
    }
  }

 private:
  const std::function<void()>* caller_check_;
  std::atomic<bool> is_stopped_ = false;
  std::mutex mutex_;
  std::condition_variable one_ended_;
  std::size_t ended_ = 0;
};

// Joins its threads however the scope is left: a std::thread that is destroyed unjoined ends the
// process. (std::jthread would do, but older versions of libc++ lack it.)
class JoinedThreads {
 public:
  explicit JoinedThreads(StopTogether& together) : together_(together) {}
  ~JoinedThreads() {
    if (!threads_.empty()) together_.stop_others();  // left by an exception: their work is in vain
    join();
  }
  JoinedThreads(const JoinedThreads&) = delete;
  JoinedThreads& operator=(const JoinedThreads&) = delete;

  void reserve(std::size_t threads) { threads_.reserve(threads); }
  std::size_t size() const { return threads_.size(); }
  template <class F, class... Args>
  void start(F&& body, Args&&... args) {
    threads_.emplace_back(std::forward<F>(body), std::forward<Args>(args)...);
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  StopTogether& together_;
  std::vector<std::thread> threads_;
};

// Runs work(shard) for 0 <= shard < shards, each on its own thread as far as the system gives any;
// rethrows the first exception in shard order. What stops the calling thread stops all of them.
template <class F>
void parallel_for(std::size_t shards, F&& work) {
  if (shards <= 1) {
    if (shards == 1) work(std::size_t{0});
    return;
  }
  std::vector<std::exception_ptr> failures(shards);
  const auto guarded = [&](std::size_t shard, auto&& body) {
    try {
      body();
    } catch (const StoppedElsewhere&) {  // the thread that was stopped reports why
    } catch (...) {
      if (!failures[shard]) failures[shard] = std::current_exception();
    }
  };
  StopTogether together;
  const auto on_thread = [&](std::size_t shard) {
    const Stoppable stoppable([&] { together.check_other(); });
    guarded(shard, [&] { work(shard); });
    together.end_one();
  };
  JoinedThreads threads(together);
  threads.reserve(shards - 1);
  try {
    while (threads.size() < shards - 1) threads.start(on_thread, threads.size() + 1);
  } catch (const std::system_error&) {  // no more threads to be had: this one does the rest
  }
  {
    const Stoppable stoppable([&] { together.check_caller(); });
    for (std::size_t shard = threads.size() + 1; shard < shards; ++shard) {
      guarded(shard, [&] { work(shard); });
    }
    guarded(0, [&] { work(std::size_t{0}); });
    guarded(0, [&] { together.wait_for(threads.size()); });
  }
  threads.join();
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
