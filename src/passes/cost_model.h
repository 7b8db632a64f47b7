// SPDX-License-Identifier: Apache-2.0
// The cost model of placement and scheduling (white paper 3.2.1): what a node takes on a device, how large a value is,
// and what it takes to move it. Measured costs of earlier steps go before the estimates of kernels.
#pragma once

#include "graph/graph.h"
#include "passes/pipeline.h"

namespace millrace {

class CostModel {
 public:
  explicit CostModel(const PassEnvironment& env) : env_(env) {}

  static constexpr size_t kClient = 0;  // the client's device, where nothing is placed yet
  // Devices are positions in PassEnvironment::devices.
  double Nanos(const Node& n, size_t device) const;
  OpCost Estimate(const Node& n, size_t device) const;
  // The kernel reads more of its inputs than their shapes.
  bool LooksAtValues(const Node& n) const;
  double Bytes(Output o) const;
  double TransferNanos(double bytes, size_t from, size_t to) const;

  // Its output 0 is the memory of its input 0.
  bool SharesItsInput(const Node& n) const;

 private:
  struct Speed {
    double operations_per_nano, bytes_per_nano, start_nanos;
  };
  Speed SpeedOf(size_t device) const;
  CostFunction CostOf(const Node& n, size_t device) const {
    return env_.cost_of ? env_.cost_of(n, env_.devices[device].type) : &ElementCost;
  }
  bool HasOwnMemory(size_t device) const { return device < env_.own_memory.size() && env_.own_memory[device]; }

  const PassEnvironment& env_;
};

}  // namespace millrace
