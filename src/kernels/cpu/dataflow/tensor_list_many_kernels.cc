// SPDX-License-Identifier: Apache-2.0
// CPU kernels: a tensor from the elements of a list, and a list of the parts of a tensor.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "kernels/cpu/array/array_kernels.h"
#include "kernels/cpu/dataflow/tensor_list.h"
#include "kernels/cpu/engine/strided_copy.h"

namespace millrace {
namespace {

// Copies items into `out` from start(i) on; zeros where one is missing.
void JoinItems(const KernelContext& ctx, int64_t n, ItemFn item, absl::FunctionRef<int64_t(int64_t)> start,
               Tensor* out) {
  if (n == 0 || out->num_elements() == 0) return;
  const DType dtype = out->dtype();
  const RunFn copy = RunFunctions(dtype).copy;
  const int64_t bytes = static_cast<int64_t>(DTypeSize(dtype));
  const double cost = 10 + static_cast<double>(out->TotalBytes()) / static_cast<double>(n) / 8;
  ctx.ParallelFor(n, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Tensor& t = item(i);
      const int64_t length = start(i + 1) - start(i);
      if (length == 0) continue;
      void* const at = ElementAt(out->mutable_raw(), dtype, start(i));
      if (t.IsInitialized()) {
        copy(at, t.raw(), length);
      } else if (IsPlain(dtype)) {  // objects are empty from the start
        std::memset(at, 0, static_cast<size_t>(length * bytes));
      }
    }
  });
}

// Output 0: n items along a new first dimension. `unknown`: see CommonShape.
Status StackItems(KernelContext& ctx, const TensorList& list, int64_t n, ItemFn item, const Tensor& node_shape,
                  absl::string_view unknown) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, ElementShapeFrom(node_shape));
  MR_ASSIGN_OR_RETURN(shape, MergeShapes(shape, list.shape()));
  MR_ASSIGN_OR_RETURN(const Shape element, CommonShape(n, item, shape, unknown));
  MR_ASSIGN_OR_RETURN(const Shape whole, element.WithInserted(0, n));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, whole));
  const int64_t size = element.num_elements();
  JoinItems(ctx, n, item, [size](int64_t i) { return i * size; }, out);
  return absl::OkStatus();
}

class StackKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(size_, init.Attr<int64_t>("num_elements"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const TensorList* list, ListFromInput(ctx, 0, ctx.output_dtype(0)));
    if (size_ != -1 && size_ != list->size()) {
      return InvalidArgument(
          "Operation expected a list with ", size_, " elements but got a list with ", list->size(), " elements.");
    }
    return StackItems(
        ctx, *list, list->size(), [&](int64_t i) -> const Tensor& { return (*list)[i]; }, ctx.input(1),
        list->size() == 0 ? "Tried to stack elements of an empty list with non-fully-defined element_shape"
                          : "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined "
                            "element_shape");
  }

 private:
  int64_t size_ = -1;
};

Status GatherItems(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const TensorList* list, ListFromInput(ctx, 0, ctx.output_dtype(0)));
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, ctx.input(1).IntValues());
  for (int64_t i : indices) {
    if (i < 0 || i >= list->size()) {
      return InvalidArgument("Trying to gather element ", i, " in a list with ", list->size(), " elements.");
    }
  }
  const auto item = [&](int64_t i) -> const Tensor& { return (*list)[indices[static_cast<size_t>(i)]]; };
  return StackItems(
      ctx, *list, static_cast<int64_t>(indices.size()), item, ctx.input(2),
      indices.empty() ? "Tried to gather zero elements from a list with non-fully-defined element_shape"
                      : "Tried to gather uninitialized tensors from a list with non-fully-defined element_shape");
}

Status CheckRows(const Tensor& t) {
  if (t.rank() > 0) return absl::OkStatus();
  return InvalidArgument("Tensor must be at least a vector, but saw shape: []");
}

