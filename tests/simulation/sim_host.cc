// SPDX-License-Identifier: Apache-2.0
#include "simulation/sim_host.h"

#include <utility>

namespace millrace {

SimHost::SimHost(FakeEnv& world, std::string name, uint64_t seed)
    : world_(world), name_(std::move(name)), random_(seed) {
  disk().SetBeforeChange([this] {
    if (disk_delay_ <= absl::ZeroDuration()) return;
    const int64_t longest = absl::ToInt64Nanoseconds(disk_delay_);
    Sleep(absl::Nanoseconds(static_cast<int64_t>(NextRandom(&random_) % static_cast<uint64_t>(longest))));
  });
}

void SimHost::Gate() {
  if (is_paused_) world_.Wait([this] { return !is_paused_; }, absl::InfiniteDuration());
}

void SimHost::Sleep(absl::Duration time) {
  world_.RunFor(time);
  Gate();
}

void SimHost::Schedule(absl::AnyInvocable<void() &&> fn) {
  world_.Schedule([this, fn = std::move(fn)]() mutable {
    Gate();
    std::move(fn)();
  });
}

Status SimHost::StartThread(absl::AnyInvocable<void() &&> fn) {
  return world_.StartThread([this, fn = std::move(fn)]() mutable {
    Gate();
    std::move(fn)();
  });
}

Env::TimerId SimHost::StartTimer(absl::Duration period, absl::AnyInvocable<bool()> fn) {
  return world_.StartTimer(period, [this, fn = std::move(fn)]() mutable {
    Gate();
    return fn();
  });
}

bool SimHost::Await(absl::Mutex& mu, const absl::Condition& condition,
                    absl::Duration patience) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const bool holds = world_.Await(mu, condition, patience);
  if (!is_paused_) return holds;
  mu.Unlock();
  Gate();
  mu.Lock();
  return condition.Eval();
}

void SimHost::WaitWhile(std::atomic<uint32_t>& word, uint32_t seen, int64_t nanos) {
  world_.WaitWhile(word, seen, nanos);
  Gate();
}

}  // namespace millrace
