// SPDX-License-Identifier: Apache-2.0
#include "system/system.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "base/logging.h"
#include "client/local_session.h"
#include "device/cpu/cpu_device.h"
#include "kernels/cpu/any_device.h"
#include "kernels/cpu/kernel_list.h"
#include "ops/op_list.h"

namespace millrace {

struct System::Impl {
  OpRegistry ops;
  KernelRegistry kernels;
  CompositeRegistry composites;
  mutable absl::Mutex mu;
  std::vector<DeviceType> device_types ABSL_GUARDED_BY(mu);  // beside the CPU

  // As many as there are, or as the configuration wants at most.
  Status AddDevices(const wire::ConfigProto& config, ThreadPool& pool, DeviceList* devices) const {
    std::vector<DeviceType> types;
    {
      absl::MutexLock lock(&mu);
      types = device_types;
    }
    for (const DeviceType& type : types) {
      int count = type.count();
      if (auto it = config.device_count.find(type.name); it != config.device_count.end()) {
        count = std::min(count, it->second);
      }
      for (int i = 0; i < count; ++i) {
        MR_ASSIGN_OR_RETURN(devices->emplace_back(),
                            type.make({.job = "localhost", .replica = 0, .task = 0, .type = type.name, .id = i},
                                      Env::Default().Random64(), i, pool));
      }
    }
    return absl::OkStatus();
  }
};

System& System::Default() {
  static System* system = new System();  // sessions and graphs may outlive static destruction
  return *system;
}

System::System() : impl_(std::make_unique<Impl>()) {
  // Debian builds Abseil with deadlock detection, which makes up a third of a small step. ThreadSanitizer looks for
  // inverted locks in the tests.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  RegisterAllOps(impl_->ops);
  RegisterCpuKernels(impl_->kernels);
  RegisterAllComposites(impl_->composites);
  if (!impl_->composites.status().ok()) LogError("composites: ", impl_->composites.status().ToString());
  if (!impl_->ops.status().ok()) LogError("op declarations: ", impl_->ops.status().ToString());
}

System::~System() = default;

OpRegistry& System::ops() { return impl_->ops; }
KernelRegistry& System::kernels() { return impl_->kernels; }
CompositeRegistry& System::composites() { return impl_->composites; }

StatusOr<std::unique_ptr<Session>> System::NewSession(RefPtr<SharedGraph> graph, const wire::ConfigProto& config,
                                                      const std::string& target, const Determinism& determinism) {
  if (!target.empty() && target != "local") {
    if (!absl::StrContains(target, "://")) {
      return NotFound("No session factory registered for the given session options: {target: \"", target, "\"}");
    }
    return Unimplemented("session target '", target, "': only sessions in this process exist (\"\" or \"local\")");
  }
  constexpr int kMaxDevices = 64;
  int cpus = 1;
  if (auto it = config.device_count.find("CPU"); it != config.device_count.end()) cpus = it->second;
  if (cpus < 1 || cpus > kMaxDevices) {
    return InvalidArgument("device_count of CPU is ", cpus, ", want 1 to ", kMaxDevices);
  }
  std::unique_ptr<ThreadPool> own_pool;
  if (config.use_per_session_threads) {
    own_pool = std::make_unique<ThreadPool>(ProcessThreadPool().parallelism());
  }
  std::vector<DeviceList> workers(1);
  for (int i = 0; i < cpus; ++i) {
    workers[0].push_back(NewCpuDevice({.job = "localhost", .replica = 0, .task = 0, .type = "CPU", .id = i},
                                      Env::Default().Random64(), own_pool ? *own_pool : ProcessThreadPool()));
  }
  MR_RETURN_IF_ERROR(impl_->AddDevices(config, own_pool ? *own_pool : ProcessThreadPool(), &workers[0]));
  return NewLocalSession(
      std::move(graph), config, std::move(workers), &impl_->kernels, determinism, std::move(own_pool));
}

bool System::HasDeviceType(const std::string& name) const {
  absl::MutexLock lock(&impl_->mu);
  const auto same = [&](const DeviceType& t) { return t.name == name; };
  return name == "CPU" || std::any_of(impl_->device_types.begin(), impl_->device_types.end(), same);
}

Status System::AddDeviceType(DeviceType type) {
  if (HasDeviceType(type.name)) return AlreadyExists("there are devices of type ", type.name, " already");
  RegisterKernelsOfAnyDevice(impl_->kernels, type.name);
  absl::MutexLock lock(&impl_->mu);
  impl_->device_types.push_back(std::move(type));
  return absl::OkStatus();
}

Status System::Reset(const std::vector<std::string>& containers) { return ResetLocalSessions(containers); }

}  // namespace millrace
