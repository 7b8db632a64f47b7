// SPDX-License-Identifier: Apache-2.0
// Leaving work in the middle when nobody wants its result any more.
//
// Who runs work that may be left undone opens a StopScope on the thread that runs it. While the scope is open and
// `may_stop` is set, ThreadPool::ParallelFor leaves undone what is left of work that takes long, on all threads, and
// throws WorkStopped, so that nothing goes on with results that are not there; StopIfAsked does so in long loops. Who
// opened the scope catches it.
#pragma once

#include <cstdint>

namespace millrace {

struct WorkStopped {};

class StopScope {
 public:
  // Whether to stop. Any thread that does a part of the work asks, about every millisecond.
  using MustStop = bool (*)(void* data);
  StopScope(MustStop must_stop, void* data);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  bool may_stop = false;  // whoever opened the scope changes it as it goes

  bool Ask();

 private:
  const MustStop must_stop_;
  void* const data_;
  StopScope* const outer_;
};

// The scope that this thread works for, when it says that work may stop now; else null.
StopScope* CurrentStopScope();

// While it lives, the work that this thread does may stop, whatever its scope says. For a kernel that reaches state by
// handles, in the part that leaves this state as it was until all is done. Not inside of a ParallelFor.
class StopAllowed {
 public:
  StopAllowed();
  ~StopAllowed();
  StopAllowed(const StopAllowed&) = delete;
  StopAllowed& operator=(const StopAllowed&) = delete;

 private:
  StopScope* const scope_;
  const bool before_;
};

// This thread works for another one's scope.
class StopHelper {
 public:
  explicit StopHelper(StopScope* scope);
  ~StopHelper();
  StopHelper(const StopHelper&) = delete;
  StopHelper& operator=(const StopHelper&) = delete;

 private:
  StopScope* const outer_;
};

// Throws WorkStopped when the work that this thread does must stop. For loops that take long without a ParallelFor, and
// inside of one: to be called every 100 us or so.
void StopIfAsked();

// The same for short rounds: asks in one of a few thousand.
class StopNowAndThen {
 public:
  // `rounds`: how many this call stands for, where one is a row of many.
  void operator()(int64_t rounds = 1) {
    rounds_ += rounds;
    if (rounds_ <= 0xfff) return;
    rounds_ = 0;
    StopIfAsked();
  }

 private:
  int64_t rounds_ = 0;
};

}  // namespace millrace
