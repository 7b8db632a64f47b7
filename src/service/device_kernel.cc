// SPDX-License-Identifier: Apache-2.0
#include "service/device_kernel.h"

#include "base/exceptions.h"

namespace millrace {
namespace {

std::string NameOf(const MemorySpace* space) { return space ? space->name() : "the host"; }

class Checks {
 public:
  explicit Checks(ArgMemory memory) : memory_(std::move(memory)) {}

  Status Inputs(const KernelContext& ctx) const {
    MemorySpace* const own = SpaceOf(ctx.device());
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      MR_RETURN_IF_ERROR(One("input", i, ctx.input(i), memory_.host_inputs[static_cast<size_t>(i)] ? nullptr : own));
    }
    return absl::OkStatus();
  }
  Status Outputs(KernelContext& ctx) const {
    MemorySpace* const own = SpaceOf(ctx.device());
    for (int o = 0; o < ctx.num_outputs(); ++o) {
      MR_RETURN_IF_ERROR(
          One("output", o, *ctx.mutable_output(o), memory_.host_outputs[static_cast<size_t>(o)] ? nullptr : own));
    }
    return absl::OkStatus();
  }

 private:
  static Status One(const char* what, int i, const Tensor& t, const MemorySpace* want) {
    if (!t.IsInitialized() || t.buffer() == nullptr || SpaceOf(t) == want) return absl::OkStatus();
    return Internal(
        what, " ", i, " lies in the memory of ", NameOf(SpaceOf(t)), ", but its place is in that of ", NameOf(want));
  }

  const ArgMemory memory_;
};

class CheckedKernel final : public Kernel {
 public:
  CheckedKernel(std::shared_ptr<Kernel> kernel, ArgMemory memory)
      : kernel_(std::move(kernel)), checks_(std::move(memory)) {}
  Status Compute(KernelContext& ctx) override {
    MR_RETURN_IF_ERROR(checks_.Inputs(ctx));
    MR_RETURN_IF_ERROR(kernel_->Compute(ctx));
    return checks_.Outputs(ctx);
  }
  bool IsExpensive() const override { return kernel_->IsExpensive(); }
  bool OutputsNeverChange() const override { return kernel_->OutputsNeverChange(); }

 private:
  const std::shared_ptr<Kernel> kernel_;
  const Checks checks_;
};

class CheckedAsyncKernel final : public AsyncKernel {
 public:
  CheckedAsyncKernel(std::shared_ptr<Kernel> kernel, ArgMemory memory)
      : kernel_(std::move(kernel)), checks_(std::move(memory)) {}
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    const Status s = checks_.Inputs(ctx);
    if (!s.ok()) return std::move(done)(s);
    kernel_->AsAsync()->ComputeAsync(ctx, [this, &ctx, done = std::move(done)](Status result) mutable {
      if (result.ok()) result = WithoutExceptions([&] { return checks_.Outputs(ctx); });
      std::move(done)(std::move(result));
    });
  }
  bool IsExpensive() const override { return kernel_->IsExpensive(); }

 private:
  const std::shared_ptr<Kernel> kernel_;
  const Checks checks_;
};

}  // namespace

std::shared_ptr<Kernel> WithMemoryChecks(std::shared_ptr<Kernel> kernel, ArgMemory memory) {
  if (kernel->AsAsync() != nullptr) return std::make_shared<CheckedAsyncKernel>(std::move(kernel), std::move(memory));
  return std::make_shared<CheckedKernel>(std::move(kernel), std::move(memory));
}

}  // namespace millrace