// Row i of `t`, which has rank 1 at least.
StatusOr<Tensor> RowOf(KernelContext& ctx, const Tensor& t, int64_t i) {
  const Shape row = t.shape().WithoutDim(0);
  if (t.num_elements() == 0 && row.num_elements() == 0) return t.Reshaped(row);
  return ContiguousPart(ctx, t, i * row.num_elements(), row);
}

Status FromTensor(KernelContext& ctx) {
  const Tensor& t = ctx.input(0);
  MR_RETURN_IF_ERROR(CheckRows(t));
  MR_ASSIGN_OR_RETURN(PartialShape shape, ElementShapeFrom(ctx.input(1)));
  if (!shape.IsCompatibleWith(t.shape().WithoutDim(0))) {
    return InvalidArgument(
        "Specified a list with shape ", shape.ToString(), " from a tensor with shape ", t.shape().ToString());
  }
  auto list = MakeRef<TensorList>(t.dtype(), std::move(shape), -1);
  MR_RETURN_IF_ERROR(list->Resize(t.dim(0)));
  for (int64_t i = 0; i < t.dim(0); ++i) {
    MR_ASSIGN_OR_RETURN(Tensor row, RowOf(ctx, t, i));
    MR_RETURN_IF_ERROR(list->Set(i, std::move(row)));
  }
  return OutputList(ctx, 0, std::move(list));
}

// Sets the elements at `indices` to the rows of `t`; the list grows where they lie beyond its end.
Status ScatterInto(KernelContext& ctx, const Tensor& t, const Tensor& index_tensor, TensorList* list) {
  MR_RETURN_IF_ERROR(CheckRows(t));
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, index_tensor.IntValues());
  if (static_cast<int64_t>(indices.size()) != t.dim(0)) {
    return InvalidArgument("Invalid number of rows in input tensor. Expected: ", indices.size(), " Actual: ", t.dim(0));
  }
  int64_t size = list->size();
  for (int64_t i : indices) {
    if (i < 0) return InvalidArgument("Indices in TensorListScatter must all be non-negative, got ", i);
    size = std::max(size, i + 1);
  }
  if (size > list->size()) MR_RETURN_IF_ERROR(list->Resize(size));
  for (size_t k = 0; k < indices.size(); ++k) {
    MR_ASSIGN_OR_RETURN(Tensor row, RowOf(ctx, t, static_cast<int64_t>(k)));
    MR_RETURN_IF_ERROR(list->Set(indices[k], std::move(row)));
  }
  return absl::OkStatus();
}

