// SPDX-License-Identifier: Apache-2.0
// Worker: owns devices and the state on them, compiles partitions to plans, and runs them when told.
//
// The coordinator speaks to every worker through this interface, whether it lives in this process or elsewhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"
#include "kernel/kernel.h"
#include "passes/pipeline.h"
#include "runtime/trace.h"

namespace millrace {

// One partition of one step.
struct PartitionRun {
  int64_t partition = 0;          // as Register returned it
  absl::Span<const Tensor> args;  // in the order of the partition's _Arg indices
  std::vector<Tensor>* retvals = nullptr;
  StepContext* step = nullptr;    // lives until done
  StepTrace* trace = nullptr;
  bool deterministic = false;     // one thread, ready nodes in a seeded order
  uint64_t order_seed = 0;
};

// A partition that waits for nobody. Runs without a look-up, also after the worker has dropped it.
class InlinePartition {
 public:
  virtual ~InlinePartition() = default;
  virtual Status Run(const PartitionRun& run) const = 0;
};

class Worker {
 public:
  virtual ~Worker() = default;
  virtual std::vector<Device*> devices() const = 0;
  // Compiles; errors name the node.
  virtual StatusOr<int64_t> Register(Partition partition) = 0;
  virtual void Deregister(int64_t partition) = 0;
  // Null when the partition may have to wait.
  virtual std::shared_ptr<const InlinePartition> FindInline(int64_t partition) const = 0;
  // `done` runs exactly once, on any thread.
  virtual void RunAsync(const PartitionRun& run, absl::AnyInvocable<void(Status) &&> done) = 0;
};

}  // namespace millrace
