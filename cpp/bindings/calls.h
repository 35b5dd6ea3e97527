// Long calls into the core: progress, Ctrl-C, and other Python threads that run meanwhile.
#pragma once

#include <functional>

#include "bindings/register.h"
#include "core/stop.h"
#include "core/types.h"

namespace vocabshift::bindings {

// A tick that calls progress(done, total) at most ten times a second, and lets Ctrl-C through.
Tick make_tick(const py::object& progress);

// What a Stoppable of a call from Python asks: whether there was a Ctrl-C, at most ten times a
// second.
std::function<void()> signal_check();

// A long call into the core: other Python threads run meanwhile, and Ctrl-C ends it.
class LongCall {
 public:
  LongCall() : stoppable_(signal_check()) {}

 private:
  py::gil_scoped_release release_;
  Stoppable stoppable_;
};

}  // namespace vocabshift::bindings
