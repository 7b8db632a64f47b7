// SPDX-License-Identifier: Apache-2.0
// A machine of a simulated world: the world's clock and scheduler, a disk of its own. It can be paused, as by SIGSTOP,
// and its disk can be slow. Used by the world's threads, of which one runs at a time.
#pragma once

#include <string>

#include "simulation/env_on_disk.h"
#include "simulation/fake_env.h"

namespace millrace {

class SimHost final : public EnvOnDisk {
 public:
  // `world` outlives it.
  SimHost(FakeEnv& world, std::string name, uint64_t seed);

  const std::string& name() const { return name_; }
  // While it is paused nothing happens on it: threads stay where they wait, events wait.
  void SetPaused(bool is_paused) { is_paused_ = is_paused; }
  bool is_paused() const { return is_paused_; }
  // When the machine has died its clock is an hour ahead, so that what still runs gives up.
  void SetDead(bool is_dead) { is_dead_ = is_dead; }
  // What changes something on the disk takes up to that long.
  void SetDiskDelay(absl::Duration longest) { disk_delay_ = longest; }
  // Lets that much time pass for the calling thread.
  void Sleep(absl::Duration time);

  absl::Time Now() override { return world_.Now(); }
  int64_t MonotonicNanos() override { return world_.MonotonicNanos() + (is_dead_ ? kAfterDeath : 0); }
  uint64_t Random64() override { return world_.Random64(); }
  void Schedule(absl::AnyInvocable<void() &&> fn) override;
  Status StartThread(absl::AnyInvocable<void() &&> fn) override;
  TimerId StartTimer(absl::Duration period, absl::AnyInvocable<bool()> fn) override;
  void StopTimer(TimerId id) override { world_.StopTimer(id); }
  bool Await(absl::Mutex& mu, const absl::Condition& condition,
             absl::Duration patience = absl::InfiniteDuration()) override;
  void WaitWhile(std::atomic<uint32_t>& word, uint32_t seen, int64_t nanos) override;

 private:
  static constexpr int64_t kAfterDeath = 3'600'000'000'000;
  // Returns when it is not paused.
  void Gate();

  FakeEnv& world_;
  const std::string name_;
  uint64_t random_;
  bool is_paused_ = false, is_dead_ = false;
  absl::Duration disk_delay_;
};

}  // namespace millrace