// Scatter, and ScatterV2 with the size of the list (-1: as many as the indices need).
Status Scatter(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, ElementShapeFrom(ctx.input(2)));
  MR_RETURN_IF_ERROR(CheckRows(ctx.input(0)));
  MR_ASSIGN_OR_RETURN(const PartialShape row, PartialShape::Make(ctx.input(0).shape().dims().subspan(1)));
  if (!shape.IsCompatibleWith(row)) {
    return InvalidArgument(
        "Specified a list with shape ", shape.ToString(), " from a tensor with shape ", row.ToString());
  }
  auto list = MakeRef<TensorList>(ctx.input(0).dtype(), std::move(shape), -1);
  int64_t size = -1;
  if (ctx.num_inputs() > 3) {
    if (!ctx.input(3).shape().IsScalar()) {
      return InvalidArgument("num_elements must be a scalar, got shape: ", ctx.input(3).shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(size, ctx.input(3).IntScalar());
    if (size < -1) {
      return InvalidArgument("TensorListScatter expects num_elements >= -1, found: ", size);
    }
    if (size >= 0) MR_RETURN_IF_ERROR(list->Resize(size));
  }
  MR_RETURN_IF_ERROR(ScatterInto(ctx, ctx.input(0), ctx.input(1), list.get()));
  if (size >= 0 && list->size() > size) {
    return InvalidArgument(
        "TensorListScatter: Trying to scatter at index ", list->size() - 1, " in list with size ", size);
  }
  return OutputList(ctx, 0, std::move(list));
}

Status ScatterIntoExisting(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(ListFromInput(ctx, 0, ctx.input(1).dtype()).status());
  MR_ASSIGN_OR_RETURN(TensorList * list, TakeList(ctx, 0, 0));
  return ScatterInto(ctx, ctx.input(1), ctx.input(2), list);
}

// The shape without its first dimension, which it has if its rank is known.
StatusOr<PartialShape> RestOf(const PartialShape& shape) {
  if (!shape.has_rank()) return shape;
  return PartialShape::Make(absl::MakeConstSpan(shape.dims()).subspan(1));
}

// Concat, and ConcatV2 with the element shape and the lengths of missing elements as inputs.
class ConcatKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    if (!init.HasAttr("element_shape")) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(shape_, init.Attr<PartialShape>("element_shape"));
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const TensorList* list, ListFromInput(ctx, 0, ctx.output_dtype(0)));
    const int64_t n = list->size();
    MR_ASSIGN_OR_RETURN(const ShapeOfItems items, ItemsOf(ctx, *list));
    const Shape& rest = items.rest;
    MR_ASSIGN_OR_RETURN(Tensor * lengths, ctx.AllocateOutput(1, Shape::Vector(n)));
    std::vector<int64_t> rows(static_cast<size_t>(n) + 1, 0);  // where each element begins
    for (int64_t i = 0; i < n; ++i) {
      int64_t length;
      if ((*list)[i].IsInitialized()) {
        length = (*list)[i].dim(0);
      } else {
        MR_ASSIGN_OR_RETURN(length, MissingLength(ctx, i, items.first));
      }
      lengths->mutable_data<int64_t>()[i] = length;
      const size_t k = static_cast<size_t>(i);
      if (!CheckedAdd(rows[k], length, &rows[k + 1])) return InvalidArgument("the concatenated dimension overflows");
    }
    MR_ASSIGN_OR_RETURN(const Shape whole, rest.WithInserted(0, rows.back()));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, whole));
    const int64_t row = rest.num_elements();
    JoinItems(
        ctx, n, [&](int64_t i) -> const Tensor& { return (*list)[i]; },
        [&](int64_t i) { return rows[static_cast<size_t>(i)] * row; }, out);
    return absl::OkStatus();
  }

 private:
  struct ShapeOfItems {
    int64_t first = -1;  // dimension; -1: they differ in it, or nothing says it
    Shape rest;
  };

  StatusOr<ShapeOfItems> ItemsOf(KernelContext& ctx, const TensorList& list) const {
    PartialShape shape = shape_;
    if (ctx.num_inputs() > 1) {
      MR_ASSIGN_OR_RETURN(shape, ElementShapeFrom(ctx.input(1)));
    }
    MR_ASSIGN_OR_RETURN(shape, MergeShapes(shape, list.shape()));
    if (shape.has_rank() && shape.rank() == 0) {
      return InvalidArgument("Concat requires elements to be at least vectors, found scalars instead.");
    }
    ShapeOfItems items;
    if (shape.has_rank()) items.first = shape.dim(0);
    MR_ASSIGN_OR_RETURN(PartialShape rest, RestOf(shape));
    bool any = false;
    for (int64_t i = 0; i < list.size(); ++i) {
      const Tensor& t = list[i];
      if (!t.IsInitialized()) continue;
      if (t.rank() == 0) {
        return InvalidArgument("Concat saw a scalar shape at index ", i, " but requires at least vectors.");
      }
      if (!any && items.first == -1) items.first = t.dim(0);
      if (items.first != t.dim(0)) items.first = -1;
      any = true;
      MR_ASSIGN_OR_RETURN(rest, MergeShapes(rest, t.shape().WithoutDim(0)));
    }
    if (!rest.IsFullyDefined()) {
      return InvalidArgument(
          list.size() == 0
              ? "All except the first dimension must be fully defined when concating an empty tensor list"
              : "Trying to concat list with only uninitialized tensors but element_shape_except_first_dim_ "
                "is not fully defined",
          ". element_shape: ", shape.ToString());
    }
    MR_ASSIGN_OR_RETURN(items.rest, rest.ToShape());
    return items;
  }

  static StatusOr<int64_t> MissingLength(KernelContext& ctx, int64_t i, int64_t first) {
    if (ctx.num_inputs() < 3) {
      return InvalidArgument(
          "Concating lists with uninitialized tensors is not supported in this version of "
          "TensorListConcat. Consider updating your GraphDef to run the newer version.");
    }
    const auto lengths = ctx.input(2).flat<int64_t>();
    if (lengths.empty() && first >= 0) return first;
    if (i >= static_cast<int64_t>(lengths.size())) {
      return InvalidArgument("List contains uninitialized tensor at index ", i, " but leading_dims has only ",
                             lengths.size(), " elements.");
    }
    const int64_t length = lengths[static_cast<size_t>(i)];
    if (length < 0) return InvalidArgument("leading_dims[", i, "] is ", length);
    return length;
  }

  PartialShape shape_;
};

