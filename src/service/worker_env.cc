// SPDX-License-Identifier: Apache-2.0
#include "service/worker_env.h"

#include <algorithm>

#include "base/pool_env.h"
#include "kernel/device_memory.h"
#include "service/step_functions.h"

namespace millrace {

std::string TaskOf(const DeviceName& device) {
  return DeviceName{.job = device.job, .replica = device.replica, .task = device.task}.ToString();
}

WorkerEnv::WorkerEnv(std::vector<std::unique_ptr<Device>> all, const KernelRegistry* registry, WorkerDirectory* others)
    : devices(std::move(all)),
      kernels(registry),
      peers(others),
      task(TaskOf(devices.front()->parsed_name())),
      has_own_memory(
          std::any_of(devices.begin(), devices.end(), [](const auto& d) { return SpaceOf(*d) != nullptr; })) {}

WorkerEnv::~WorkerEnv() {
  std::vector<std::weak_ptr<SessionCalls>> open;
  {
    absl::MutexLock lock(&mu_);
    open.swap(open_);
  }
  for (const auto& weak : open) {
    if (const std::shared_ptr<SessionCalls> calls = weak.lock()) calls->gate.Close();
  }
  absl::MutexLock lock(&mu_);
  EnvOf(pool()).Await(mu_, absl::Condition(+[](int64_t* holds) { return *holds == 0; }, &holds_));
}

void WorkerEnv::KeepOpen(const std::shared_ptr<SessionCalls>& calls) {
  absl::MutexLock lock(&mu_);
  std::erase_if(open_, [](const auto& weak) { return weak.expired(); });
  open_.push_back(calls);
}

WorkerEnv::Hold::Hold(WorkerEnv& env) : env_(env) {
  absl::MutexLock lock(&env_.mu_);
  ++env_.holds_;
}

WorkerEnv::Hold::~Hold() {
  absl::MutexLock lock(&env_.mu_);
  --env_.holds_;
}

Device* WorkerEnv::FindDevice(absl::string_view name) const {
  for (const auto& d : devices) {
    if (d->name() == name) return d.get();
  }
  return nullptr;
}

std::vector<DeviceInfo> WorkerEnv::DeviceInfos() const {
  std::vector<DeviceInfo> all;
  for (const auto& d : devices) {
    all.push_back({d->name(), d->type(), d->memory_limit(), d->incarnation(), SpaceOf(*d) != nullptr});
  }
  return all;
}

}  // namespace millrace
