// SPDX-License-Identifier: Apache-2.0
#include "base/stop_scope.h"

#include <utility>

namespace millrace {
namespace {

constinit thread_local StopScope* current = nullptr;

}  // namespace

StopScope::StopScope(MustStop must_stop, void* data)
    : must_stop_(must_stop), data_(data), outer_(std::exchange(current, this)) {}
StopScope::~StopScope() { current = outer_; }

// What is asked may do other work on this thread, which is no part of this.
bool StopScope::Ask() {
  StopScope* const here = std::exchange(current, nullptr);
  const bool stop = must_stop_(data_);
  current = here;
  return stop;
}

StopScope* CurrentStopScope() { return current && current->may_stop ? current : nullptr; }

StopAllowed::StopAllowed() : scope_(current), before_(scope_ && std::exchange(scope_->may_stop, true)) {}
StopAllowed::~StopAllowed() {
  if (scope_) scope_->may_stop = before_;
}

StopHelper::StopHelper(StopScope* scope) : outer_(std::exchange(current, scope)) {}
StopHelper::~StopHelper() { current = outer_; }

void StopIfAsked() {
  StopScope* const scope = CurrentStopScope();
  if (scope && scope->Ask()) throw WorkStopped();
}

}  // namespace millrace
