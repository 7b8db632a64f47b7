// SPDX-License-Identifier: Apache-2.0
// What the kernels of boosted trees share: their inputs, and the handles of their resources.
#pragma once

#include <string>

#include "kernel/kernel_registry.h"
#include "kernels/cpu/engine/resource_handle.h"

namespace millrace {

// The inputs of one argument, by its name.
class TreeInput {
 public:
  TreeInput(const KernelContext& ctx, const char* name) : ctx_(ctx), name_(name), range_(ctx.input_arg(name)) {}
  int size() const { return range_.end - range_.begin; }
  const Tensor& operator[](int i) const { return ctx_.input(range_.begin + i); }

  // InvalidArgument unless all of them have this rank.
  Status CheckRank(int rank) const;
  Status CheckDim(int d, int64_t want) const;
  Status CheckNumbers() const;  // no NaN among float ones
  StatusOr<float> Float() const;
  StatusOr<int64_t> Int() const;

 private:
  std::string Name(int i) const;
  const KernelContext& ctx_;
  const char* name_;
  ArgRange range_;
};

// Gives the handle of a resource that another op makes.
template <typename T>
class TreeHandleKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(name_, ResourceNameOf(init));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override { return OutputHandle(ctx, 0, name_, T::kTypeName, {}); }
  bool IsExpensive() const override { return false; }

 private:
  ResourceName name_;
};

template <typename T>
Status TreeResourceExists(KernelContext& ctx) {
  const StatusOr<RefPtr<T>> found = FindResource<T>(ctx, 0);
  if (!found.ok() && !absl::IsNotFound(found.status())) return found.status();
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<bool>() = found.ok();
  return absl::OkStatus();
}

// Under the name of handle input 0, unless there is one already.
template <typename T>
Status MakeTreeResource(KernelContext& ctx, RefPtr<T> made) {
  ResourceName name;
  MR_RETURN_IF_ERROR(internal::HeldResource(ctx, 0, &name).status());
  const Status s = ctx.resources().Create<T>(name.container, name.name, std::move(made));
  return absl::IsAlreadyExists(s) ? absl::OkStatus() : s;
}

void RegisterTreeEnsembleKernels(KernelRegistry& registry);
void RegisterTreeGrowthKernels(KernelRegistry& registry);
void RegisterTreePredictionKernels(KernelRegistry& registry);
void RegisterTreeStatsKernels(KernelRegistry& registry);
void RegisterTreeSplitKernels(KernelRegistry& registry);
void RegisterTreeQuantileKernels(KernelRegistry& registry);
void RegisterForestKernels(KernelRegistry& registry);

}  // namespace millrace
