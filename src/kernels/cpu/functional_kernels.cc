// SPDX-License-Identifier: Apache-2.0
// CPU kernels around functional conditionals.
#include <algorithm>
#include <cstring>

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
    case DType::kString:
      return !t.data<TString>()->empty();
    case DType::kFloat:
      return *t.data<float>() != 0;
    case DType::kDouble:
      return *t.data<double>() != 0;
    case DType::kHalf:
      return static_cast<float>(*t.data<Half>()) != 0;
    case DType::kBFloat16:
      return static_cast<float>(*t.data<BFloat16>()) != 0;
    case DType::kComplex64:
      return *t.data<complex64>() != complex64(0);
    case DType::kComplex128:
      return *t.data<complex128>() != complex128(0);
    case DType::kResource:
    case DType::kVariant:
      return InvalidArgument("a ", DTypeName(t.dtype()), " is neither true nor false");
    default:
      return AnyByte(t.raw(), DTypeSize(t.dtype()));
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
  registry.AddFn({.op = "ToBool"}, ToBool);
}

}  // namespace millrace
