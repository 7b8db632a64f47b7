// SPDX-License-Identifier: Apache-2.0
// A simulated world's time and threads. Events (scheduled work, timers) stand in a queue by virtual time; among those
// of one instant, and the threads that may go on then, the seed decides. Time passes only when nothing can happen at
// the present instant. One thread runs at a time, and goes on until it waits here or ends, so a run is a function of
// the seed.
//
// Events run on threads of the scheduler's, of which there are as many as events wait at once; those of StartThread
// have one each. One thread comes from outside, the test's: the world stands still until that one waits.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "base/status.h"

namespace millrace {

class SimScheduler {
 public:
  explicit SimScheduler(uint64_t seed);
  // REQUIRES: all threads have ended or will when nobody waits for anything else. Events that have not run are dropped.
  ~SimScheduler();
  SimScheduler(const SimScheduler&) = delete;
  SimScheduler& operator=(const SimScheduler&) = delete;

  int64_t now() const;  // in nanoseconds
  void Advance(int64_t nanos);
  // Of what has happened until now, and in which order: the same in two runs that were the same.
  uint64_t history() const;

  // After `delay` nanoseconds, and again after each further delay while it returns true. The result names it.
  int64_t AddEvent(int64_t delay, absl::AnyInvocable<bool()> fn);
  // After return it does not run, unless it is what calls this: waits for one that runs.
  void RemoveEvent(int64_t id);
  Status StartThread(absl::AnyInvocable<void() &&> fn);

  // Waits until `ready` holds, which is asked between events and must not wait, or until `nanos` have passed (negative:
  // without limit): whether it holds. When nothing can happen any more the thread from outside returns too.
  bool Wait(absl::FunctionRef<bool()> ready, int64_t nanos);

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;  // threads that have not ended hold it too
};

}  // namespace millrace
