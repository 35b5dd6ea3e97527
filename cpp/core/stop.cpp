#include "core/stop.h"

#include <utility>

namespace vocabshift {

namespace {
constinit thread_local const std::function<void()>* current_check = nullptr;
}

Stoppable::Stoppable(std::function<void()> check)
    : check_(std::move(check)), outer_(std::exchange(current_check, &check_)) {}

Stoppable::~Stoppable() { current_check = outer_; }

const std::function<void()>* Stoppable::current() { return current_check; }

void stop::check() {
  work_left = kWorkBetween;
  if (current_check && *current_check) (*current_check)();
}

}  // namespace vocabshift
