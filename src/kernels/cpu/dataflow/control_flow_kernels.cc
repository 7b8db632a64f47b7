// SPDX-License-Identifier: Apache-2.0
// Kernels of any device: what control flow ops do with their values. Which frame and iteration the values then belong
// to, and what dead values keep from running, is the executor's business.
#include "kernels/cpu/any_device.h"
#include "kernels/cpu/array/array_kernels.h"

namespace millrace {
namespace {

StatusOr<int> BranchOf(const KernelContext& ctx) {
  const Tensor& pred = ctx.input(1);
  if (pred.rank() != 0) {
    return InvalidArgument("The second input must be a scalar, but it has shape ", pred.shape().ToString());
  }
  return *pred.data<bool>() ? 1 : 0;
}

Status Switch(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const int branch, BranchOf(ctx));
  ctx.Forward(0, branch);
  return absl::OkStatus();
}

Status RefSwitch(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const int branch, BranchOf(ctx));
  ctx.ForwardRef(0, branch);
  return absl::OkStatus();
}

// Called once an input is live; the executor never calls it when all are dead.
Status MergeInputs(KernelContext& ctx, bool is_ref) {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (ctx.is_dead(i)) continue;
    if (is_ref) {
      ctx.ForwardRef(i, 0);
    } else {
      ctx.Forward(i, 0);
    }
    MR_ASSIGN_OR_RETURN(Tensor * index, ctx.AllocateOutput(1, Shape()));
    *index->mutable_data<int32_t>() = i;
    return absl::OkStatus();
  }
  return Internal("Merge ran without a live input");
}

Status Pass(KernelContext& ctx) {
  ctx.Forward(0, 0);
  return absl::OkStatus();
}

Status PassRef(KernelContext& ctx) {
  ctx.ForwardRef(0, 0);
  return absl::OkStatus();
}

Status LoopCond(KernelContext& ctx) {
  if (ctx.input(0).rank() != 0) {
    return InvalidArgument(
        "The predicate of a loop must be a scalar, but it has shape ", ctx.input(0).shape().ToString());
  }
  return Pass(ctx);
}

Status RefSelect(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const int64_t index, IntScalarOf(ctx.input(0), "index"));
  if (index < 0 || index >= ctx.num_inputs() - 1) {
    return InvalidArgument("Index must be in the range [0, ", ctx.num_inputs() - 1, ") but got ", index);
  }
  ctx.ForwardRef(static_cast<int>(index) + 1, 0);
  return absl::OkStatus();
}

class AbortKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(message_, init.Attr<std::string>("error_msg"));
    MR_ASSIGN_OR_RETURN(quiet_, init.Attr<bool>("exit_without_error"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext&) override { return quiet_ ? absl::OkStatus() : Aborted(message_); }
  bool IsExpensive() const override { return false; }

 private:
  std::string message_;
  bool quiet_ = false;
};

}  // namespace

void AddControlFlowKernels(AnyDeviceKernels& r) {
  r.AddCheap("Switch", {"pred"}, Switch);
  r.AddCheap("RefSwitch", {"pred"}, RefSwitch);
  r.AddCheap("Merge", {"value_index"}, [](KernelContext& ctx) { return MergeInputs(ctx, false); });
  r.AddCheap("RefMerge", {"value_index"}, [](KernelContext& ctx) { return MergeInputs(ctx, true); });
  for (const char* op : {"Enter", "Exit", "NextIteration"}) {
    r.AddCheap(op, {}, Pass);
    r.AddCheap(absl::StrCat("Ref", op), {}, PassRef);
  }
  r.AddCheap("LoopCond", {"input", "output"}, LoopCond);
  r.AddCheap("ControlTrigger", {}, [](KernelContext&) { return absl::OkStatus(); });
  r.AddCheap("RefSelect", {"index"}, RefSelect);
}

void RegisterControlFlowKernels(KernelRegistry& r) { r.Add<AbortKernel>({.op = "Abort"}); }

}  // namespace millrace
