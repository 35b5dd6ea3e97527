#include "bindings/calls.h"

#include <chrono>

namespace vocabshift::bindings {

namespace {

// True at most ten times a second: each look at signals may have to wait for other Python threads.
class Seldom {
 public:
  bool operator()() {
    const auto now = Clock::now();
    if (now - last_ < std::chrono::milliseconds(100)) return false;
    last_ = now;
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

void check_signals() {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace

Tick make_tick(const py::object& progress) {
  return [progress, is_time = Seldom()](std::uint64_t done, std::uint64_t total) mutable {
    if (!is_time()) return;
    const py::gil_scoped_acquire acquire;
    check_signals();
    if (!progress.is_none()) progress(done, total);
  };
}

std::function<void()> signal_check() {
  return [is_time = Seldom()]() mutable {
    if (!is_time()) return;
    const py::gil_scoped_acquire acquire;
    check_signals();
  };
}

}  // namespace vocabshift::bindings
