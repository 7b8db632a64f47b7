// SPDX-License-Identifier: Apache-2.0
// Coordinator: the master of a session. Turns what a client asks for into partitions, registers them with workers once,
// and runs steps.
//
// Thread-safe; steps may run concurrently. The full run signature is the key of the cache. On a hit a step costs one
// message per worker that takes part, or none if it is a single partition on a worker of this process. A worker that
// says that it does not know the session (it was restarted) gets it anew before the next call that needs it, and all is
// compiled again: the call that met it fails with Aborted, since the state of that worker is gone.
//
// Compilation is in coordinator_compile.cc, partial runs are in coordinator_partial.cc.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/pool_env.h"
#include "graph/shared_graph.h"
#include "passes/compile.h"
#include "runtime/interrupt.h"
#include "service/edge_numbers.h"
#include "service/partial_run.h"
#include "service/signature_cache.h"

namespace millrace {

struct CoordinatorOptions {
  // Devices are what the workers say that they have.
  PassEnvironment passes;
  ExpandOptions calls;
  int max_threads = 0;       // within a kernel; 0: the pool's width
  int inter_op_threads = 0;  // of partial runs, see StepOptions
  Env* env = nullptr;        // of deadlines and waits; outlives the coordinator; null: the process's
  absl::Duration default_timeout = absl::InfiniteDuration();  // of steps that have none of their own
  bool deterministic = false;
  uint64_t order_seed = 0;
  int64_t max_cached_nodes = 1'000'000;  // of all plans that are kept for the next step with their signature
  size_t max_partial_runs = 1000;        // at once
  // Workers of other processes end the session when no heartbeat of its master has come for so long; 0: they do not.
  absl::Duration lease = absl::ZeroDuration();
  bool isolates_state = false;   // of the workers: variables and other resources are the session's
  bool has_own_workers = false;  // nobody else's sessions are on them
};

struct StepOptions {
  absl::Duration timeout = absl::InfiniteDuration();
  StepTrace* trace = nullptr;  // lives until the step is over
  int inter_op_threads = 0;    // that run kernels at once on a worker; 0: the pool's width
  // Of Run alone: waits until the steps that change variables have ended, while those that come wait for this one. So
  // all that it reads is of one moment. FailedPrecondition where others may change the variables too: sessions that
  // share the workers, partial runs. DeadlineExceeded when no such moment comes within a minute.
  bool between_steps = false;
  // Of Run alone. May be null, and live until it returns: stops the step; replaces the session's.
  CancellationManager* cancellation = nullptr;
  const InterruptCheck* interrupt = nullptr;
};

class Coordinator {
 public:
  // `session` is the number under which the workers, which outlive the coordinator, know the session: no other master
  // has the same. The first worker's first device is the client's own.
  Coordinator(RefPtr<SharedGraph> graph, std::vector<WorkerInterface*> workers, uint64_t session,
              CoordinatorOptions options);
  // Closes it. REQUIRES: !IsInside(). Steps have ended then; answers that nobody waits for may come later, to what they
  // own.
  ~Coordinator();

  // Makes the session known to all workers that do not know it. Steps do that too.
  Status Connect();
  // As of WorkerGroup.
  std::vector<std::pair<WorkerInterface*, SessionRef>> Sessions() const { return workers_.Sessions(); }
  // Adds what steps that go by messages wait for.
  void DescribeSteps(std::vector<std::string>* lines) const;
  // Of all workers; none before the first Connect.
  std::vector<DeviceInfo> ListDevices() const;

  // The caller's thread helps while it waits.
  Status Run(const StepOptions& options, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
             absl::Span<const Output> fetches, absl::Span<Node* const> targets, std::vector<Tensor>* outputs);
  // The same without a thread that waits: always by messages. `done` gets the fetches, on any thread, perhaps before
  // the call returns. It runs last, under no lock: it may call the coordinator, close or destroy it. (Called by Close,
  // it may not destroy what is being closed.) Unimplemented: with a deadline.
  void RunAsync(const StepOptions& options, RunSignature signature, std::vector<Tensor> feed_values,
                Reply<std::vector<Tensor>> done);

