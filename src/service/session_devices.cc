// SPDX-License-Identifier: Apache-2.0
#include "service/session_devices.h"

#include <utility>

#include "kernel/device_memory.h"
#include "kernel/resource_manager.h"

namespace millrace {
namespace {

class SessionDevice final : public Device {
 public:
  SessionDevice(DeviceName name, Device& device, bool isolates_state)
      : Device(std::move(name), device.incarnation(), device.allocator()), device_(device) {
    if (isolates_state) own_ = std::make_unique<ResourceManager>();
  }
  ThreadPool& thread_pool() override { return device_.thread_pool(); }
  int64_t memory_limit() const override { return device_.memory_limit(); }
  std::string description() const override { return device_.description(); }
  ResourceManager& resources() override { return own_ ? *own_ : device_.resources(); }

 private:
  Device& device_;
  std::unique_ptr<ResourceManager> own_;
};

}  // namespace

StatusOr<std::vector<std::unique_ptr<Device>>> DevicesOfSession(
    const std::vector<std::unique_ptr<Device>>& devices, const std::string& task, bool isolates_state) {
  DeviceName called;
  if (!task.empty()) {
    MR_ASSIGN_OR_RETURN(called, DeviceName::Parse(task));
    if (called.job.empty() || called.replica < 0 || called.task < 0 || !called.type.empty()) {
      return InvalidArgument("'", task, "' is not the whole name of a task");
    }
  }
  std::vector<std::unique_ptr<Device>> all;
  for (const auto& d : devices) {
    if (SpaceOf(*d) != nullptr) {
      return Unimplemented(
          "device ", d->name(), " has memory of its own: its sessions have the names and the state of its server");
    }
    DeviceName name = d->parsed_name();
    if (!task.empty()) {
      name.job = called.job;
      name.replica = called.replica;
      name.task = called.task;
    }
    all.push_back(std::make_unique<SessionDevice>(std::move(name), *d, isolates_state));
  }
  return all;
}

}  // namespace millrace
