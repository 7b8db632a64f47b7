// SPDX-License-Identifier: Apache-2.0
#include "system/system.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "autodiff/gradients.h"
#include "base/env.h"
#include "base/logging.h"
#include "base/settings.h"
#include "client/local_session.h"
#include "client/remote_session.h"
#include "cluster/server.h"
#include "cluster/transport_loader.h"
#include "cluster/wait_for_replies.h"
#include "device/cpu/cpu_device.h"
#include "kernels/cpu/any_device.h"
#include "kernels/cpu/kernel_list.h"
#include "ops/op_list.h"
#include "system/server_settings.h"

namespace millrace {
namespace {

bool IsLocal(const std::string& target) { return target.empty() || target == "local"; }

Status CheckRemote(const std::string& target) {
  if (absl::StartsWith(target, "grpc://")) return absl::OkStatus();
  return NotFound("No session factory registered for the given session options: {target: \"", target, "\"}");
}

// Of the definition's own task; "" when it has none, which Server::New refuses.
std::string AddressOf(const wire::ServerDef& def) {
  if (!def.cluster) return "";
  for (const wire::JobDef& job : def.cluster->job) {
    const auto at = job.tasks.find(def.task_index);
    if (job.name == def.job_name && at != job.tasks.end()) return at->second;
  }
  return "";
}

StatusOr<std::unique_ptr<RpcTransport>> MakeTransport() {
  MR_ASSIGN_OR_RETURN(const RpcTransportOptions options, TransportOptionsFromEnvironment(Env::Default()));
  return NewRpcTransport(Env::Default(), options);
}

}  // namespace

struct System::Impl {
  OpRegistry ops;
  KernelRegistry kernels;
  CompositeRegistry composites;
  Channels channels{Env::Default(), MakeTransport};
  mutable absl::Mutex mu;
  std::vector<DeviceType> device_types ABSL_GUARDED_BY(mu);  // beside the CPU

  // CPUs, one if the configuration does not say, and of other types as many as there are, or as it wants at most.
  StatusOr<DeviceList> MakeDevices(const DeviceName& task, const wire::ConfigProto& config, ThreadPool& pool) const {
    constexpr int kMaxDevices = 64;
    int cpus = 1;
    if (auto it = config.device_count.find("CPU"); it != config.device_count.end()) cpus = it->second;
    if (cpus < 1 || cpus > kMaxDevices) {
      return InvalidArgument("device_count of CPU is ", cpus, ", want 1 to ", kMaxDevices);
    }
    DeviceList devices;
    DeviceName name = task;
    name.type = "CPU";
    for (name.id = 0; name.id < cpus; ++name.id) {
      devices.push_back(NewCpuDevice(name, Env::Default().Random64(), pool));
    }
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
        name.type = type.name;
        name.id = i;
        MR_ASSIGN_OR_RETURN(devices.emplace_back(), type.make(name, Env::Default().Random64(), i, pool));
      }
    }
    return devices;
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
  MinLogLevel();  // here, it says what is wrong with the settings of the log
  for (const std::string& unknown : UnknownSettings()) LogWarning(unknown);
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

StatusOr<std::unique_ptr<Session>> System::NewSession(
    RefPtr<SharedGraph> graph, const wire::ConfigProto& config, const std::string& target, const Determinism& given) {
  Determinism determinism = given;
  if (config.ordered) determinism = {true, static_cast<uint64_t>(config.order_seed)};
  if (!IsLocal(target)) {
    MR_RETURN_IF_ERROR(CheckRemote(target));
    if (determinism.on) {
      return Unimplemented("ordered steps in a session of target '", target,
                           "': several tasks have no order between them; give each its seeds instead");
    }
    return NewRemoteSession(std::move(graph), config, target, &impl_->channels);
  }
  std::unique_ptr<ThreadPool> own_pool;
  if (config.use_per_session_threads) {
    own_pool = std::make_unique<ThreadPool>(ProcessThreadPool().parallelism());
  }
  const DeviceName task{.job = "localhost", .replica = 0, .task = 0, .type = "", .id = -1};
  std::vector<DeviceList> workers(1);
  MR_ASSIGN_OR_RETURN(workers[0], impl_->MakeDevices(task, config, own_pool ? *own_pool : ProcessThreadPool()));
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

Status System::Reset(const std::vector<std::string>& containers, const wire::ConfigProto& config,
                     const std::string& target) {
  if (IsLocal(target)) return ResetLocalSessions(containers);
  MR_RETURN_IF_ERROR(CheckRemote(target));
  return ResetRemote(target, config, containers, &impl_->channels);
}

StatusOr<std::unique_ptr<Server>> System::NewServer(const wire::ServerDef& def) {
  ServerParts parts;
  MR_RETURN_IF_ERROR(ServerPartsFromEnvironment(AddressOf(def), &parts));
  MR_ASSIGN_OR_RETURN(
      const GraphRights rights, GraphRightsFromEnvironment(parts.bind.empty() ? AddressOf(def) : parts.bind));
  ThreadPool* pool = &ProcessThreadPool();
  if (rights.is_limited) {
    struct World {
      std::unique_ptr<Env> env;
      std::unique_ptr<ThreadPool> pool;
    };
    auto world = std::make_shared<World>();
    world->env = NewLimitedEnv(Env::Default(), rights.limits);
    world->pool = NewThreadPool(*world->env, ProcessThreadPool().parallelism());
    pool = world->pool.get();
    parts.keep = std::move(world);
  }
  parts.make_devices = [this, pool](const DeviceName& task, const wire::ConfigProto& config) {
    return impl_->MakeDevices(task, config, *pool);
  };
  MR_ASSIGN_OR_RETURN(parts.master.liveness, LivenessFromEnvironment());
  parts.channels = &impl_->channels;
  parts.master.env = &Env::Default();
  parts.master.ops = &impl_->ops;
  parts.master.kernels = &impl_->kernels;
  parts.master.differentiate = AddDenseGradients;
  return Server::New(def, parts);
}

StatusOr<std::string> System::ServerStatus(const std::string& target, absl::Duration timeout) {
  MR_RETURN_IF_ERROR(CheckRemote(target));
  MR_ASSIGN_OR_RETURN(RpcChannel* const channel, impl_->channels.Get(target.substr(std::string("grpc://").size())));
  Replies<absl::Cord> replies(1);
  channel->Call(kGetStatusMethod, {.timeout = timeout}, absl::Cord(), replies.For(0));
  const auto answers = replies.Wait(Env::Default(), absl::InfiniteDuration());
  MR_RETURN_IF_ERROR(answers.front().status());
  return std::string(*answers.front());
}

}  // namespace millrace
