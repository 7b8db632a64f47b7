// SPDX-License-Identifier: Apache-2.0
// CPU kernels around functional conditionals: truth, and what stands for values that a branch does not compute.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/dataflow/batch_kernels.h"
#include "kernels/cpu/dataflow/call_kernels.h"
#include "kernels/cpu/dataflow/optional.h"
#include "kernels/cpu/dataflow/tensor_list.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

bool AnyByte(const void* data, size_t size) {
  const auto* p = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) {
    if (p[i] != 0) return true;
  }
  return false;
}

// Of one element. -0 counts as 0.
StatusOr<bool> IsTrue(const Tensor& t) {
  switch (t.dtype()) {
    case DType::kString: return !t.data<TString>()->empty();
    case DType::kFloat: return *t.data<float>() != 0;
    case DType::kDouble: return *t.data<double>() != 0;
    case DType::kHalf: return static_cast<float>(*t.data<Half>()) != 0;
    case DType::kBFloat16: return static_cast<float>(*t.data<BFloat16>()) != 0;
    case DType::kComplex64: return *t.data<complex64>() != complex64(0);
    case DType::kComplex128: return *t.data<complex128>() != complex128(0);
    case DType::kResource:
    case DType::kVariant: return InvalidArgument("a ", DTypeName(t.dtype()), " is neither true nor false");
    default: return AnyByte(t.raw(), DTypeSize(t.dtype()));
  }
}

Status ToBool(KernelContext& ctx) {
  const Tensor& t = ctx.input(0);
  bool result = t.num_elements() > 0;
  if (t.shape().rank() == 0) {
    MR_ASSIGN_OR_RETURN(result, IsTrue(t));
  }
  ctx.set_output(0, Tensor::Scalar(result));
  return absl::OkStatus();
}

// How deep optionals are nested in a value, also by way of lists, whose own depth is limited.
int DepthOf(const Tensor& value) {
  if (value.dtype() != DType::kVariant) return 0;
  int depth = 0;
  for (const Variant& v : value.flat<Variant>()) {
    if (const auto* optional = v.As<Optional>()) depth = std::max(depth, optional->depth());
    const TensorList* list = ListIn(v);
    if (list == nullptr || list->dtype() != DType::kVariant) continue;
    for (int64_t i = 0; i < list->size(); ++i) {
      if ((*list)[i].IsInitialized()) depth = std::max(depth, DepthOf((*list)[i]));
    }
  }
  return depth;
}

}  // namespace

StatusOr<Variant> MakeOptional(std::vector<Tensor> components) {
  constexpr int kMaxDepth = 64;
  int depth = 0;
  for (const Tensor& t : components) depth = std::max(depth, DepthOf(t));
  if (depth >= kMaxDepth) return InvalidArgument("optionals are nested more than ", kMaxDepth, " deep");
  return Variant(RefPtr<VariantValue>(MakeRef<Optional>(std::move(components), depth + 1)));
}

Status OutputOptional(KernelContext& ctx, std::vector<Tensor> components) {
  MR_ASSIGN_OR_RETURN(Variant optional, MakeOptional(std::move(components)));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<Variant>() = std::move(optional);
  return absl::OkStatus();
}

namespace {

Status OptionalNone(KernelContext& ctx) { return OutputOptional(ctx, {}); }

Status OptionalFromValue(KernelContext& ctx) {
  std::vector<Tensor> components;
  for (int i = 0; i < ctx.num_inputs(); ++i) components.push_back(ctx.input(i));
  return OutputOptional(ctx, std::move(components));
}

StatusOr<const Optional*> OptionalFromInput(const KernelContext& ctx) {
  const Tensor& t = ctx.input(0);
  const Optional* optional = t.shape().IsScalar() ? t.data<Variant>()->As<Optional>() : nullptr;
  if (optional == nullptr) return InvalidArgument("the input is not an optional: ", t.DebugString());
  return optional;
}

Status OptionalHasValue(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const Optional* optional, OptionalFromInput(ctx));
  ctx.set_output(0, Tensor::Scalar(!optional->components().empty()));
  return absl::OkStatus();
}

class OptionalGetValueKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(shapes_, init.Attr<std::vector<PartialShape>>("output_shapes"));
    if (static_cast<int>(shapes_.size()) == init.num_outputs()) return absl::OkStatus();
    return InvalidArgument("output_shapes has ", shapes_.size(), " shapes for ", init.num_outputs(), " outputs");
  }
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Optional* optional, OptionalFromInput(ctx));
    const std::vector<Tensor>& values = optional->components();
    if (values.empty()) return InvalidArgument("The given optional does not have a value.");
    if (values.size() != shapes_.size()) {
      return InvalidArgument("the optional has ", values.size(), " components, wanted ", shapes_.size());
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const DType want = ctx.output_dtype(static_cast<int>(i));
      if (values[i].dtype() != want || !shapes_[i].IsCompatibleWith(values[i].shape())) {
        return InvalidArgument("component ", i, " of the optional is ", DTypeName(values[i].dtype()),
                               values[i].shape().ToString(), ", wanted ", DTypeName(want), shapes_[i].ToString());
      }
      ctx.set_output(static_cast<int>(i), values[i]);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<PartialShape> shapes_;
};

class FakeParamKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const PartialShape shape, init.Attr<PartialShape>("shape"));
    std::vector<int64_t> dims;
    for (int i = 0; i < (shape.has_rank() ? shape.rank() : 1); ++i) {
      dims.push_back(shape.has_rank() ? std::max<int64_t>(shape.dim(i), 0) : 0);
    }
    MR_ASSIGN_OR_RETURN(shape_, Shape::Make(dims));
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape_));
    if (IsPlain(out->dtype()) && out->num_elements() > 0) {
      std::memset(out->mutable_raw(), 0, static_cast<size_t>(out->num_elements()) * DTypeSize(out->dtype()));
    }
    return absl::OkStatus();
  }

 private:
  Shape shape_;
};

}  // namespace

void RegisterFunctionalKernels(KernelRegistry& registry) {
  registry.Add<FakeParamKernel>({.op = "FakeParam"});
  RegisterCallKernels(registry);
  RegisterBatchKernels(registry);
  registry.AddFn({.op = "ToBool"}, ToBool);
  registry.AddFn({.op = "OptionalNone"}, OptionalNone);
  registry.AddFn({.op = "OptionalFromValue"}, OptionalFromValue);
  registry.AddFn({.op = "OptionalHasValue"}, OptionalHasValue);
  registry.Add<OptionalGetValueKernel>({.op = "OptionalGetValue"});
}

}  // namespace millrace
