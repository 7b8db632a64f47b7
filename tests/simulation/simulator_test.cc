// SPDX-License-Identifier: Apache-2.0
// As many simulated clusters as half a minute has room for, at most MILLRACE_SIMULATED_CLUSTERS (3000), beginning with
// the seed MILLRACE_SIMULATION_SEED (1). The program `simulate` runs more of them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/stopwatch.h"
#include "simulation/simulation.h"

namespace millrace {
namespace {

constexpr int64_t kMostNanos = 25'000'000'000;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string TraceOf(uint64_t seed) {
  constexpr size_t kLines = 200;
  const std::vector<std::string> trace = RunSimulation(seed, {.write_trace = true}).trace;
  const size_t skipped = trace.size() > kLines ? trace.size() - kLines : 0;
  return absl::StrJoin(trace.begin() + static_cast<std::ptrdiff_t>(skipped), trace.end(), "\n");
}

TEST(SimulatorTest, EveryTrainingEndsAsIfNothingHadBeen) {
  const uint64_t first = FromEnvironment("MILLRACE_SIMULATION_SEED", 1);
  const uint64_t most = FromEnvironment("MILLRACE_SIMULATED_CLUSTERS", 3000);
  const int64_t start = RealNanos();
  int64_t crashes = 0, restores = 0, errors = 0;
  uint64_t n = 0;
  for (; n < most && RealNanos() - start < kMostNanos; ++n) {
    const uint64_t seed = first + n;
    const SimulationOutcome outcome = RunSimulation(seed);
    ASSERT_TRUE(outcome.failures.empty())
        << "seed " << seed << ": " << absl::StrJoin(outcome.failures, "; ") << "\n"
        << TraceOf(seed);
    crashes += outcome.num_crashes;
    restores += outcome.num_restores;
    errors += outcome.num_errors;
    if (seed % 20 == 0) {
      ASSERT_EQ(RunSimulation(seed).history, outcome.history) << "seed " << seed << " is not the same again";
    }
  }
  RecordProperty("clusters", static_cast<int>(n));
  std::printf("%d clusters, %d crashes, %d restored checkpoints, %d errors met\n", static_cast<int>(n),
              static_cast<int>(crashes), static_cast<int>(restores), static_cast<int>(errors));
  if (n < 20) return;  // too few to say anything
  EXPECT_GT(crashes, 0);
  EXPECT_GT(restores, 0);
  EXPECT_GT(errors, 0);
}

// A simulator that finds no bug that is there is worth nothing.
TEST(SimulatorTest, SeedsThatFoundAFaultAreClean) {
  for (const uint64_t seed : {229, 24442, 55539, 67175, 83724}) {
    EXPECT_TRUE(RunSimulation(seed).failures.empty()) << TraceOf(seed);
  }
}

TEST(SimulatorTest, AForgottenFsyncIsFound) {
  bool is_found = false;
  for (uint64_t seed = 1; seed <= 1000 && !is_found; ++seed) {
    const SimulationOutcome outcome = RunSimulation(seed, {.forgets_fsync = true});
    for (const std::string& f : outcome.failures)
      is_found |= absl::StrContains(f, "saved") || absl::StrContains(f, "no fault explains");
  }
  EXPECT_TRUE(is_found);
}

}  // namespace
}  // namespace millrace
