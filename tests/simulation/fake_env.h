// SPDX-License-Identifier: Apache-2.0
// A simulated world for tests: time, threads and randomness are functions of a seed (sim_scheduler.h), files are those
// of a FakeDisk. Thread-safe.
//
// What is scheduled, timed or started happens while the test's thread waits: in RunUntil, RunFor, Await or WaitWhile.
//
// A crash test runs its writer once to count operations(), then again for each point n with CrashAfter(n), restarts
// with several survivals and seeds, and checks what a reader finds.
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "simulation/env_on_disk.h"
#include "simulation/sim_scheduler.h"

namespace millrace {

class FakeEnv final : public EnvOnDisk {
 public:
  explicit FakeEnv(uint64_t seed = 1);  // the world of this thread too (base/this_world.h)
  ~FakeEnv() override;

  // Of its disk.
  using Survival = FakeDisk::Survival;
  void CrashAfter(int64_t n) { disk().CrashAfter(n); }
  void Restart(Survival survival, uint64_t seed = 0) { disk().Restart(survival, seed); }
  void FailOnce(int64_t n, Status status) { disk().FailOnce(n, std::move(status)); }
  int64_t operations() const { return disk().operations(); }

  // Both clocks move, and nothing happens.
  void AdvanceClock(absl::Duration by);
  // Only the clock on the wall jumps.
  void SetWallClock(absl::Time now);

  // Lets things happen until `done` holds, or nothing can happen any more: whether it holds.
  bool RunUntil(absl::FunctionRef<bool()> done) { return scheduler_.Wait(done, -1); }
  // The same for at most that long, also on a thread of the world.
  bool Wait(absl::FunctionRef<bool()> done, absl::Duration patience);
  // Lets that much time pass.
  void RunFor(absl::Duration time);
  // Of all that has happened, and in which order: the same for runs that were the same.
  uint64_t history() const { return scheduler_.history(); }

  absl::Time Now() override;
  int64_t MonotonicNanos() override;
  uint64_t Random64() override;
  void Schedule(absl::AnyInvocable<void() &&> fn) override;
  Status StartThread(absl::AnyInvocable<void() &&> fn) override;
  TimerId StartTimer(absl::Duration period, absl::AnyInvocable<bool()> fn) override;
  void StopTimer(TimerId id) override;
  bool Await(absl::Mutex& mu, const absl::Condition& condition,
             absl::Duration patience = absl::InfiniteDuration()) override;
  void WaitWhile(std::atomic<uint32_t>& word, uint32_t seen, int64_t nanos) override;

 private:
  mutable absl::Mutex mu_;
  // On the wall when the monotonic clock says 0. It says a second when the world begins, and the wall 1'000'000'000 s.
  absl::Time start_ ABSL_GUARDED_BY(mu_) = absl::FromUnixSeconds(999'999'999);
  uint64_t random_ ABSL_GUARDED_BY(mu_);
  SimScheduler scheduler_;
};

}  // namespace millrace
