// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/any_device.h"

#include "kernels/cpu/elementwise/elementwise_host_cast.h"

namespace millrace {
namespace {

class FnKernel final : public Kernel {
 public:
  explicit FnKernel(KernelRegistry::Fn fn) : fn_(fn) {}
  Status Compute(KernelContext& ctx) override { return fn_(ctx); }

 private:
  KernelRegistry::Fn fn_;
};

constexpr char kCpu[] = "CPU";
constexpr int kBehindTheDevicesOwn = -1;

}  // namespace

void AnyDeviceKernels::AddFactory(absl::string_view op, std::vector<std::string> host_memory, KernelFactory factory,
                                  CostFunction cost) {
  KernelSpec spec{.op = std::string(op), .device = device_, .cost = cost};
  if (device_ != kCpu) {
    spec.priority = kBehindTheDevicesOwn;
    SetHostMemory(spec, std::move(host_memory));
  }
  registry_.AddFactory(std::move(spec), std::move(factory));
}

void AnyDeviceKernels::AddFn(absl::string_view op, std::vector<std::string> host_memory, KernelRegistry::Fn fn) {
  AddFactory(op, std::move(host_memory), [fn] { return std::make_unique<FnKernel>(fn); });
}

void RegisterKernelsOfAnyDevice(KernelRegistry& registry, const std::string& device) {
  AnyDeviceKernels r(registry, device);
  AddSourceKernels(r);
  AddReshapeKernels(r);
  AddControlFlowKernels(r);
  AddVariableKernels(r);
  AddTransferKernels(r);
  AddHostCastKernels(r);
  AddShapeArithmeticKernels(r);
}

}  // namespace millrace
