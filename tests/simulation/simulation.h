// SPDX-License-Identifier: Apache-2.0
// One cluster, one training and its faults, from one seed: first everything goes wrong that can, then nothing more, and
// the training must finish. What was seen on the way must be what may be seen (training.h), what is left must be
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct SimulationOutcome {
  std::vector<std::string> failures;
  uint64_t history = 0;  // of all that happened: the same for the same seed
  double virtual_seconds = 0;
  int64_t num_calls = 0, num_crashes = 0, num_faults = 0, num_recoveries = 0, num_restores = 0, num_saves = 0;
  int64_t num_errors = 0;  // that clients met
  int64_t num_others = 0;  // partial runs, takes from a queue, sums of groups
  bool is_synchronous = false;
  std::vector<std::string> trace;  // if it was asked for
};

struct SimulationOptions {
  bool write_trace = false;
  // A planted bug, which must be found: fsync does nothing, and nobody knows.
  bool forgets_fsync = false;
};

// The same for the same seed, whatever has run before.
SimulationOutcome RunSimulation(uint64_t seed, const SimulationOptions& options = {});

}  // namespace millrace
