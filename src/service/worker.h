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
#include "kernel/rendezvous.h"
#include "passes/pipeline.h"
#include "runtime/step_thread.h"
#include "runtime/trace.h"
#include "service/device_info.h"

namespace millrace {

// What a worker must know of a step.
struct StepSpec {
  int64_t id = 0;
  int max_threads = 0;         // within a kernel; 0: the pool's width
  int inter_op_threads = 0;    // that run kernels at once on a worker; 0: the pool's width
  StepTrace* trace = nullptr;  // lives until the step is closed
  bool deterministic = false;  // one thread, ready nodes in a seeded order
  uint64_t order_seed = 0;
  StepThread* caller = nullptr;  // for workers in the caller's process; lives until the step is closed

  bool single_thread() const { return deterministic || inter_op_threads == 1; }
};

// One partition of one step.
struct PartitionRun {
  int64_t partition = 0;          // as Register returned it
  absl::Span<const Tensor> args;  // in the order of the partition's _Arg indices
  std::vector<Tensor>* retvals = nullptr;
};

// A step on one worker, open from construction to destruction; every partition must be done before that.
class WorkerStep {
 public:
  virtual ~WorkerStep() = default;
  // `done` runs exactly once, on any thread, whatever goes wrong; it throws nothing, nor does this.
  virtual void RunAsync(const PartitionRun& run, absl::AnyInvocable<void(Status) &&> done) = 0;
  // Stops it from outside: kernels between nodes, waiting receives at once.
  virtual void Stop(const Status& why) = 0;
  // Where the client of a partial run leaves feeds and takes fetches.
  virtual Rendezvous& rendezvous() = 0;
};

// A partition that waits for nobody. Runs without a look-up, also after the worker has dropped it.
class InlinePartition {
 public:
  virtual ~InlinePartition() = default;
  // `inter_op_threads`: that run kernels at once; 0: the pool's width.
  virtual Status Run(StepContext& step, int inter_op_threads, absl::Span<const Tensor> args,
                     std::vector<Tensor>* retvals) = 0;
};

class Worker {
 public:
  virtual ~Worker() = default;
  virtual std::vector<DeviceInfo> devices() const = 0;
  // Compiles; errors name the node.
  virtual StatusOr<int64_t> Register(Partition partition) = 0;
  virtual void Deregister(int64_t partition) = 0;
  // Null when the partition may have to wait, or is elsewhere.
  virtual std::shared_ptr<InlinePartition> FindInline(int64_t partition) const = 0;
  // A step must be open on all workers that take part before any partition of it runs.
  virtual StatusOr<std::unique_ptr<WorkerStep>> OpenStep(const StepSpec& spec) = 0;
};

}  // namespace millrace