Status Split(KernelContext& ctx) {
  const Tensor& t = ctx.input(0);
  MR_RETURN_IF_ERROR(CheckRows(t));
  MR_ASSIGN_OR_RETURN(PartialShape shape, ElementShapeFrom(ctx.input(1)));
  if (shape.has_rank() && shape.rank() == 0) {
    return InvalidArgument("TensorListSplit requires element_shape to be at least of rank 1, but saw: []");
  }
  MR_ASSIGN_OR_RETURN(const PartialShape rest, RestOf(shape));
  if (!rest.IsCompatibleWith(t.shape().WithoutDim(0))) {
    return InvalidArgument(
        "tensor shape ", t.shape().ToString(), " is not compatible with element_shape ", shape.ToString());
  }
  if (ctx.input(2).rank() != 1) {
    return InvalidArgument("Expected lengths to be a vector, received shape: ", ctx.input(2).shape().ToString());
  }
  auto list = MakeRef<TensorList>(t.dtype(), std::move(shape), -1);
  const int64_t row = t.shape().WithoutDim(0).num_elements();
  int64_t begin = 0;
  for (int64_t length : ctx.input(2).flat<int64_t>()) {
    if (length < 0) return InvalidArgument("Invalid value in lengths: ", length);
    if (length > t.dim(0) - begin) {
      return InvalidArgument(
          "Attempting to slice [", begin, ", ", begin + length, "] from tensor with length ", t.dim(0));
    }
    MR_ASSIGN_OR_RETURN(const Shape part_shape, t.shape().WithDim(0, length));
    MR_ASSIGN_OR_RETURN(Tensor part, ContiguousPart(ctx, t, begin * row, part_shape));
    MR_RETURN_IF_ERROR(list->PushBack(std::move(part)));
    begin += length;
  }
  if (begin != t.dim(0)) {
    return InvalidArgument("Unused values in tensor. Length of tensor: ", t.dim(0), " Values used: ", begin);
  }
  return OutputList(ctx, 0, std::move(list));
}

}  // namespace

void RegisterTensorListManyKernels(KernelRegistry& r) {
  r.Add<StackKernel>({.op = "TensorListStack"});
  r.AddFn({.op = "TensorListGather"}, GatherItems);
  r.AddFn({.op = "TensorListFromTensor"}, FromTensor);
  r.AddFn({.op = "TensorListScatter"}, Scatter);
  r.AddFn({.op = "TensorListScatterV2"}, Scatter);
  r.AddFn({.op = "TensorListScatterIntoExistingList"}, ScatterIntoExisting);
  r.Add<ConcatKernel>({.op = "TensorListConcat"});
  r.Add<ConcatKernel>({.op = "TensorListConcatV2"});
  r.AddFn({.op = "TensorListSplit"}, Split);
}

}  // namespace millrace
