// SPDX-License-Identifier: Apache-2.0
#include "simulation/fake_env.h"

#include <algorithm>
#include <utility>

#include "base/this_world.h"

namespace millrace {

FakeEnv::FakeEnv(uint64_t seed) : random_(seed), scheduler_(seed) { EnterWorld(this); }

FakeEnv::~FakeEnv() {
  if (Env* const world = EnterWorld(nullptr); world != this) EnterWorld(world);
}

void FakeEnv::AdvanceClock(absl::Duration by) { scheduler_.Advance(absl::ToInt64Nanoseconds(by)); }

void FakeEnv::SetWallClock(absl::Time now) {
  const absl::MutexLock lock(&mu_);
  start_ = now - absl::Nanoseconds(scheduler_.now());
}

namespace {

int64_t NanosOf(absl::Duration patience) {
  return patience == absl::InfiniteDuration() ? -1 : std::max<int64_t>(absl::ToInt64Nanoseconds(patience), 0);
}

}  // namespace

bool FakeEnv::Wait(absl::FunctionRef<bool()> done, absl::Duration patience) {
  return scheduler_.Wait(done, NanosOf(patience));
}

void FakeEnv::RunFor(absl::Duration time) {
  Wait([] { return false; }, time);
}

absl::Time FakeEnv::Now() {
  const absl::MutexLock lock(&mu_);
  return start_ + absl::Nanoseconds(scheduler_.now());
}

int64_t FakeEnv::MonotonicNanos() { return scheduler_.now(); }

void FakeEnv::Schedule(absl::AnyInvocable<void() &&> fn) { ScheduleAfter(absl::ZeroDuration(), std::move(fn)); }

Status FakeEnv::StartThread(absl::AnyInvocable<void() &&> fn) {
  return scheduler_.StartThread([this, fn = std::move(fn)]() mutable {
    EnterWorld(this);
    std::move(fn)();
  });
}

Env::TimerId FakeEnv::StartTimer(absl::Duration period, absl::AnyInvocable<bool()> fn) {
  return scheduler_.AddEvent(absl::ToInt64Nanoseconds(period), [this, fn = std::move(fn)]() mutable {
    EnterWorld(this);
    return fn();
  });
}

void FakeEnv::StopTimer(TimerId id) { scheduler_.RemoveEvent(id); }

bool FakeEnv::Await(absl::Mutex& mu, const absl::Condition& condition,
                    absl::Duration patience) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (condition.Eval()) return true;
  mu.Unlock();
  const auto holds = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!mu.TryLock()) return false;
    const bool result = condition.Eval();
    mu.Unlock();
    return result;
  };
  scheduler_.Wait(holds, NanosOf(patience));
  mu.Lock();
  return condition.Eval();
}

void FakeEnv::WaitWhile(std::atomic<uint32_t>& word, uint32_t seen, int64_t nanos) {
  scheduler_.Wait([&] { return word.load() != seen; }, nanos);
}

uint64_t FakeEnv::Random64() {
  const absl::MutexLock lock(&mu_);
  return NextRandom(&random_);
}

}  // namespace millrace
