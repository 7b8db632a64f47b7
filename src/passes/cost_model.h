// SPDX-License-Identifier: Apache-2.0
// The cost model of placement and scheduling (white paper 3.2.1): what a node takes on a device, how large a value is,
// and what it takes to move it. Measured costs of earlier steps go before estimates from op and shapes.
#pragma once

#include "graph/graph.h"
#include "passes/pipeline.h"

namespace millrace {

class CostModel {
 public:
  explicit CostModel(const PassEnvironment& env) : env_(env) {}

  // Devices are positions in PassEnvironment::devices.
  double Nanos(const Node& n, size_t device) const;
  double Bytes(Output o) const;
  double TransferNanos(double bytes, size_t from, size_t to) const;

  // The value is given on without a copy of it.
  static bool SharesItsInput(const Node& n);

 private:
  struct Speed {
    double operations_per_nano, bytes_per_nano, start_nanos;
  };
  Speed SpeedOf(size_t device) const;
  bool HasOwnMemory(size_t device) const { return device < env_.own_memory.size() && env_.own_memory[device]; }

  const PassEnvironment& env_;
};

}  // namespace millrace
