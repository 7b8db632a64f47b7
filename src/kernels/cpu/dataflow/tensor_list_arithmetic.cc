// SPDX-License-Identifier: Apache-2.0
// CPU kernels: ZerosLike and AddN of variants, with which gradients of lists and of optionals are started and summed.
#include "kernels/cpu/dataflow/optional.h"
#include "kernels/cpu/dataflow/tensor_array.h"
#include "kernels/cpu/dataflow/tensor_list.h"

namespace millrace {
namespace {

StatusOr<Tensor> ZerosLikeTensor(const Tensor& t) {
  if (t.dtype() != DType::kVariant) return Tensor::Zeros(t.dtype(), t.shape());
  MR_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Make(DType::kVariant, t.shape()));
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    MR_ASSIGN_OR_RETURN(zeros.mutable_data<Variant>()[i], ZerosLikeVariant(t.data<Variant>()[i]));
  }
  return zeros;
}

// a += b.
Status AddTensor(Tensor* a, const Tensor& b) {
  if (a->dtype() != DType::kVariant || b.dtype() != DType::kVariant) return AddInPlace(a, b, HostAllocator());
  if (!(a->shape() == b.shape())) {
    return InvalidArgument(
        "Trying to add variants of different shapes: ", a->shape().ToString(), " and ", b.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(Tensor sum, Tensor::Make(DType::kVariant, a->shape()));
  for (int64_t i = 0; i < b.num_elements(); ++i) {
    MR_ASSIGN_OR_RETURN(sum.mutable_data<Variant>()[i], AddVariants(a->data<Variant>()[i], b.data<Variant>()[i]));
  }
  *a = std::move(sum);
  return absl::OkStatus();
}

// sum += b, element by element; one that was never set is a zero.
Status AddList(TensorList* sum, const TensorList& b) {
  if (sum->dtype() != b.dtype()) {
    return InvalidArgument("Trying to add two lists of tensors of different dtypes: ", DTypeName(sum->dtype()), " and ",
                           DTypeName(b.dtype()));
  }
  if (sum->size() != b.size()) {
    return InvalidArgument(
        "Trying to add two lists of tensors with different lengths: ", sum->size(), " and ", b.size());
  }
  auto shape = sum->shape().Merge(b.shape());
  if (!shape.ok()) {
    return InvalidArgument(
        "Trying to add two lists of tensors with incompatible element shapes: ", sum->shape().ToString(), " and ",
        b.shape().ToString());
  }
  sum->set_shape(*std::move(shape));
  for (int64_t i = b.NextInUse(0); i < b.size(); i = b.NextInUse(i + 1)) {
    if (!b[i].IsInitialized()) continue;
    if ((*sum)[i].IsInitialized()) {
      MR_RETURN_IF_ERROR(AddTensor(sum->MutableItem(i), b[i]));
    } else {
      MR_RETURN_IF_ERROR(sum->Set(i, b[i]));
    }
  }
  return absl::OkStatus();
}

StatusOr<Variant> ZerosLikeOptional(const Optional& o) {
  std::vector<Tensor> zeros;
  for (const Tensor& t : o.components()) {
    MR_ASSIGN_OR_RETURN(Tensor zero, ZerosLikeTensor(t));
    zeros.push_back(std::move(zero));
  }
  return MakeOptional(std::move(zeros));
}

// Component by component; both have a value, or none.
StatusOr<Variant> AddOptionals(const Optional& a, const Optional& b) {
  const size_t n = a.components().size();
  if ((n == 0) != b.components().empty()) {
    return InvalidArgument("Cannot add optionals because one has a value and the other doesn't.");
  }
  if (n != b.components().size()) {
    return InvalidArgument("Trying to add optionals of ", n, " and ", b.components().size(), " components");
  }
  std::vector<Tensor> sums = a.components();
  for (size_t i = 0; i < n; ++i) MR_RETURN_IF_ERROR(AddTensor(&sums[i], b.components()[i]));
  return MakeOptional(std::move(sums));
}

Status ZerosLikeKernel(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(Tensor zeros, ZerosLikeTensor(ctx.input(0)));
  ctx.set_output(0, std::move(zeros));
  return absl::OkStatus();
}

Status AddNScalars(KernelContext& ctx) {
  // The first list is changed in place when it dies here.
  MR_ASSIGN_OR_RETURN(TensorList * sum, TakeList(ctx, 0, 0));
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    MR_ASSIGN_OR_RETURN(const TensorList* list, ListFromInput(ctx, i));
    MR_RETURN_IF_ERROR(AddList(sum, *list));
  }
  return absl::OkStatus();
}

Status AddNKernel(KernelContext& ctx) {
  bool lists = true;
  for (int i = 0; i < ctx.num_inputs(); ++i) lists &= ListFromInput(ctx, i).ok();
  if (lists && ctx.num_inputs() > 1) return AddNScalars(ctx);
  Tensor sum = ctx.input(0);
  for (int i = 1; i < ctx.num_inputs(); ++i) MR_RETURN_IF_ERROR(AddTensor(&sum, ctx.input(i)));
  ctx.set_output(0, std::move(sum));
  return absl::OkStatus();
}

}  // namespace

StatusOr<Variant> ZerosLikeVariant(const Variant& v) {
  if (v.empty()) return Variant();
  if (const auto* optional = v.As<Optional>()) return ZerosLikeOptional(*optional);
  const TensorList* list = ListIn(v);
  if (list == nullptr) return Unimplemented("zeros like a variant that holds ", v.get()->TypeName());
  auto zeros = MakeRef<TensorList>(list->dtype(), list->shape(), list->max_size());
  MR_RETURN_IF_ERROR(zeros->Resize(list->size()));
  for (int64_t i = list->NextInUse(0); i < list->size(); i = list->NextInUse(i + 1)) {
    if (!(*list)[i].IsInitialized()) continue;
    MR_ASSIGN_OR_RETURN(Tensor item, ZerosLikeTensor((*list)[i]));
    MR_RETURN_IF_ERROR(zeros->Set(i, std::move(item)));
  }
  return Variant(RefPtr<VariantValue>(std::move(zeros)));
}

StatusOr<Variant> AddVariants(const Variant& a, const Variant& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  if (const auto *x = a.As<Optional>(), *y = b.As<Optional>(); x != nullptr && y != nullptr)
    return AddOptionals(*x, *y);
  const TensorList *first = ListIn(a), *second = ListIn(b);
  if (first == nullptr || second == nullptr) {
    return Unimplemented("the sum of variants that hold ", a.get()->TypeName(), " and ", b.get()->TypeName());
  }
  auto sum = MakeRef<TensorList>(*first);
  MR_RETURN_IF_ERROR(AddList(sum.get(), *second));
  return Variant(RefPtr<VariantValue>(std::move(sum)));
}

void RegisterTensorListArithmeticKernels(KernelRegistry& r) {
  const std::vector<DType> variant = {DType::kVariant};
  r.AddFn({.op = "ZerosLike", .types = {{"T", variant}}, .priority = 1}, ZerosLikeKernel);
  r.AddFn({.op = "AddN", .types = {{"T", variant}}}, AddNKernel);
}

}  // namespace millrace
