// SPDX-License-Identifier: Apache-2.0
// What a worker has for collective ops: it runs the parts of its members, answers the workers of others, and, if it is
// the leader, gathers groups. Thread-safe.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "kernel/collective.h"
#include "service/collective_groups.h"
#include "service/collective_round.h"
#include "service/step_functions.h"
#include "service/worker_env.h"

namespace millrace {

class Collectives final
    : public CollectiveExecutor,
      public RoundHost,
      public std::enable_shared_from_this<Collectives> {
 public:
  // `env` lasts until Close has returned.
  Collectives(WorkerEnv& env, uint64_t incarnation);
  // Fails what is under way and what comes, with `why`. When it returns nothing runs any more.
  void Close(const Status& why);

  // Of kernels of this worker.
  void Run(CollectiveCall call, Done done) override;

  // Of WorkerInterface.
  void Join(const CallOptions& call, JoinCollectiveRequest request, Reply<JoinCollectiveResponse> reply);
  void Recv(const CallOptions& call, const RecvCollectiveRequest& request, Reply<RecvCollectiveResponse> reply);
  Status Abort(const AbortCollectiveRequest& request);

  // Of rounds.
  const std::string& task() const override { return task_; }
  WorkerInterface* Peer(absl::string_view task) override { return peers_ ? peers_->Find(task) : nullptr; }
  Status Schedule(absl::AnyInvocable<void()> work) override;
  void ParallelFor(int64_t n, double cost, absl::FunctionRef<void(int64_t, int64_t)> fn) override {
    pool_.ParallelFor(n, cost, fn);
  }
  void Forget(uint64_t round, const Status& failure) override;

 private:
  class Member;
  struct RoundHere {
    std::shared_ptr<CollectiveRound> round;
    Env::TimerId timer = 0;
  };
  WorkerInterface* Leader() const;  // null: this worker
  // Made when this is the first to name it; what it failed with if it did. May throw for want of memory.
  StatusOr<std::shared_ptr<CollectiveRound>> FindOrMake(uint64_t round);
  std::shared_ptr<CollectiveRound> Find(uint64_t round);
  // A member of this task cannot take part.
  void FailRound(uint64_t round, const Status& why);
  void RememberFailed(uint64_t round, const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string task_;
  WorkerDirectory* const peers_;
  ThreadPool& pool_;
  Env& world_;
  const uint64_t incarnation_;
  const std::shared_ptr<CollectiveGroups> groups_;
  CallGate gate_;  // of work on the pool
  absl::Mutex mu_;
  Status closed_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, RoundHere> rounds_ ABSL_GUARDED_BY(mu_);
  std::deque<std::pair<uint64_t, Status>> failed_early_ ABSL_GUARDED_BY(mu_);  // before they were known; the latest
};

}  // namespace millrace
