// SPDX-License-Identifier: Apache-2.0
// A worker in this process.
#pragma once

#include <atomic>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "kernel/device_memory.h"
#include "kernel/random_stream.h"
#include "runtime/plan.h"
#include "service/step_functions.h"
#include "service/transport.h"
#include "service/worker.h"

namespace millrace {

class LocalWorker : public Worker {
 public:
  // `deterministic`: every partition runs by readiness, so that its order can be chosen by a seed. `transport` reaches
  // the other workers, and outlives this one; null: there are none.
  LocalWorker(std::vector<std::unique_ptr<Device>> devices, const KernelRegistry* kernels, bool deterministic,
              Transport* transport);
  ~LocalWorker() override;

  std::vector<DeviceInfo> devices() const override;
  StatusOr<int64_t> Register(Partition partition) override;
  void Deregister(int64_t partition) override;
  std::shared_ptr<InlinePartition> FindInline(int64_t partition) const override;
  StatusOr<std::unique_ptr<WorkerStep>> OpenStep(const StepSpec& spec) override;

  // For transports: the value of `key`, which a device of this worker sends in that step. Aborted when it is not open.
  void ServeRecv(int64_t step_id, absl::string_view key, Rendezvous::DoneCallback done);

  // Drops the resources of a container on every device; "" is all containers.
  void ClearResources(const std::string& container);

  Device& host() { return *devices_.front(); }

  // Adds where the streams of this worker's random ops are.
  void GetRandomPositions(RandomPositions* positions) const;
  // Puts streams there, also those of ops that have not run yet.
  void SetRandomPositions(const RandomPositions& positions);

 private:
  class OpenedStep;
  struct Registered {
    std::shared_ptr<const Plan> plan;
    MemorySpace* space = nullptr;  // that of the plan's device; null: it has none of its own
  };
  StatusOr<Registered> Find(int64_t partition) const;
  StatusOr<std::shared_ptr<Kernel>> MakeKernel(const Node& node, Device& device);
  Device* FindDevice(const std::string& name) const;

  const std::vector<std::unique_ptr<Device>> devices_;
  absl::flat_hash_set<std::string> device_names_;
  bool has_remote_device_ = false;  // constant
  const KernelRegistry* kernels_;
  const bool deterministic_;
  Transport* const transport_;
  const std::shared_ptr<CallGate> call_gate_ = std::make_shared<CallGate>();
  mutable absl::Mutex mu_;
  int64_t next_ ABSL_GUARDED_BY(mu_) = 1;
  absl::flat_hash_map<int64_t, Registered> plans_ ABSL_GUARDED_BY(mu_);
  std::map<int64_t, RefPtr<Rendezvous>> open_steps_ ABSL_GUARDED_BY(mu_);  // those that others may ask about
  // Kernels of stateful ops, by device and node name: every plan of a session shares them, so that a random op goes on
  // with its sequence whatever is fetched beside it.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Kernel>> stateful_ ABSL_GUARDED_BY(mu_);
  RandomPositions waiting_positions_ ABSL_GUARDED_BY(mu_);  // for kernels that are not made yet
};

}  // namespace millrace
