// SPDX-License-Identifier: Apache-2.0
// Coordinator: turns what a client asks for into partitions, registers them with workers once, and runs steps.
//
// Thread-safe; steps may run concurrently. The full run signature is the key of the cache. On a hit a step costs one
// call per worker that takes part.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/shared_graph.h"
#include "passes/prune.h"
#include "runtime/interrupt.h"
#include "service/deadline.h"
#include "service/partial_run.h"

namespace millrace {

struct CoordinatorOptions {
  PassEnvironment passes;  // devices and callbacks of the workers
  ExpandOptions calls;
  int max_threads = 0;  // per step; 0: the pool's width
  absl::Duration default_timeout = absl::InfiniteDuration();
  bool deterministic = false;
  uint64_t order_seed = 0;
  size_t max_cached_signatures = 4096;
};

struct StepOptions {
  absl::Duration timeout = absl::InfiniteDuration();
  StepTrace* trace = nullptr;
};

// Looks a signature up without building one.
struct RunSignatureView {
  absl::Span<const Output> feeds;
  absl::Span<const Output> fetches;
  absl::Span<Node* const> targets;
};
struct RunSignatureHash {
  using is_transparent = void;
  size_t operator()(const RunSignatureView& v) const { return absl::HashOf(v.feeds, v.fetches, v.targets); }
  size_t operator()(const RunSignature& s) const { return (*this)(RunSignatureView{s.feeds, s.fetches, s.targets}); }
};
struct RunSignatureEqual {
  using is_transparent = void;
  static RunSignatureView View(const RunSignatureView& v) { return v; }
  static RunSignatureView View(const RunSignature& s) { return {s.feeds, s.fetches, s.targets}; }
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    const RunSignatureView x = View(a), y = View(b);
    return x.feeds == y.feeds && x.fetches == y.fetches && x.targets == y.targets;
  }
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
  Status ReleasePartialRun(const std::string& handle);

  // Before the first step.
  void SetInterruptCheck(const InterruptCheck& check) { interrupt_check_ = check; }

  // Cancels what runs, waits for it (at most `patience`), refuses what comes later. A step of this thread, which an
  // interrupt check left to come here, is not waited for.
  Status Close(absl::Duration patience);

 private:
  struct StepInFlight;
  class PartsInFlight;

  StatusOr<std::shared_ptr<const Compiled>> Compile(const RunSignature& signature, PruneOptions prune);
  // Asked while a signature is compiled: an error ends the work.
  std::function<Status()> KeepGoing(absl::Duration timeout);
  void Deregister(const Compiled& compiled) const;
  // Counts `step` as in flight and gives what it runs; the caller must Leave. Cancelled when the session is closed.
  StatusOr<std::shared_ptr<const Compiled>> Enter(const RunSignatureView& signature, StepInFlight* step,
                                                  absl::Duration timeout);
  StatusOr<std::shared_ptr<const Compiled>> CompileAndKeep(const RunSignatureView& signature, absl::Duration timeout);
  std::shared_ptr<const Compiled> Find(const RunSignatureView& signature) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status RunStep(const StepOptions& options, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
                 absl::Span<const Output> fetches, absl::Span<Node* const> targets, std::vector<Tensor>* outputs);
  Status RunParts(const Compiled& compiled, StepInFlight& step, absl::Span<const Tensor> feed_values,
                  std::vector<Tensor>* outputs);
  void Leave(StepInFlight* step);
  bool Tick();

  const RefPtr<SharedGraph> graph_;
  const std::vector<Worker*> workers_;
  absl::flat_hash_map<std::string, size_t> worker_of_device_;  // constant
  const CoordinatorOptions options_;
  InterruptCheck interrupt_check_;
  std::atomic<int64_t> next_step_{1};

  absl::Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  StepInFlight* running_ ABSL_GUARDED_BY(mu_) = nullptr;  // the first of those in flight
  absl::flat_hash_map<RunSignature, std::shared_ptr<const Compiled>, RunSignatureHash, RunSignatureEqual> cache_
      ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const Compiled> last_ ABSL_GUARDED_BY(mu_);  // of cache_; what the step before this one ran
  absl::flat_hash_map<std::string, std::shared_ptr<PartialStep>> partial_ ABSL_GUARDED_BY(mu_);
  // The clock of the interrupt checks: it runs from a step on until a second has passed without one.
  bool ticking_ ABSL_GUARDED_BY(mu_) = false;
  int64_t ticked_step_ ABSL_GUARDED_BY(mu_) = 0;
  int idle_ticks_ ABSL_GUARDED_BY(mu_) = 0;
  std::unique_ptr<Ticks> ticks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
