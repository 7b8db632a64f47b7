// SPDX-License-Identifier: Apache-2.0
// WorkerSession: what one master has on a worker: partitions, the kernels of its stateful ops, the positions of its
// random streams, its open steps. Variables and other resources are not here: they are in containers on the worker's
// devices, which all sessions share. Thread-safe.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>

#include "absl/functional/function_ref.h"
#include "kernel/random_stream.h"
#include "service/inline_steps.h"
#include "service/pushed_values.h"
#include "service/step_functions.h"
#include "service/step_table.h"
#include "service/worker_env.h"
#include "service/worker_step.h"

namespace millrace {

class WorkerSession : public std::enable_shared_from_this<WorkerSession> {
 public:
  // `env` outlives it. `own` (may be null) is what the session has instead of the worker's `env`, on which it stands.
  WorkerSession(WorkerEnv& env, uint64_t id, std::unique_ptr<WorkerEnv> own = nullptr, SessionSettings settings = {});
  ~WorkerSession();

  uint64_t id() const { return id_; }
  WorkerEnv& env() const { return env_; }
  StepTable& steps() { return steps_; }
  PushedValues& pushed() { return pushed_; }
  const SessionSettings& settings() const { return calls_->settings; }

  // All or none. `cancellation` (may be null) gives up between two kernels.
  StatusOr<RegisterPartitionsResponse> Register(std::vector<PartitionToRegister> partitions,
                                                const CancellationManager* cancellation);
  void Deregister(absl::Span<const int64_t> handles);
  StatusOr<RegisteredPartition> Find(int64_t handle) const;

  const std::shared_ptr<InlineSteps>& inline_steps() const { return inline_steps_; }

  // The present epoch only grows.
  int64_t epoch() const { return epoch_.load(); }
  void BeginEpoch(int64_t epoch);
  // Whether it has something in one of these containers (all when empty).
  bool Uses(absl::Span<const std::string> containers) const;

  // Its master is there, and will be heard of again within `lease` (0: it need not).
  void HearOfMaster(absl::Duration lease);
  void HearOfMaster();
  // Nothing was heard of its master for longer than it may; stays so.
  bool IsLost() const;

  // Stops steps and calls of functions, and refuses later ones with `why`; but what is in the containers of a server
  // goes on calling functions. Steps may still be ending when it returns (see StepTable::WhenIdle).
  void Close(const Status& why);

  // Adds where the streams of random ops are.
  void GetRandomPositions(RandomPositions* positions) const;
  // Puts streams there, also those of ops that have not run yet.
  void SetRandomPositions(const RandomPositions& positions);

 private:
  StatusOr<RegisteredPartition> Compile(const PartitionToRegister& wanted, const CancellationManager* cancellation);
  // `prepare` is called with a kernel that is new, before anybody else can find it.
  StatusOr<std::shared_ptr<Kernel>> MakeKernel(const Node& node, Device& device,
                                               absl::FunctionRef<Status(Kernel&)> prepare);

  // Lives as long as calls of functions need it, which may be longer than the session.
  struct Ground {
    WorkerEnv::Hold worker;
    std::unique_ptr<WorkerEnv> own;
  };
  const std::shared_ptr<Ground> ground_;  // let go last
  WorkerEnv& env_;
  const uint64_t id_;
  const std::shared_ptr<SessionCalls> calls_;
  const bool functions_stay_;
  const std::shared_ptr<InlineSteps> inline_steps_;
  StepTable steps_;
  PushedValues pushed_;
  std::atomic<int64_t> epoch_{0};
  std::atomic<int64_t> lease_nanos_{0}, heard_nanos_{0};
  mutable absl::Mutex mu_;
  std::set<std::string> containers_ ABSL_GUARDED_BY(mu_);  // that nodes of its partitions name
  int64_t next_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<int64_t, RegisteredPartition> partitions_ ABSL_GUARDED_BY(mu_);
  // Kernels of stateful ops, by device and node name: every plan of a session shares them, so that a random op goes on
  // with its sequence whatever is fetched beside it.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Kernel>> stateful_ ABSL_GUARDED_BY(mu_);
  RandomPositions waiting_positions_ ABSL_GUARDED_BY(mu_);  // for kernels that are not made yet
};

}  // namespace millrace
