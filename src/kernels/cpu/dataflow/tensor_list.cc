// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/dataflow/tensor_list.h"

#include <algorithm>
#include <cstring>
#include <typeinfo>

namespace millrace {
namespace {

// How deep the lists in `value` are nested.
int DepthOf(const Tensor& value, int (*depth_of)(const TensorList&)) {
  if (value.dtype() != DType::kVariant) return 0;
  int depth = 0;
  for (const Variant& v : value.flat<Variant>()) {
    if (const TensorList* list = ListIn(v)) depth = std::max(depth, depth_of(*list));
  }
  return depth;
}

}  // namespace

std::string TensorList::DebugString() const {
  return absl::StrCat("TensorList<", DTypeName(dtype_), shape_.ToString(), ", ", size(), " elements>");
}

Status TensorList::CheckElement(const Tensor& value) const {
  if (value.dtype() != dtype_) {
    return InvalidArgument(
        "Invalid data types; op elements ", DTypeName(value.dtype()), " but list elements ", DTypeName(dtype_));
  }
  if (!shape_.IsCompatibleWith(value.shape())) {
    return InvalidArgument(
        "Tried to put a tensor with incompatible shape into a list. Op element shape: ", value.shape().ToString(),
        " list shape: ", shape_.ToString());
  }
  if (DepthOf(value, [](const TensorList& l) { return l.depth_; }) >= kMaxDepth) {
    return InvalidArgument("lists are nested in lists more than ", kMaxDepth, " deep");
  }
  return absl::OkStatus();
}

Status TensorList::PushBack(Tensor value) {
  if (max_size_ >= 0 && size() >= max_size_) {
    return InvalidArgument("Tried to push item into a full list list size: ", size(), " max_num_elements: ", max_size_);
  }
  if (size() >= kMaxSize) return ResourceExhausted("a TensorList is limited to ", kMaxSize, " elements");
  MR_RETURN_IF_ERROR(CheckElement(value));
  depth_ = std::max(depth_, 1 + DepthOf(value, [](const TensorList& l) { return l.depth_; }));
  items_.PushBack(std::move(value));
  return absl::OkStatus();
}

Status TensorList::Set(int64_t i, Tensor value) {
  if (i < 0 || i >= size()) {
    return InvalidArgument("Trying to modify element ", i, " in a list with ", size(), " elements.");
  }
  MR_RETURN_IF_ERROR(CheckElement(value));
  depth_ = std::max(depth_, 1 + DepthOf(value, [](const TensorList& l) { return l.depth_; }));
  items_.Mutable(i) = std::move(value);
  return absl::OkStatus();
}

Status TensorList::Resize(int64_t n) {
  if (n < 0) return InvalidArgument("a TensorList cannot have ", n, " elements");
  if (n > kMaxSize) return ResourceExhausted("a TensorList of ", n, " elements; the limit is ", kMaxSize);
  items_.Resize(n);
  return absl::OkStatus();
}

const TensorList* ListIn(const Variant& v) {
  const VariantValue* value = v.get();
  return value != nullptr && typeid(*value) == typeid(TensorList) ? static_cast<const TensorList*>(value) : nullptr;
}

StatusOr<const TensorList*> ListFromInput(const KernelContext& ctx, int i) {
  const Tensor& t = ctx.input(i);
  if (t.dtype() != DType::kVariant || !t.shape().IsScalar()) {
    return InvalidArgument(
        "Input list must be a scalar; input ", i, " of node '", ctx.node_name(), "' is ", t.shape().ToString());
  }
  const TensorList* list = ListIn(*t.data<Variant>());
  if (list == nullptr) {
    return InvalidArgument("Input handle is not a list: input ", i, " of node '", ctx.node_name(), "' is ",
                           t.data<Variant>()->empty() ? "empty" : t.data<Variant>()->get()->TypeName());
  }
  return list;
}

StatusOr<const TensorList*> ListFromInput(const KernelContext& ctx, int i, DType dtype) {
  MR_ASSIGN_OR_RETURN(const TensorList* list, ListFromInput(ctx, i));
  if (list->dtype() != dtype) {
    return InvalidArgument(
        "Invalid data types; op elements ", DTypeName(dtype), " but list elements ", DTypeName(list->dtype()));
  }
  return list;
}

StatusOr<TensorList*> TakeList(KernelContext& ctx, int i, int o) {
  MR_ASSIGN_OR_RETURN(const TensorList* list, ListFromInput(ctx, i));
  Tensor taken = ctx.TakeInput(i);
  if (taken.IsInitialized() && list->HasOneRef()) {
    ctx.set_output(o, std::move(taken));
    return static_cast<TensorList*>(ctx.mutable_output(o)->mutable_data<Variant>()->get());
  }
  RefPtr<TensorList> copy = MakeRef<TensorList>(*list);
  TensorList* const raw = copy.get();
  MR_RETURN_IF_ERROR(OutputList(ctx, o, std::move(copy)));
  return raw;
}

Status OutputList(KernelContext& ctx, int o, RefPtr<TensorList> list) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, Shape()));
  *out->mutable_data<Variant>() = Variant(RefPtr<VariantValue>(std::move(list)));
  return absl::OkStatus();
}

StatusOr<PartialShape> ElementShapeFrom(const Tensor& t) {
  MR_ASSIGN_OR_RETURN(std::vector<int64_t> dims, t.IntValues());
  if (t.shape().IsScalar()) {
    if (dims[0] == -1) return PartialShape::Unknown();
    return InvalidArgument("The only valid scalar shape tensor is the fully unknown shape specified as -1.");
  }
  if (t.rank() != 1) return InvalidArgument("a shape must be a vector, got ", t.shape().ToString());
  return PartialShape::Make(dims);
}

StatusOr<PartialShape> MergeShapes(const PartialShape& a, const PartialShape& b) {
  auto merged = a.Merge(b);
  if (merged.ok()) return merged;
  if (a.rank() != b.rank()) {
    return InvalidArgument(
        "Incompatible ranks during merge: ", a.rank(), " vs. ", b.rank(), ", of ", a.ToString(), " and ", b.ToString());
  }
  return InvalidArgument("Incompatible shapes during merge: ", a.ToString(), " vs. ", b.ToString());
}

StatusOr<Shape> CommonShape(int64_t n, ItemFn item, const PartialShape& shape, absl::string_view unknown) {
  PartialShape common = shape;
  for (int64_t i = 0; i < n; ++i) {
    const Tensor& t = item(i);
    if (!t.IsInitialized()) continue;
    if (common.IsFullyDefined() && common.IsCompatibleWith(t.shape())) continue;
    MR_ASSIGN_OR_RETURN(common, MergeShapes(common, t.shape()));
  }
  if (!common.IsFullyDefined()) {
    return InvalidArgument(unknown, ": ", common.has_rank() ? common.ToString() : "<unknown>");
  }
  return common.ToShape();
}

StatusOr<Tensor> ZeroTensor(KernelContext& ctx, DType dtype, const Shape& shape) {
  MR_ASSIGN_OR_RETURN(Tensor zeros, ctx.AllocateTemp(dtype, shape));
  if (IsPlain(dtype) && zeros.TotalBytes() > 0) std::memset(zeros.mutable_raw(), 0, zeros.TotalBytes());
  return zeros;
}

}  // namespace millrace
