// SPDX-License-Identifier: Apache-2.0
#include "capi/plugin/registration.h"

#include <algorithm>

#include "absl/synchronization/mutex.h"
#include "base/hash_map.h"
#include "kernel/device_memory.h"
#include "system/system.h"

namespace millrace::capi {
namespace {

thread_local RegistrationScope* current_scope = nullptr;

struct Published {
  absl::Mutex publishing;  // held throughout a Publish
  absl::Mutex mu;
  HashMap<std::string, std::unique_ptr<PluginOp>> ops ABSL_GUARDED_BY(mu);
};
Published& TheOps() {
  static auto* const published = new Published;
  return *published;
}

// Whether a node can exist that both serve.
bool Overlap(const KernelSpec& a, const KernelSpec& b) {
  if (a.op != b.op || a.device != b.device || a.label != b.label || a.priority != b.priority) return false;
  for (const auto& [attr, types] : a.types) {
    for (const auto& [other, served] : b.types) {
      if (attr != other) continue;
      const auto both = [&s = served](DType t) { return std::find(s.begin(), s.end(), t) != s.end(); };
      if (std::none_of(types.begin(), types.end(), both)) return false;
    }
  }
  return true;
}

Status OpExists(const std::string& name) { return AlreadyExists("Op with name ", name); }

Status KernelExists(const KernelSpec& spec) {
  return AlreadyExists("op ", spec.op, " has a ", spec.device, " kernel of priority ", spec.priority,
                       " for the same types already; give one of them a higher priority");
}

Status CheckOp(const PluginOp& op, const std::vector<PluginOp>& others) {
  const auto same = [&](const PluginOp& o) { return &o != &op && o.def.name == op.def.name; };
  if (System::Default().ops().Find(op.def.name) != nullptr || std::any_of(others.begin(), others.end(), same)) {
    return OpExists(op.def.name);
  }
  return absl::OkStatus();
}

Status CheckKernel(const PluginKernelEntry& kernel, const std::vector<PluginKernelEntry>& others) {
  for (const PluginKernelEntry& other : others) {
    if (&other != &kernel && Overlap(other.spec, kernel.spec)) return KernelExists(kernel.spec);
  }
  for (const KernelSpec& spec : System::Default().kernels().SpecsFor(kernel.spec.op)) {
    if (Overlap(spec, kernel.spec)) return KernelExists(kernel.spec);
  }
  return absl::OkStatus();
}

Status CheckDevice(const DeviceType& device, const std::vector<DeviceType>& others) {
  const auto same = [&](const DeviceType& d) { return &d != &device && d.name == device.name; };
  if (System::Default().HasDeviceType(device.name) || std::any_of(others.begin(), others.end(), same)) {
    return AlreadyExists("there are devices of type ", device.name, " already");
  }
  return absl::OkStatus();
}

Status CheckFileSystem(const PluginFileSystem& one, const std::vector<PluginFileSystem>& others) {
  const auto same = [&](const PluginFileSystem& o) { return &o != &one && o.scheme == one.scheme; };
  if (HasFileSystem(one.scheme) || std::any_of(others.begin(), others.end(), same)) {
    return AlreadyExists("there is a file system for ", one.scheme, ":// already");
  }
  const std::string path = one.scheme + "://";
  if (FileScheme(path) == one.scheme) return absl::OkStatus();
  return InvalidArgument("'", one.scheme, "' is no scheme of files that others may have");
}

}  // namespace

RegistrationScope::RegistrationScope() : outer_(current_scope) { current_scope = this; }
RegistrationScope::~RegistrationScope() { current_scope = outer_; }

Status RegisterOp(PluginOp op) {
  if (current_scope == nullptr) {
    Registrations one;
    one.ops.push_back(std::move(op));
    return Publish(std::move(one));
  }
  Registrations& collected = current_scope->collected();
  Status s = CheckOp(op, collected.ops);
  collected.error.Update(s);
  if (s.ok()) collected.ops.push_back(std::move(op));
  return s;
}

Status RegisterKernel(PluginKernelEntry kernel) {
  if (current_scope == nullptr) {
    Registrations one;
    one.kernels.push_back(std::move(kernel));
    return Publish(std::move(one));
  }
  Registrations& collected = current_scope->collected();
  Status s = CheckKernel(kernel, collected.kernels);
  collected.error.Update(s);
  if (s.ok()) collected.kernels.push_back(std::move(kernel));
  return s;
}

Status RegisterDevice(DeviceType device) {
  if (current_scope == nullptr) {
    Registrations one;
    one.devices.push_back(std::move(device));
    return Publish(std::move(one));
  }
  Registrations& collected = current_scope->collected();
  Status s = CheckDevice(device, collected.devices);
  collected.error.Update(s);
  if (s.ok()) collected.devices.push_back(std::move(device));
  return s;
}

Status RegisterFileSystem(PluginFileSystem file_system) {
  if (current_scope == nullptr) {
    Registrations one;
    one.file_systems.push_back(std::move(file_system));
    return Publish(std::move(one));
  }
  Registrations& collected = current_scope->collected();
  Status s = CheckFileSystem(file_system, collected.file_systems);
  collected.error.Update(s);
  if (s.ok()) collected.file_systems.push_back(std::move(file_system));
  return s;
}

void UndoIfLoadingFails(std::function<void()> undo) {
  if (current_scope != nullptr) current_scope->collected().undo.push_back(std::move(undo));
}

Status Publish(Registrations registrations) {
  MR_RETURN_IF_ERROR(registrations.error);
  System& system = System::Default();
  Published& published = TheOps();
  absl::MutexLock publishing(&published.publishing);
  for (const PluginOp& op : registrations.ops) MR_RETURN_IF_ERROR(CheckOp(op, registrations.ops));
  for (const PluginKernelEntry& k : registrations.kernels) MR_RETURN_IF_ERROR(CheckKernel(k, registrations.kernels));
  for (const DeviceType& d : registrations.devices) MR_RETURN_IF_ERROR(CheckDevice(d, registrations.devices));
  for (const PluginFileSystem& f : registrations.file_systems) {
    MR_RETURN_IF_ERROR(CheckFileSystem(f, registrations.file_systems));
  }
  // Who sees an op sees its functions and kernels, and who sees a device sees its kernels.
  for (PluginKernelEntry& k : registrations.kernels) {
    if (k.spec.device != "CPU") SetHostMemory(k.spec, std::move(k.host_memory));
    system.kernels().AddFactory(std::move(k.spec), std::move(k.factory));
  }
  for (DeviceType& d : registrations.devices) MR_RETURN_IF_ERROR(system.AddDeviceType(std::move(d)));
  for (PluginOp& op : registrations.ops) {
    op.def.shape_fn = &PluginShape;
    if (op.gradient != nullptr) {
      op.def.gradient_kind = GradientKind::kFunction;
      op.def.gradient_fn = &PluginGradient;
    }
    OpDef def = op.def;
    {
      absl::MutexLock lock(&published.mu);
      published.ops.insert_or_assign(def.name, std::make_unique<PluginOp>(std::move(op)));
    }
    MR_RETURN_IF_ERROR(system.ops().AddDef(std::move(def)));
  }
  for (PluginFileSystem& f : registrations.file_systems) {
    MR_RETURN_IF_ERROR(AddFileSystem(f.scheme, std::move(f.files)));
  }
  return absl::OkStatus();
}

const PluginOp* FindPluginOp(absl::string_view name) {
  Published& published = TheOps();
  absl::ReaderMutexLock lock(&published.mu);
  auto it = published.ops.find(name);
  return it == published.ops.end() ? nullptr : it->second.get();
}

}  // namespace millrace::capi