  StatusOr<std::string> PartialRunSetup(RunSignature signature);
  // `cancellation` may be null, and lives until this returns: ends the partial run.
  Status PartialRun(const std::string& handle, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
                    absl::Span<const Output> fetches, std::vector<Tensor>* outputs,
                    CancellationManager* cancellation = nullptr);
  // Stops it and waits for it, DeadlineExceeded when that takes too long. OK for one that is over.
  Status ReleasePartialRun(const std::string& handle);

  // What compilation makes of a signature: stages, partitions, places. Compiles it for this, and has its workers
  // compile it as for a step, whose plan is kept (what they cut is of that one).
  StatusOr<Explanation> Explain(const RunSignature& signature);
  // The graphs that run on the devices for a signature, which is compiled for this.
  StatusOr<std::vector<wire::GraphDef>> PartitionGraphs(const RunSignature& signature);

  StatusOr<RandomPositions> GetRandomPositions();
  Status SetRandomPositions(const RandomPositions& positions);

  // Steps that begin from now on are compiled anew.
  void ForgetCompiled();

  // Before the first step.
  void SetInterruptCheck(const InterruptCheck& check) { interrupt_check_ = check; }

  // Cancels what runs, partial runs and compilation included, waits for it (at most `patience`), refuses what comes
  // later. Runs no callback under a lock. Where IsInside, what is further up on this stack is not waited for; if that
  // is a part of a step, of which others may wait for this one, nothing is.
  Status Close(absl::Duration patience);
  // Whether a call, compilation or part of a step is further up on this stack, which comes back to the coordinator:
  // what a step called, or an interrupt check.
  bool IsInside() const;

 private:
  struct CallInFlight;
  struct StepInFlight;
  class MessageCall;
  class AsyncRun;
  struct PartialCall;
  struct Compilation;
  struct Registration;
  // Takes a share of what was compiled, while the coordinator still waits for the compilation: who takes none may be
  // over, and what nobody has must be gone before the workers are. Returns what follows, which is called when the
  // compilation has left the coordinator; null: nothing. `is_own`: of the compilation that was begun for this; the
  // failure of another's is final unless MayTryAgain says so.
  using WhatFollows = absl::AnyInvocable<void() &&>;
  using CompiledReply = absl::AnyInvocable<WhatFollows(const StatusOr<CompiledPtr>&, bool is_own) &&>;

  // ---- Compilation ----

  // Lends the graph, which is locked meanwhile.
  StatusOr<std::vector<Partition>> CompileAside(const RunSignature& signature, CompileReport* report);
  // Registers it with the workers, which cut plans, and tells how.
  Status AddCuts(const RunSignature& signature, CompileReport* report);
  Status LendGraphTo(absl::FunctionRef<Status(const Graph&)> use, const std::function<Status()>& keep_going);
  // Asked while a signature is compiled, by any thread, under no lock: an error ends the work.
  std::function<Status()> KeepGoing(absl::Duration timeout);
  PassEnvironment EnvironmentOf(const WorkerView& view) const;
  // From the cache; else what compiles it, which will call `done`: once, however many ask for the same. When is_new,
  // the caller must call Compile. An error once the session is closed: nobody would end what begins then.
  struct Lookup {
    CompiledPtr found;
    std::shared_ptr<Compilation> compilation;
    bool is_new = false;
  };
  StatusOr<Lookup> LookUp(const RunSignatureView& signature, CompiledReply done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static bool MayTryAgain(const Status& s);
  // `caller` gives up what was begun for this call; null: nobody does.
  StatusOr<CompiledPtr> AwaitCompiled(const RunSignatureView& signature, const std::function<Status()>& keep_going,
                                      CancellationManager* caller = nullptr);
  void Compile(const std::shared_ptr<Compilation>& mine, const std::function<Status()>& keep_going);
  Status CompileAndRegister(const std::shared_ptr<Compilation>& mine, const WorkerViewPtr& view,
                            const std::function<Status()>& keep_going);
  Status Register(const std::shared_ptr<Compilation>& mine, std::shared_ptr<Compiled> compiled,
                  std::vector<PartitionToRegister> partitions);
  void Registered(Registration& registration, size_t worker, StatusOr<RegisterPartitionsResponse> response);
  void EndCompilation(const std::shared_ptr<Compilation>& mine, StatusOr<CompiledPtr> result);
  void CancelCompilations(const Status& why);
  size_t NumCompilingHere() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);  // further up on this stack
  // `worker` has refused a message: if it does not know the session any more, nothing that was compiled is of use.
  void NoteRefusal(const WorkerView::Of& worker, const Status& refusal);

