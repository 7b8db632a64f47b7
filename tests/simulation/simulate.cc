// SPDX-License-Identifier: Apache-2.0
// Runs simulated clusters: simulate [--seeds N] [--seed FIRST] [--jobs J] [--trace]
//
// Says how many a second and how long it will still take. A seed that fails is named with what failed and the end of
// its trace; --seeds 1 --seed S --trace prints all of it. Every 20th seed runs twice, and must be the same twice. Exits
// with 1 when one has failed.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <thread>

#include "simulation/simulation.h"

namespace {

constexpr int64_t kMostJobs = 256;

// Shared by the processes.
struct Counts {
  std::atomic<uint64_t> seed_of_job[kMostJobs] = {};
  std::atomic<int64_t> clusters{0}, failed{0}, crashes{0}, faults{0}, recoveries{0}, restores{0}, saves{0}, errors{0},
      others{0}, calls{0};
};

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void Tell(uint64_t seed, const char* what, size_t lines) {
  const auto outcome = millrace::RunSimulation(seed, {.write_trace = true});
  std::fprintf(stderr, "seed %llu: %s\n", static_cast<unsigned long long>(seed), what);
  const size_t n = outcome.trace.size();
  for (size_t i = n > lines ? n - lines : 0; i < n; ++i) std::fprintf(stderr, "  %s\n", outcome.trace[i].c_str());
}

void Run(uint64_t seed, Counts& counts, bool trace) {
  const auto outcome = millrace::RunSimulation(seed);
  ++counts.clusters;
  counts.crashes += outcome.num_crashes;
  counts.faults += outcome.num_faults;
  counts.recoveries += outcome.num_recoveries;
  counts.restores += outcome.num_restores;
  counts.saves += outcome.num_saves;
  counts.errors += outcome.num_errors;
  counts.others += outcome.num_others;
  counts.calls += outcome.num_calls;
  std::string failed;
  for (const std::string& f : outcome.failures) failed += f + "\n";
  if (seed % 20 == 0 && millrace::RunSimulation(seed).history != outcome.history)
    failed += "it is not the same again\n";
  if (!failed.empty()) ++counts.failed;
  if (!failed.empty() || trace) Tell(seed, failed.c_str(), trace ? SIZE_MAX : 60);
}

void Report(const Counts& counts, int64_t seeds, double start) {
  const double passed = Seconds() - start, rate = static_cast<double>(counts.clusters) / passed;
  std::printf("%lld of %lld clusters, %lld failed; %.1f a second, %.0f s left\n",
              static_cast<long long>(counts.clusters), static_cast<long long>(seeds),
              static_cast<long long>(counts.failed), rate, static_cast<double>(seeds - counts.clusters) / rate);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int64_t seeds = 1000, jobs = 1;
  uint64_t first = 1;
  bool trace = false;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (std::strcmp(argv[i], "--trace") == 0) {
      trace = true;
    } else if (has_value && std::strcmp(argv[i], "--seeds") == 0) {
      seeds = std::atoll(argv[++i]);
    } else if (has_value && std::strcmp(argv[i], "--seed") == 0) {
      first = std::strtoull(argv[++i], nullptr, 10);
    } else if (has_value && std::strcmp(argv[i], "--jobs") == 0) {
      jobs = std::clamp<int64_t>(std::atoll(argv[++i]), 1, kMostJobs);
    } else {
      std::fprintf(stderr, "usage: simulate [--seeds N] [--seed FIRST] [--jobs J] [--trace]\n");
      return 2;
    }
  }
  void* const shared = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  Counts& counts = *new (shared) Counts();
  setenv("MILLRACE_MIN_LOG_LEVEL", "2", /*overwrite=*/0);  // what servers tell people
  const double start = Seconds();
  std::map<pid_t, int64_t> job_of;
  for (int64_t job = 0; job < jobs; ++job) {
    const pid_t pid = fork();
    if (pid < 0) return 2;
    if (pid > 0) {
      job_of[pid] = job;
      continue;
    }
    // One thread of a world runs at a time: hand over without waking another processor.
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<size_t>(job) % std::max(1u, std::thread::hardware_concurrency()), &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
    for (int64_t i = job; i < seeds; i += jobs) {
      const uint64_t seed = first + static_cast<uint64_t>(i);
      counts.seed_of_job[job] = seed;
      Run(seed, counts, trace);
    }
    std::fflush(nullptr);
    _exit(0);
  }
  bool all_ended = true;
  for (int64_t running = jobs; running > 0;) {
    int status = 0;
    double told = Seconds();
    pid_t ended = 0;
    while ((ended = waitpid(-1, &status, WNOHANG)) == 0) {
      usleep(200'000);
      if (Seconds() - told < 10) continue;
      Report(counts, seeds, start);
      told = Seconds();
    }
    if (ended < 0) break;
    --running;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    all_ended = false;
    std::printf(
        "the process of seed %llu died\n", static_cast<unsigned long long>(counts.seed_of_job[job_of[ended]].load()));
  }
  Report(counts, seeds, start);
  std::printf(
      "%lld faults, %lld crashes, %lld recoveries, %lld checkpoints saved and %lld restored, %lld errors met, %lld "
      "partial runs, queues and sums, %lld calls\n",
      static_cast<long long>(counts.faults), static_cast<long long>(counts.crashes),
      static_cast<long long>(counts.recoveries), static_cast<long long>(counts.saves),
      static_cast<long long>(counts.restores), static_cast<long long>(counts.errors),
      static_cast<long long>(counts.others), static_cast<long long>(counts.calls));
  return counts.failed > 0 || !all_ended ? 1 : 0;
}
