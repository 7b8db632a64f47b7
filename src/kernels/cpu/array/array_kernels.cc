// SPDX-License-Identifier: Apache-2.0
// CPU kernels: shape and movement of data.
#include "kernels/cpu/array/array_kernels.h"

#include "kernels/cpu/any_device.h"
#include "kernels/cpu/engine/strided_copy.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

// False for a dtype without integers.
bool ReadInts(const Tensor& t, Ints* out) {
  out->resize(static_cast<size_t>(t.num_elements()));
  switch (t.dtype()) {
    case DType::kInt32: std::copy_n(t.data<int32_t>(), out->size(), out->begin()); return true;
    case DType::kInt64: std::copy_n(t.data<int64_t>(), out->size(), out->begin()); return true;
    case DType::kInt8: std::copy_n(t.data<int8_t>(), out->size(), out->begin()); return true;
    default: return false;
  }
}

}  // namespace

void AddCheapFn(KernelRegistry& registry, absl::string_view op, KernelRegistry::Fn fn) {
  registry.AddFactory({.op = std::string(op)}, [fn] { return std::make_unique<CheapFnKernel>(fn); });
}

StatusOr<Ints> IntVectorOf(const Tensor& t, absl::string_view what) {
  Ints out;
  if (t.rank() != 1) return InvalidArgument(what, " must be a vector, got shape ", t.shape().ToString());
  if (!ReadInts(t, &out)) return InvalidArgument(what, " must hold integers, got ", DTypeName(t.dtype()));
  return out;
}

StatusOr<int64_t> IntScalarOf(const Tensor& t, absl::string_view what) {
  Ints out;
  if (t.num_elements() != 1) return InvalidArgument(what, " must be a scalar, got shape ", t.shape().ToString());
  if (!ReadInts(t, &out)) return InvalidArgument(what, " must be an integer, got ", DTypeName(t.dtype()));
  return out[0];
}

StatusOr<Shape> ShapeOf(const Tensor& t, absl::string_view what) {
  MR_ASSIGN_OR_RETURN(Ints dims, IntVectorOf(t, what));
  auto shape = Shape::Make(absl::MakeConstSpan(dims));
  if (!shape.ok()) return Annotate(shape.status(), absl::StrCat(what, ": "));
  return shape;
}

StatusOr<Tensor> ContiguousPart(KernelContext& ctx, const Tensor& t, int64_t offset, const Shape& shape) {
  const void* from = ElementAt(t.raw(), t.dtype(), offset);
  if (t.buffer() != nullptr && shape.num_elements() > 0 &&
      reinterpret_cast<uintptr_t>(from) % Allocator::kAlignment == 0) {
    const auto begin = static_cast<const char*>(from) - static_cast<const char*>(t.buffer()->data());
    return Tensor::FromBuffer(t.dtype(), shape, RefPtr<Buffer>::Share(t.buffer()), static_cast<size_t>(begin));
  }
  MR_ASSIGN_OR_RETURN(Tensor copy, ctx.AllocateTemp(t.dtype(), shape));
  if (shape.num_elements() > 0) CopyElements(&ctx, t.dtype(), copy.mutable_raw(), from, shape.num_elements());
  return copy;
}

void RegisterArrayKernels(KernelRegistry& registry) {
  RegisterArraySourceKernels(registry);
  RegisterArrayFillKernels(registry);
  RegisterArrayReshapeKernels(registry);
  RegisterArrayJoinKernels(registry);
  RegisterArraySliceKernels(registry);
  RegisterArrayPadKernels(registry);
}

}  // namespace millrace
