// SPDX-License-Identifier: Apache-2.0
// What a worker gives its sessions: devices, with the containers of their state, kernels, and the way to other workers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "kernel/kernel_registry.h"
#include "service/worker_interface.h"

namespace millrace {

class Collectives;
struct SessionCalls;

// Constant but for the count of who uses it.
class WorkerEnv {
 public:
  // All devices have names that begin with `task`; the first is the host. `peers` finds other workers and outlives the
  // worker; null: there are none.
  WorkerEnv(std::vector<std::unique_ptr<Device>> all, const KernelRegistry* registry, WorkerDirectory* others);
  ~WorkerEnv();  // waits until nobody holds it
  WorkerEnv(const WorkerEnv&) = delete;
  WorkerEnv& operator=(const WorkerEnv&) = delete;

  // Functions of a session that has ended go on being called by what is in containers, until the devices go.
  void KeepOpen(const std::shared_ptr<SessionCalls>& calls);

  ThreadPool& pool() const { return devices.front()->thread_pool(); }
  Device* FindDevice(absl::string_view name) const;  // null: there is none
  std::vector<DeviceInfo> DeviceInfos() const;

  const std::vector<std::unique_ptr<Device>> devices;
  const KernelRegistry* const kernels;
  WorkerDirectory* const peers;
  const std::string task;
  const bool has_own_memory;                   // some device has memory of its own
  std::shared_ptr<Collectives> collectives;    // set by the worker, before anybody asks
  std::shared_ptr<WorkerDirectory> own_peers;  // `peers`, where they are those of one session
  bool outlives_sessions = false;              // a server's; set before anybody asks

  // Who must be gone before the devices.
  class Hold {
   public:
    explicit Hold(WorkerEnv& env);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    WorkerEnv& env_;
  };

 private:
  absl::Mutex mu_;
  int64_t holds_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::weak_ptr<SessionCalls>> open_ ABSL_GUARDED_BY(mu_);
};

// "/job:x/replica:0/task:1" of a device's full name.
std::string TaskOf(const DeviceName& device);

}  // namespace millrace