  // ---- Calls in flight ----

  // Counts `call` as in flight until it leaves, so that Close stops it and waits for it. Cancelled when it is closed.
  Status Enter(CallInFlight* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Leave(CallInFlight* call);                                            // also when it has not entered
  void AwaitStopped(CallInFlight* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);  // until nobody stops it
  // Returns what holds the call, to be let go outside of the lock.
  std::shared_ptr<CallInFlight> Unlink(CallInFlight* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LeavePartial(PartialCall* call);
  Status StopAll(absl::Duration patience);  // see Close
  // Waits for it with `keep_going`, which is asked under no lock.
  Status TakeTurn(CallInFlight* call, bool changes_variables, bool between_steps,
                  absl::FunctionRef<Status()> keep_going) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status MayBeAlone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int NumChanging() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Tick();
  StatusOr<WorkerViewPtr> ConnectWithin(MessageCall& call);
  static Status PastDeadline(absl::Duration timeout);
  Env& env() const { return options_.env ? *options_.env : EnvOf(ProcessThreadPool()); }

  // ---- Steps ----

  Status RunStep(const StepOptions& options, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
                 absl::Span<const Output> fetches, absl::Span<Node* const> targets, std::vector<Tensor>* outputs);
  Status RunJointly(const Compiled& compiled, StepInFlight& step, const StepOptions& options,
                    absl::Span<const Tensor> feed_values, std::vector<Tensor>* outputs);
  // The messages of a step, which begins with this and ends with EndStep or EndId.
  std::vector<JointStep::Part> BeginStep(const Compiled& compiled, const StepOptions& options,
                                         absl::Span<const Tensor> feed_values, int64_t* id);
  StepHorizon EndId(int64_t id);
  class OpenId;
  Status EndStep(const Compiled& compiled, JointStep& step, int64_t id, const StepOptions& options, Status s,
                 std::vector<Tensor>* outputs);

  StatusOr<std::string> StartPartialRun(const RunSignature& signature);
  Status GoOnWithPartialRun(const std::string& handle, absl::Span<const Output> feeds,
                            absl::Span<const Tensor> feed_values, absl::Span<const Output> fetches,
                            std::vector<Tensor>* outputs, CancellationManager* cancellation);

  const RefPtr<SharedGraph> graph_;
  const uint64_t session_;
  const CoordinatorOptions options_;
  WorkerGroup workers_;
  InterruptCheck interrupt_check_;
  std::atomic<int64_t> next_inline_step_{1};

  mutable absl::Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  CallInFlight* running_ ABSL_GUARDED_BY(mu_) = nullptr;  // the first of those in flight
  CallInFlight* alone_ ABSL_GUARDED_BY(mu_) = nullptr;    // runs between steps, or waits for that
  StepIds step_ids_ ABSL_GUARDED_BY(mu_);
  SignatureCache cache_ ABSL_GUARDED_BY(mu_);
  BySignature<std::shared_ptr<Compilation>> compiling_ ABSL_GUARDED_BY(mu_);
  // Those too that nobody may join. The coordinator lives as long as they are here.
  std::vector<std::shared_ptr<Compilation>> all_compiling_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::shared_ptr<PartialStep>> partial_ ABSL_GUARDED_BY(mu_);
  size_t partial_starting_ ABSL_GUARDED_BY(mu_) = 0;
  // Those that did not end in time when the session was closed.
  std::map<std::string, std::shared_ptr<PartialStep>> late_partial_ ABSL_GUARDED_BY(mu_);
  // The clock of the interrupt checks: it runs from a step on until a second has passed without one.
  bool ticking_ ABSL_GUARDED_BY(mu_) = false;
  int64_t ticked_step_ ABSL_GUARDED_BY(mu_) = 0;
  int idle_ticks_ ABSL_GUARDED_BY(mu_) = 0;
  std::unique_ptr<Ticks> ticks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
