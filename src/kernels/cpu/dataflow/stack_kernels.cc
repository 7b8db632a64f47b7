// SPDX-License-Identifier: Apache-2.0
// CPU kernels: stacks. A loop pushes what its backward loop pops, so neither copies a value nor looks anything up.
#include <vector>

#include "kernels/cpu/engine/step_object.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

constexpr char kContainer[] = "_stacks";

class Stack final : public StepObject {
 public:
  // A max_size of zero or less is none.
  Stack(std::string name, DType dtype, int64_t max_size)
      : StepObject(std::move(name)), dtype_(dtype), max_size_(max_size) {}

  DType dtype() const { return dtype_; }
  std::string DebugString() const override { return absl::StrCat("Stack[", name(), "]"); }

  Status Push(const Tensor& value) {
    absl::MutexLock lock(&mu_);
    if (closed_) return WasClosed();
    if (max_size_ > 0 && static_cast<int64_t>(values_.size()) >= max_size_) {
      return InvalidArgument("Stack[", name(), "] overflowed its max_size (", max_size_, ")");
    }
    values_.push_back(value);
    return absl::OkStatus();
  }

  Status Pop(Tensor* value) {
    absl::MutexLock lock(&mu_);
    if (closed_) return WasClosed();
    if (values_.empty()) return InvalidArgument("Stack[", name(), "] is empty when calling Pop().");
    *value = std::move(values_.back());
    values_.pop_back();
    return absl::OkStatus();
  }

  void Close() override {
    std::vector<Tensor> doomed;  // freed outside the lock
    absl::MutexLock lock(&mu_);
    closed_ = true;
    doomed.swap(values_);
  }

 private:
  Status WasClosed() const { return InvalidArgument("Stack[", name(), "] has already been closed."); }

  const DType dtype_;
  const int64_t max_size_;
  absl::Mutex mu_;
  std::vector<Tensor> values_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

class StackKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(dtype_, init.Attr<DType>("elem_type"));
    MR_ASSIGN_OR_RETURN(name_, init.Attr<std::string>("stack_name"));
    if (name_.empty()) name_ = init.node_name;
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    int64_t max_size = -1;
    if (ctx.num_inputs() > 0) {
      if (!ctx.input(0).shape().IsScalar()) {
        return InvalidArgument("Stack size must be a scalar, but had shape: ", ctx.input(0).shape().ToString());
      }
      MR_ASSIGN_OR_RETURN(max_size, ctx.input(0).IntScalar());
    }
    auto stack = MakeRef<Stack>(UniqueStepName(name_), dtype_, max_size);
    MR_RETURN_IF_ERROR(AddToStep(ctx.step(), kContainer, stack));
    return OutputStepHandle(ctx, 0, kContainer, std::move(stack));
  }
  bool IsExpensive() const override { return false; }

 private:
  DType dtype_ = DType::kInvalid;
  std::string name_;
};

class StackPushKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    Stack* stack;
    MR_RETURN_IF_ERROR(FindStepObject(ctx, 0, &stack));
    const Tensor& value = ctx.input(1);
    if (value.dtype() != stack->dtype()) {
      return InvalidArgument("Must have same data type for Push and Stack: ", stack->DebugString(), " holds ",
                             DTypeName(stack->dtype()), ", got ", DTypeName(value.dtype()));
    }
    MR_RETURN_IF_ERROR(stack->Push(value));
    ctx.set_output(0, value);
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }
};

class StackPopKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    Stack* stack;
    MR_RETURN_IF_ERROR(FindStepObject(ctx, 0, &stack));
    if (ctx.output_dtype(0) != stack->dtype()) {
      return Internal(
          stack->DebugString(), " holds ", DTypeName(stack->dtype()), ", popped as ", DTypeName(ctx.output_dtype(0)));
    }
    return stack->Pop(ctx.mutable_output(0));
  }
  bool IsExpensive() const override { return false; }
};

class StackCloseKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    Stack* stack;
    MR_RETURN_IF_ERROR(FindStepObject(ctx, 0, &stack));
    stack->Close();
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }
};

}  // namespace

void RegisterStackKernels(KernelRegistry& r) {
  for (const char* version : {"", "V2"}) {
    r.Add<StackKernel>({.op = absl::StrCat("Stack", version)});
    r.Add<StackPushKernel>({.op = absl::StrCat("StackPush", version)});
    r.Add<StackPopKernel>({.op = absl::StrCat("StackPop", version)});
    r.Add<StackCloseKernel>({.op = absl::StrCat("StackClose", version)});
  }
}

}  // namespace millrace
