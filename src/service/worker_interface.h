// SPDX-License-Identifier: Apache-2.0
// A worker as its callers see it: masters, and other workers. It may be in this process or elsewhere.
#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "kernel/cancellation.h"
#include "runtime/step_thread.h"
#include "service/collective_messages.h"
#include "service/worker_messages.h"

namespace millrace {

// Of one call; no part of the message. What a step has under way is ended by AbortStep.
struct CallOptions {
  // May be null; lives until the reply. Gives up what is under way to another process.
  CancellationManager* cancellation = nullptr;
  // For a worker in the caller's process, others do not look at them: the thread that waits for the step and helps to
  // run it, which lives until the reply; whether it may work on the calling thread before the call returns; and what
  // ends the registration of partitions between two kernels, as `cancellation` but that the reply tells what became of
  // it.
  StepThread* caller = nullptr;
  bool runs_here = false;
  const CancellationManager* stop_compiling = nullptr;
};

// Runs exactly once, whatever goes wrong: on any thread, perhaps before the call returns, never under a lock.
template <typename Response>
using Reply = absl::AnyInvocable<void(StatusOr<Response>) &&>;

// A partition that waits for nobody. Runs without a look-up, also after the worker has dropped it.
class InlinePartition {
 public:
  virtual ~InlinePartition() = default;
  // `inter_op_threads`: that run kernels at once; 0: the pool's width.
  virtual Status Run(StepContext& step, int inter_op_threads, absl::Span<const Tensor> args,
                     std::vector<Tensor>* retvals) = 0;
  // Not OK: why its session has ended on the worker.
  virtual Status closed() const = 0;
};

// May be called concurrently. No call waits for its answer, none throws; a worker of this process may do its work,
// which takes long when it registers partitions, before the call returns. An error of the call says that the message
// was not obeyed: Aborted when session or incarnation are not those of the worker, Cancelled when the session was
// closed or the call given up, Unavailable. What is said in worker_messages.h is not repeated here.
class WorkerInterface {
 public:
  virtual ~WorkerInterface() = default;
  // "/job:<name>/replica:<n>/task:<n>"
  virtual const std::string& task() const = 0;

  virtual void CreateSession(const CallOptions& call, CreateWorkerSessionRequest request,
                             Reply<CreateWorkerSessionResponse> reply) = 0;
  virtual void DeleteSession(const CallOptions& call, DeleteWorkerSessionRequest request,
                             Reply<DeleteWorkerSessionResponse> reply) = 0;
  // Compiles them; errors name nodes.
  virtual void RegisterPartitions(const CallOptions& call, RegisterPartitionsRequest request,
                                  Reply<RegisterPartitionsResponse> reply) = 0;
  virtual void DeregisterPartitions(const CallOptions& call, DeregisterPartitionsRequest request,
                                    Reply<DeregisterPartitionsResponse> reply) = 0;
  virtual void RunStep(const CallOptions& call, RunStepRequest request, Reply<RunStepResponse> reply) = 0;
  virtual void AbortStep(const CallOptions& call, AbortStepRequest request, Reply<AbortStepResponse> reply) = 0;
  virtual void CleanUpSteps(const CallOptions& call, CleanUpStepsRequest request,
                            Reply<CleanUpStepsResponse> reply) = 0;
  virtual void ExchangeTensors(const CallOptions& call, ExchangeTensorsRequest request,
                               Reply<ExchangeTensorsResponse> reply) = 0;
  virtual void RecvTensor(const CallOptions& call, RecvTensorRequest request, Reply<RecvTensorResponse> reply) = 0;
  // The reply says no more than that it is on its way.
  virtual void SendTensor(const CallOptions& call, SendTensorRequest request, Reply<SendTensorResponse> reply) = 0;
  virtual void GetStatus(const CallOptions& call, GetStatusRequest request, Reply<GetStatusResponse> reply) = 0;
  virtual void Heartbeat(const CallOptions& call, HeartbeatRequest request, Reply<HeartbeatResponse> reply) = 0;
  virtual void Reset(const CallOptions& call, ResetRequest request, Reply<ResetResponse> reply) = 0;
  virtual void GetRandomPositions(const CallOptions& call, GetRandomPositionsRequest request,
                                  Reply<GetRandomPositionsResponse> reply) = 0;
  virtual void SetRandomPositions(const CallOptions& call, SetRandomPositionsRequest request,
                                  Reply<SetRandomPositionsResponse> reply) = 0;
  // See collective_messages.h. A join lasts until all members are there, one has failed, or time is over.
  virtual void JoinCollective(const CallOptions& call, JoinCollectiveRequest request,
                              Reply<JoinCollectiveResponse> reply) = 0;
  virtual void RecvCollective(const CallOptions& call, RecvCollectiveRequest request,
                              Reply<RecvCollectiveResponse> reply) = 0;
  virtual void AbortCollective(const CallOptions& call, AbortCollectiveRequest request,
                               Reply<AbortCollectiveResponse> reply) = 0;

  // What its caller's side has found out. Not OK: it is dead; calls to it end with this at once, those too that are
  // under way, but for heartbeats. OK: it is there again. Of no meaning for a worker in the caller's process.
  virtual void SetDead(const Status&) {}

  // The shortcut of a worker in the caller's process, which spares steps of one partition all messages. Null: it must
  // go by messages.
  virtual std::shared_ptr<InlinePartition> FindInline(const SessionRef& session, int64_t handle) = 0;
};

// Finds the workers of a cluster. May be called concurrently.
class WorkerDirectory {
 public:
  virtual ~WorkerDirectory() = default;
  // Null: there is none. It lives as long as the directory.
  virtual WorkerInterface* Find(absl::string_view task) = 0;
  // The task where the members of collective ops meet, the same for all workers; empty: each worker is alone.
  virtual std::string CollectiveLeader() const { return ""; }
  // The workers of another cluster, in which this one's is called `own_task`, for as long as it is held.
  virtual StatusOr<std::shared_ptr<WorkerDirectory>> Of(const wire::ClusterDef&, const std::string& own_task) {
    return Unimplemented("worker ", own_task, " belongs to no server, which could reach other clusters");
  }
};

}  // namespace millrace
