// Where long work may be stopped by whoever called the core (Ctrl-C), without a parameter on the
// way down: the caller says what to ask, loops say how much they have done. A Tick (types.h), by
// contrast, reports progress and is passed to the loops that can measure it.
//
// Owns how often is asked. A loop that may be stopped leaves only what is thrown away with it, or
// is as good as before.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>

namespace vocabshift {

// Until it ends, loops of this thread ask `check`, which throws to stop them.
class Stoppable {
 public:
  explicit Stoppable(std::function<void()> check);
  ~Stoppable();
  Stoppable(const Stoppable&) = delete;
  Stoppable& operator=(const Stoppable&) = delete;

  // What this thread's loops ask; null for nothing.
  static const std::function<void()>* current();

 private:
  std::function<void()> check_;
  const std::function<void()>* outer_;
};

// What stops a thread because another one was stopped.
struct StoppedElsewhere : std::exception {
  const char* what() const noexcept override { return "stopped with another thread"; }
};

namespace stop {
// Between two checks; well under 10 ms. A fuzz target checks always and never waits, so that what
// an input reaches does not depend on those before it, nor on the time.
#ifdef VOCABSHIFT_FUZZ
inline constexpr std::int64_t kWorkBetween = 0, kWaitBetweenMs = 0;
#else
inline constexpr std::int64_t kWorkBetween = 1 << 16, kWaitBetweenMs = 50;
#endif
inline constinit thread_local std::int64_t work_left = kWorkBetween;
void check();
}  // namespace stop

// To be called from long loops; `work` in steps of some nanoseconds: bytes, symbols, table entries.
inline void may_stop(std::size_t work) {
  stop::work_left -= static_cast<std::int64_t>(work);
  if (stop::work_left < 0) stop::check();
}

}  // namespace vocabshift
