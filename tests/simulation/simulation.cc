// SPDX-License-Identifier: Apache-2.0
#include "simulation/simulation.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "simulation/training.h"

namespace millrace {
namespace {

constexpr absl::Duration kMostFaults = absl::Seconds(20);    // so long they come
constexpr absl::Duration kMostPatience = absl::Minutes(60);  // for the training, once there are none

// Brings the faults, on a thread of the world.
class Nemesis {
 public:
  Nemesis(SimCluster& cluster, uint64_t seed, SimulationOutcome& outcome)
      : cluster_(cluster), random_(seed), outcome_(outcome) {
    intensity_ = Below(4);  // 0: none
    weather_.min_delay = absl::Microseconds(50 + Below(500));
    weather_.max_delay = weather_.min_delay + absl::Microseconds(Below(3) == 0 ? Below(200'000) : Below(3'000));
    weather_.silence = absl::Seconds(1 + Below(10));
    weather_.lost = intensity_ > 0 && Below(2) == 0 ? 0.0005 * static_cast<double>(1 + Below(20)) : 0;
    weather_.twice = intensity_ > 0 && Below(2) == 0 ? 0.02 : 0;
    cluster_.network().SetWeather(weather_);
  }

  void Run(const bool& is_over) {
    const int64_t end = cluster_.world().MonotonicNanos() + absl::ToInt64Nanoseconds(kMostFaults);
    while (intensity_ > 0 && !is_over && cluster_.world().MonotonicNanos() < end) {
      cluster_.world().Wait([&] { return is_over; }, absl::Milliseconds(1 + Below(6'000 / intensity_)));
      if (!is_over) BringOne();
    }
    cluster_.Note("no more faults");
    cluster_.network().Heal();
    weather_.lost = weather_.twice = 0;
    cluster_.network().SetWeather(weather_);
    for (const auto& task : cluster_.tasks()) {
      task->host().SetPaused(false);
      task->host().SetDiskDelay(absl::ZeroDuration());
    }
  }
  // Machines that are to come up again.
  int num_down() const { return num_down_; }

 private:
  uint64_t Below(uint64_t n) { return NextRandom(&random_) % n; }
  SimTask& AnyTask() { return *cluster_.tasks()[Below(cluster_.tasks().size())]; }

  void BringOne() {
    ++outcome_.num_faults;
    switch (Below(6)) {
      case 0:
      case 1: return Crash(AnyTask());
      case 2: return Cut(AnyTask(), AnyTask(), Below(2) == 0);
      case 3: {
        SimTask &from = AnyTask(), &to = AnyTask();
        const absl::Duration time = absl::Milliseconds(Below(15'000));
        cluster_.Note(
            absl::StrCat(from.machine(), " -> ", to.machine(), " is clogged for ", absl::FormatDuration(time)));
        return cluster_.network().Clog(from.machine(), to.machine(), time);
      }
      case 4: return Pause(AnyTask());
      default: {
        SimTask& task = AnyTask();
        const absl::Duration delay = absl::Milliseconds(Below(300));
        cluster_.Note(absl::StrCat(task.machine(), "'s disk takes ", absl::FormatDuration(delay)));
        if (task.is_up()) task.host().SetDiskDelay(delay);
      }
    }
  }

  void Later(absl::Duration time, std::function<void()> what) { cluster_.world().ScheduleAfter(time, std::move(what)); }

  void Crash(SimTask& task) {
    if (!task.is_up()) return;
    ++outcome_.num_crashes;
    ++num_down_;
    const auto survival = static_cast<FakeDisk::Survival>(Below(3));
    const uint64_t seed = Below(uint64_t{1} << 62);
    const absl::Duration time = absl::Milliseconds(Below(8'000));
    const Status s = cluster_.world().StartThread([this, &task, survival, seed, time] {
      task.Crash(survival, seed);
      cluster_.world().RunFor(time);
      if (const Status started = task.Start(); !started.ok()) {
        outcome_.failures.push_back(absl::StrCat(task.machine(), " does not start again: ", started.ToString()));
      }
      --num_down_;
    });
    if (!s.ok()) outcome_.failures.push_back(s.ToString());
  }

  void Cut(SimTask& from, SimTask& to, bool both) {
    const absl::Duration time = absl::Milliseconds(Below(12'000));
    const std::string a = from.machine(), b = to.machine();
    cluster_.Note(absl::StrCat(a, both ? " <-> " : " -> ", b, " is cut for ", absl::FormatDuration(time)));
    cluster_.network().Cut(a, b, true);
    if (both) cluster_.network().Cut(b, a, true);
    Later(time, [this, a, b] {
      cluster_.network().Cut(a, b, false);
      cluster_.network().Cut(b, a, false);
    });
  }

  void Pause(SimTask& task) {
    if (!task.is_up()) return;
    const absl::Duration time = absl::Milliseconds(Below(15'000));
    cluster_.Note(absl::StrCat(task.machine(), " is paused for ", absl::FormatDuration(time)));
    task.host().SetPaused(true);
    Later(time, [&task] { task.host().SetPaused(false); });
  }

  SimCluster& cluster_;
  uint64_t random_;
  SimulationOutcome& outcome_;
  uint64_t intensity_ = 0;
  SimNetwork::Weather weather_;
  int num_down_ = 0;
};

}  // namespace

SimulationOutcome RunSimulation(uint64_t seed, const SimulationOptions& options) {
  SimulationOutcome outcome;
  uint64_t random = seed * 0x2545f4914f6cdd1du + 1;
  const auto below = [&](uint64_t n) { return NextRandom(&random) % n; };
  SimCluster cluster(seed, 1 + static_cast<int>(below(2)), 1 + static_cast<int>(below(3)));
  if (options.write_trace) cluster.WriteTrace();
  TrainingPlan plan;
  plan.num_steps = 4 + static_cast<int>(below(8));
  plan.save_every = 1 + static_cast<int>(below(4));
  plan.think_time = absl::Milliseconds(below(2'000));
  plan.step_timeout = below(2) == 0 ? absl::InfiniteDuration() : absl::Milliseconds(2'000 + below(30'000));
  plan.chief_lies = below(4) == 0;
  plan.does_others = below(4) == 0;
  plan.seed = below(uint64_t{1} << 62);
  outcome.is_synchronous = below(2) == 0;
  const std::unique_ptr<Training> training =
      outcome.is_synchronous ? NewSynchronousTraining(cluster, plan) : NewAsynchronousTraining(cluster, plan);
  if (training == nullptr) {
    outcome.failures.push_back("there is no reference");
    return outcome;
  }
  training->SetPrograms();
  for (const auto& task : cluster.tasks()) task->host().disk().SetLies(options.forgets_fsync);
  FakeEnv& world = cluster.world();
  bool is_over = false, faults_are_over = false, is_down = false;
  Nemesis nemesis(cluster, below(uint64_t{1} << 62), outcome);
  const auto start = [&](absl::AnyInvocable<void()&&> fn) {
    if (const Status s = world.StartThread(std::move(fn)); !s.ok()) outcome.failures.push_back(s.ToString());
  };
  start([&] {
    for (const auto& task : cluster.tasks()) {
      if (const Status s = task->Start(); !s.ok()) outcome.failures.push_back(s.ToString());
    }
    nemesis.Run(is_over);
    faults_are_over = true;
  });
  const auto is_decided = [&] {
    return training->is_over() || !training->failures().empty() || !outcome.failures.empty();
  };
  world.Wait([&] { return is_decided() || faults_are_over; }, absl::InfiniteDuration());
  if (!is_decided()) world.Wait(is_decided, kMostPatience);
  if (!is_decided()) outcome.failures.push_back("the training is not over long after the last fault");
  is_over = true;
  training->Stop();
  // All is stopped by a thread of the world, since it waits.
  start([&] {
    world.Wait([&] { return faults_are_over && nemesis.num_down() == 0; }, absl::InfiniteDuration());
    for (const auto& task : cluster.tasks()) task->AwaitPrograms();
    for (const auto& task : cluster.tasks()) task->Stop();
    is_down = true;
  });
  world.Wait([&] { return is_down; }, kMostPatience);
  if (!is_down) outcome.failures.push_back("the cluster does not stop");
  const std::vector<std::string>& seen = training->failures();
  outcome.failures.insert(outcome.failures.end(), seen.begin(), seen.end());
  outcome.history = world.history();
  outcome.virtual_seconds = static_cast<double>(world.MonotonicNanos()) * 1e-9;
  outcome.num_calls = cluster.network().num_calls();
  outcome.num_recoveries = training->num_recoveries;
  outcome.num_restores = training->num_restores;
  outcome.num_saves = training->num_saves;
  outcome.num_errors = training->num_errors;
  outcome.num_others = training->num_others;
  outcome.trace = cluster.trace();
  return outcome;
}

}  // namespace millrace
