// SPDX-License-Identifier: Apache-2.0
// A step on one worker: what its partitions share, and how they run.
#pragma once

#include <memory>
#include <vector>

#include "kernel/device_memory.h"
#include "kernel/late_work.h"
#include "runtime/executor.h"
#include "runtime/plan_width.h"
#include "runtime/step_watch.h"
#include "service/step_rendezvous.h"

namespace millrace {

class WorkerSession;

// A partition that is registered. What a step has found lives as long as the step.
struct RegisteredPartition {
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<PlanWidth> width;  // of a plan that is one line, on a device that works on host memory; else null
  MemorySpace* space = nullptr;      // that of the plan's device; null: it has none of its own
  bool uses_functions = false;       // some of its kernels may call them
  std::shared_ptr<const std::map<int64_t, EdgePeer>> peers;  // of edges from other workers, and to them
};

// Made when the first message names it, which need not be RunStep. Thread-safe.
class WorkerStep {
 public:
  WorkerStep(std::shared_ptr<WorkerSession> session, int64_t id);
  ~WorkerStep();

  // Once. The step lives until it has ended, whoever lets go of it.
  static void Run(std::shared_ptr<WorkerStep> self, const CallOptions& call, RunStepRequest request,
                  Reply<RunStepResponse> reply);
  // Stops it from outside: kernels between nodes, waiting receives at once. The first reason counts.
  void Abort(const Status& why) { End(why, /*is_consequence=*/true); }
  // What it does, and waits for.
  void Describe(std::vector<std::string>* lines);
  // Whether nothing has happened in it since a call `patience` nanoseconds ago; it runs still.
  bool HasStalled(int64_t now, int64_t patience);
  // For what other workers push and what has not come, though it was missed by an earlier call already.
  void AskForMissing();
  // What devices of this worker send, for others: other workers, the client of a partial run.
  Rendezvous& sent_here() { return *here_; }
  // Another worker sends a value unasked. ResourceExhausted when the session has too many of these.
  Status Push(const EdgeKey& key, ReceivedTensor tensor);

 private:
  struct Part {
    // The one that runs, whose frame it is.
    const Plan& plan() const { return turn.wide() != nullptr ? *turn.wide() : *partition.plan; }

    RegisteredPartition partition;
    PlanWidth::Turn turn;
    HeldFrame frame;
    bool starts_first = false;  // on the thread that starts the others: it is short, or there is one thread
    Status result;              // while the device still works
  };

  class ForKernels;
  // A failure of its own.
  void Fail(const Status& why) { End(why, /*is_consequence=*/false); }
  void End(const Status& why, bool is_consequence);
  bool Claim();  // false: it has run
  Status Prepare(const CallOptions& call, RunStepRequest& request);
  void StartParts();
  void StartPart(size_t p);
  void EndPart(size_t p, Status s);
  void FinishPart(size_t p, Status s);
  Status TakeResults(size_t p);
  void Finish();
  const EdgePeer* PeerOf(int64_t edge) const;
  void ForgetPushed(int64_t values, int64_t bytes);

  const std::shared_ptr<WorkerSession> session_;
  const int64_t id_;
  const RefPtr<Rendezvous> here_;
  const RefPtr<StepRendezvous> remote_;   // the same, with what comes from other workers; null: there are none
  Rendezvous& rendezvous_;                // remote_, or here_
  const RefPtr<Rendezvous> for_kernels_;  // the same; what they abort it with stops the step
  CancellationManager cancellation_;
  ResourceManager resources_;
  const RefPtr<LateWork> late_;  // null: the worker's devices have no memory of their own
  // Set by Run, constant while partitions run.
  StepContext context_;
  ExecutorOptions options_;
  StepTrace trace_;
  StepWatch watch_;
  const int64_t since_nanos_;
  bool is_alone_ = false;
  std::vector<Part> parts_;
  Reply<RunStepResponse> reply_;
  std::shared_ptr<WorkerStep> self_;

  absl::Mutex mu_;
  int64_t pushed_values_ ABSL_GUARDED_BY(mu_) = 0, pushed_bytes_
                                                   ABSL_GUARDED_BY(mu_) = 0;  // of session_'s PushedValues
  bool has_run_ ABSL_GUARDED_BY(mu_) = false, is_over_ ABSL_GUARDED_BY(mu_) = false;
  int64_t seen_progress_ ABSL_GUARDED_BY(mu_) = -1, moved_nanos_ ABSL_GUARDED_BY(mu_) = 0;
  Status cause_ ABSL_GUARDED_BY(mu_);                 // the first reason to stop, of whatever fails from then on
  bool is_consequence_ ABSL_GUARDED_BY(mu_) = false;  // cause_ came from outside
  size_t left_ ABSL_GUARDED_BY(mu_) = 0;
  RunStepResponse response_;  // each part its own retvals; the rest guarded by mu_
};

}  // namespace millrace
