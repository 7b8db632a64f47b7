// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/cpu_device.h"

#include "base/granted_memory.h"

namespace millrace {
namespace {

class CpuDevice : public Device {
 public:
  CpuDevice(DeviceName name, uint64_t incarnation, ThreadPool& pool)
      : Device(std::move(name), incarnation, HostAllocator()), pool_(pool) {}
  ThreadPool& thread_pool() override { return pool_; }
  int64_t memory_limit() const override { return GrantedMemory().main; }
  ResourceManager& resources() override { return resources_; }

 private:
  ThreadPool& pool_;
  ResourceManager resources_;
};

}  // namespace

std::unique_ptr<Device> NewCpuDevice(DeviceName name, uint64_t incarnation, ThreadPool& pool) {
  return std::make_unique<CpuDevice>(std::move(name), incarnation, pool);
}

}  // namespace millrace
