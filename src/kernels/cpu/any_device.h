// SPDX-License-Identifier: Apache-2.0
// Kernels that look at no value outside of host memory: they pass values on, name variables, tell shapes. So each type
// of device has them, also one with memory of its own; a kernel that the device brings itself goes before.
#pragma once

#include <string>
#include <vector>

#include "kernel/device_memory.h"

namespace millrace {

// A kernel without attributes that costs less than handing it to another thread.
class CheapFnKernel final : public Kernel {
 public:
  explicit CheapFnKernel(KernelRegistry::Fn fn) : fn_(fn) {}
  Status Compute(KernelContext& ctx) override { return fn_(ctx); }
  bool IsExpensive() const override { return false; }

 private:
  KernelRegistry::Fn fn_;
};

// Registers for one type of device. `host_memory`: arguments that are there on every device.
class AnyDeviceKernels {
 public:
  AnyDeviceKernels(KernelRegistry& registry, std::string device) : registry_(registry), device_(std::move(device)) {}
  void AddFactory(absl::string_view op, std::vector<std::string> host_memory, KernelFactory factory,
                  CostFunction cost = NoCost);
  template <typename K>
  void Add(absl::string_view op, std::vector<std::string> host_memory = {}, CostFunction cost = NoCost) {
    AddFactory(op, std::move(host_memory), [] { return std::make_unique<K>(); }, cost);
  }
  void AddCheap(absl::string_view op, std::vector<std::string> host_memory, KernelRegistry::Fn fn) {
    AddFactory(op, std::move(host_memory), [fn] { return std::make_unique<CheapFnKernel>(fn); });
  }
  void AddFn(absl::string_view op, std::vector<std::string> host_memory, KernelRegistry::Fn fn);

 private:
  KernelRegistry& registry_;
  const std::string device_;
};

void AddSourceKernels(AnyDeviceKernels& r);
void AddReshapeKernels(AnyDeviceKernels& r);
void AddControlFlowKernels(AnyDeviceKernels& r);
void AddVariableKernels(AnyDeviceKernels& r);
void AddTransferKernels(AnyDeviceKernels& r);
void AddShapeArithmeticKernels(AnyDeviceKernels& r);

// All of them.
void RegisterKernelsOfAnyDevice(KernelRegistry& registry, const std::string& device);

}  // namespace millrace
