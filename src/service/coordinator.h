// SPDX-License-Identifier: Apache-2.0
// Coordinator: turns what a client asks for into partitions, registers them with workers once, and runs steps.
//
// Thread-safe; steps may run concurrently. The full run signature is the key of the cache. On a hit a step costs one
// call per worker that takes part. Partial runs are in coordinator_partial.cc.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/thread_pool.h"
#include "graph/shared_graph.h"
#include "passes/compile.h"
#include "runtime/interrupt.h"
#include "service/deadline.h"
#include "service/partial_run.h"
#include "service/signature_cache.h"

namespace millrace {

struct CoordinatorOptions {
  PassEnvironment passes;  // devices and callbacks of the workers
  ExpandOptions calls;
  int max_threads = 0;         // within a kernel; 0: the pool's width
  int inter_op_threads = 0;    // of partial runs, see StepOptions
  ThreadPool* pool = nullptr;  // runs partitions beside the caller; outlives the coordinator; null: the process's
  absl::Duration default_timeout = absl::InfiniteDuration();
  bool deterministic = false;
  uint64_t order_seed = 0;
  int64_t max_cached_nodes = 1'000'000;  // of all plans that are kept for the next step with their signature
  size_t max_partial_runs = 1000;        // at once
};

struct StepOptions {
  absl::Duration timeout = absl::InfiniteDuration();
  StepTrace* trace = nullptr;
  int inter_op_threads = 0;  // that run kernels at once on a worker; 0: the pool's width
};

class Coordinator {
 public:
  // The workers own the devices of options.passes, one or more each; the first is the client's own. They must outlive
  // the coordinator.
  Coordinator(RefPtr<SharedGraph> graph, std::vector<Worker*> workers, CoordinatorOptions options);
  ~Coordinator();

  Status Run(const StepOptions& options, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
             absl::Span<const Output> fetches, absl::Span<Node* const> targets, std::vector<Tensor>* outputs);

  StatusOr<std::string> PartialRunSetup(RunSignature signature);
  Status PartialRun(const std::string& handle, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
                    absl::Span<const Output> fetches, std::vector<Tensor>* outputs);
  // Stops it and waits for it. OK for one that is over.
  Status ReleasePartialRun(const std::string& handle);

  // What compilation makes of a signature: stages, partitions, places. Compiles it, and keeps nothing.
  StatusOr<std::string> Explain(const RunSignature& signature);

  // Before the first step.
  void SetInterruptCheck(const InterruptCheck& check) { interrupt_check_ = check; }

  // Cancels what runs, partial runs and compilation included, waits for it (at most `patience`), refuses what comes
  // later. Runs no callback under a lock. A step of this thread, which an interrupt check left to come here, is not
  // waited for.
  Status Close(absl::Duration patience);

 private:
  struct CallInFlight;
  struct StepInFlight;
  struct PartialCall;
  class PartsInFlight;
  struct Compilation;

  StatusOr<CompiledPtr> Compile(const RunSignature& signature, PruneOptions prune);
  // Lends the graph, which is locked meanwhile.
  Status LendGraphTo(absl::FunctionRef<Status(const Graph&)> use, const std::function<Status()>& keep_going);
  // Asked while a signature is compiled: an error ends the work.
  std::function<Status()> KeepGoing(absl::Duration timeout);
  // Counts `call` as in flight until it leaves, so that Close stops it and waits for it. Cancelled when it is closed.
  Status Enter(CallInFlight* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Leave(CallInFlight* call);  // also when it has not entered
  void LeavePartial(PartialCall* call);
  // From the cache, or compiled now: by one thread, however many ask for the same.
  StatusOr<CompiledPtr> FindOrCompile(const RunSignatureView& signature, absl::Duration timeout);
  StatusOr<CompiledPtr> CompileAndKeep(const RunSignatureView& signature, std::shared_ptr<Compilation> mine,
                                       PruneOptions prune);
  StepSpec SpecOf(int64_t id, int inter_op_threads, StepTrace* trace) const;
  Status RunStep(const StepOptions& options, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
                 absl::Span<const Output> fetches, absl::Span<Node* const> targets, std::vector<Tensor>* outputs);
  Status RunParts(const Compiled& compiled, StepInFlight& step, int inter_op_threads,
                  absl::Span<const Tensor> feed_values, std::vector<Tensor>* outputs);
  StatusOr<std::string> StartPartialRun(const RunSignature& signature);
  Status GoOnWithPartialRun(const std::string& handle, absl::Span<const Output> feeds,
                            absl::Span<const Tensor> feed_values, absl::Span<const Output> fetches,
                            std::vector<Tensor>* outputs);
  bool Tick();

  const RefPtr<SharedGraph> graph_;
  const std::vector<Worker*> workers_;
  absl::flat_hash_map<std::string, size_t> worker_of_device_;  // constant
  const CoordinatorOptions options_;
  const DeviceInfo client_;  // the device that stands for the client in partial runs
  InterruptCheck interrupt_check_;
  std::atomic<int64_t> next_step_{1};

  absl::Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  CallInFlight* running_ ABSL_GUARDED_BY(mu_) = nullptr;  // the first of those in flight
  SignatureCache cache_ ABSL_GUARDED_BY(mu_);
  BySignature<std::shared_ptr<Compilation>> compiling_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::shared_ptr<PartialStep>> partial_ ABSL_GUARDED_BY(mu_);
  size_t partial_starting_ ABSL_GUARDED_BY(mu_) = 0;
  // Those that did not end in time when the session was closed.
  std::vector<std::shared_ptr<PartialStep>> late_partial_ ABSL_GUARDED_BY(mu_);
  // The clock of the interrupt checks: it runs from a step on until a second has passed without one.
  bool ticking_ ABSL_GUARDED_BY(mu_) = false;
  int64_t ticked_step_ ABSL_GUARDED_BY(mu_) = 0;
  int idle_ticks_ ABSL_GUARDED_BY(mu_) = 0;
  std::unique_ptr<Ticks> ticks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
