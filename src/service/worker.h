// SPDX-License-Identifier: Apache-2.0
// Worker: what a task of a cluster is to masters and other workers. One per process (a local session has one of its
// own, which dies with it). It owns devices, and the containers on them with all state that outlives steps and
// sessions, and a WorkerSession for each master that has made one.
#pragma once

#include <map>

#include "service/ended_sessions.h"
#include "service/worker_session.h"

namespace millrace {

class Worker final : public WorkerInterface {
 public:
  // As of WorkerEnv. `incarnation` tells this worker from the one that had its name before a restart.
  Worker(std::vector<std::unique_ptr<Device>> devices, const KernelRegistry* kernels, WorkerDirectory* peers,
         uint64_t incarnation);
  // Stops what runs and waits for it. REQUIRES: no call but RunStep is under way, and none comes any more.
  ~Worker() override;

  const std::string& task() const override { return env_.task; }
  // Its containers serve sessions one after the other. Before the first is made.
  void OutliveSessions() { env_.outlives_sessions = true; }
  Device& host() { return *env_.devices.front(); }

  void CreateSession(const CallOptions& call, CreateWorkerSessionRequest request,
                     Reply<CreateWorkerSessionResponse> reply) override;
  void DeleteSession(const CallOptions& call, DeleteWorkerSessionRequest request,
                     Reply<DeleteWorkerSessionResponse> reply) override;
  void RegisterPartitions(const CallOptions& call, RegisterPartitionsRequest request,
                          Reply<RegisterPartitionsResponse> reply) override;
  void DeregisterPartitions(const CallOptions& call, DeregisterPartitionsRequest request,
                            Reply<DeregisterPartitionsResponse> reply) override;
  void RunStep(const CallOptions& call, RunStepRequest request, Reply<RunStepResponse> reply) override;
  void AbortStep(const CallOptions& call, AbortStepRequest request, Reply<AbortStepResponse> reply) override;
  void CleanUpSteps(const CallOptions& call, CleanUpStepsRequest request, Reply<CleanUpStepsResponse> reply) override;
  void ExchangeTensors(const CallOptions& call, ExchangeTensorsRequest request,
                       Reply<ExchangeTensorsResponse> reply) override;
  void RecvTensor(const CallOptions& call, RecvTensorRequest request, Reply<RecvTensorResponse> reply) override;
  void SendTensor(const CallOptions& call, SendTensorRequest request, Reply<SendTensorResponse> reply) override;
  void GetStatus(const CallOptions& call, GetStatusRequest request, Reply<GetStatusResponse> reply) override;
  void Heartbeat(const CallOptions& call, HeartbeatRequest request, Reply<HeartbeatResponse> reply) override;
  void Reset(const CallOptions& call, ResetRequest request, Reply<ResetResponse> reply) override;
  void GetRandomPositions(const CallOptions& call, GetRandomPositionsRequest request,
                          Reply<GetRandomPositionsResponse> reply) override;
  void SetRandomPositions(const CallOptions& call, SetRandomPositionsRequest request,
                          Reply<SetRandomPositionsResponse> reply) override;
  void JoinCollective(const CallOptions& call, JoinCollectiveRequest request,
                      Reply<JoinCollectiveResponse> reply) override;
  void RecvCollective(const CallOptions& call, RecvCollectiveRequest request,
                      Reply<RecvCollectiveResponse> reply) override;
  void AbortCollective(const CallOptions& call, AbortCollectiveRequest request,
                       Reply<AbortCollectiveResponse> reply) override;
  std::shared_ptr<InlinePartition> FindInline(const SessionRef& session, int64_t handle) override;

  // Ends sessions whose masters have not been heard of in time, and steps that were named but that no master has begun;
  // asks for values of other workers that may be lost. To be called every now and then where masters may die, and
  // messages be lost.
  void EndLost();
  // What steps wait for, line by line: of all, or of those in which nothing has happened for `patience`.
  std::vector<std::string> DescribeSteps();
  std::vector<std::string> DescribeStalledSteps(absl::Duration patience);

 private:
  using SessionPtr = std::shared_ptr<WorkerSession>;
  // Of which epoch a message may be: of the present one, or an earlier one too.
  enum class Epochs : uint8_t { kPresent, kEarlierToo };
  StatusOr<SessionPtr> Find(const SessionRef& ref, Epochs epochs = Epochs::kPresent);
  // The step, made when this is the first message to name it; `runs`: it counts as running. In an earlier epoch, a step
  // that is open.
  StatusOr<std::shared_ptr<WorkerStep>> FindStep(const StepRef& ref, bool runs);
  StatusOr<SessionPtr> FindOrMakeSession(const CreateWorkerSessionRequest& request);
  StatusOr<std::unique_ptr<WorkerEnv>> EnvOfSession(const CreateWorkerSessionRequest& request);
  // Its master has been silent for too long.
  Status EndLostSession(const SessionPtr& session);
  // Forgets those that have ended.
  std::vector<SessionPtr> EndingSessions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  size_t num_lost_ending();
  std::vector<SessionPtr> Sessions() const;
  void ClearContainers(const std::vector<std::string>& containers);

  const uint64_t incarnation_;
  WorkerEnv env_;
  mutable absl::Mutex mu_;
  std::map<uint64_t, SessionPtr> sessions_ ABSL_GUARDED_BY(mu_);  // closed ones too, until their masters delete them
  EndedSessions ended_ ABSL_GUARDED_BY(mu_);
  // Closed and no longer in `sessions_`, until their steps have ended.
  struct Ending {
    std::weak_ptr<WorkerSession> session;
    bool is_lost = false;  // its master was lost
  };
  std::vector<Ending> ending_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
