// SPDX-License-Identifier: Apache-2.0
// CPU kernels: several elements of a tensor array joined into one tensor, and one tensor spread over several.
//
// Spreading shares the tensor's buffer where elements begin at aligned addresses; joining copies each element once.
#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "kernels/cpu/array/array_kernels.h"
#include "kernels/cpu/dataflow/tensor_array_kernels.h"

namespace millrace {
namespace {

std::vector<int64_t> FirstIndices(int64_t n) {
  std::vector<int64_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

StatusOr<std::vector<int64_t>> IndicesFrom(const KernelContext& ctx, int i) {
  if (ctx.input(i).rank() != 1) {
    return InvalidArgument("Expected indices to be a vector, but received shape: ", ctx.input(i).shape().ToString());
  }
  return ctx.input(i).IntValues();
}

Status NoShapeForEmpty(const PartialShape& shape, const char* what) {
  return Unimplemented(
      "TensorArray has size zero, but element shape ", shape.ToString(),
      " is not fully defined. Currently only static shapes are supported when ", what, " zero-size TensorArrays.");
}

// Gather (with indices) and Pack.
class TensorArrayGatherKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(element_shape_, init.Attr<PartialShape>("element_shape"));
    has_indices_ = init.num_inputs() == 3;
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    TensorArray* array;
    MR_RETURN_IF_ERROR(FindStepObject(ctx, 0, &array));
    MR_RETURN_IF_ERROR(CheckElementType(ctx, *array, ctx.output_dtype(0)));
    MR_RETURN_IF_ERROR(array->MergeElementShape(element_shape_));
    std::vector<int64_t> indices;
    if (has_indices_) {
      MR_ASSIGN_OR_RETURN(indices, IndicesFrom(ctx, 1));
    } else {
      MR_ASSIGN_OR_RETURN(const int64_t size, array->JoinedSize());
      indices = FirstIndices(size);
    }
    if (indices.empty()) return OutputEmpty(ctx, *array);
    std::vector<Tensor> values;
    MR_RETURN_IF_ERROR(array->ReadMany(indices, ctx.device().allocator(), &values));
    for (size_t i = 1; i < values.size(); ++i) {
      if (values[i].shape() == values[0].shape()) continue;
      return InvalidArgument(
          "TensorArray has inconsistent shapes.  Index ", indices[0], " has shape: ", values[0].shape().ToString(),
          " but index ", indices[i], " has shape: ", values[i].shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, values[0].shape().WithInserted(0, static_cast<int64_t>(values.size())));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    JoinInto(ctx, values, out);
    return absl::OkStatus();
  }

 private:
  Status OutputEmpty(KernelContext& ctx, TensorArray& array) {
    MR_ASSIGN_OR_RETURN(const PartialShape element, array.ElementShape());
    if (!element.IsFullyDefined()) return NoShapeForEmpty(element, "packing");
    MR_ASSIGN_OR_RETURN(Shape shape, element.ToShape());
    MR_ASSIGN_OR_RETURN(shape, shape.WithInserted(0, 0));
    return ctx.AllocateOutput(0, shape).status();
  }

  PartialShape element_shape_;
  bool has_indices_ = true;
};

class TensorArrayConcatKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(rest_, init.Attr<PartialShape>("element_shape_except0"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    TensorArray* array;
    MR_RETURN_IF_ERROR(FindStepObject(ctx, 0, &array));
    MR_RETURN_IF_ERROR(CheckElementType(ctx, *array, ctx.output_dtype(0)));
    MR_ASSIGN_OR_RETURN(const int64_t size, array->JoinedSize());
    std::vector<Tensor> values;
    MR_RETURN_IF_ERROR(array->ReadMany(FirstIndices(size), ctx.device().allocator(), &values));
    MR_ASSIGN_OR_RETURN(Tensor * lengths, ctx.AllocateOutput(1, Shape::Vector(size)));
    MR_ASSIGN_OR_RETURN(const Shape shape, JoinedShape(values, lengths->mutable_data<int64_t>()));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    JoinInto(ctx, values, out);
    return absl::OkStatus();
  }

 private:
  StatusOr<Shape> JoinedShape(absl::Span<const Tensor> values, int64_t* lengths) const {
    if (values.empty()) {
      if (!rest_.IsFullyDefined()) return NoShapeForEmpty(rest_, "concatenating");
      MR_ASSIGN_OR_RETURN(const Shape rest, rest_.ToShape());
      return rest.WithInserted(0, 0);
    }
    int64_t total = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const Shape& shape = values[i].shape();
      if (shape.IsScalar()) {
        return InvalidArgument(
            "Concat saw a scalar shape at index ", i, " but requires at least vectors.  Did you mean to call pack?");
      }
      const Shape rest = shape.WithoutDim(0);
      if (!rest_.IsCompatibleWith(rest) || !(rest == values[0].shape().WithoutDim(0))) {
        return InvalidArgument(
            "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: ",
            values[0].shape().WithoutDim(0).ToString(), " but index ", i,
            " has (excepting dimension 0) shape: ", rest.ToString(), "; the node wants ", rest_.ToString());
      }
      lengths[i] = shape.dim(0);
      if (!CheckedAdd(total, lengths[i], &total)) return InvalidArgument("the concatenated dimension overflows");
    }
    return values[0].shape().WithDim(0, total);
  }

  PartialShape rest_;
};

// A part of `value` that begins at element `offset`.
StatusOr<Tensor> PartOf(KernelContext& ctx, const Tensor& value, int64_t offset, const Shape& shape) {
  if (value.num_elements() == 0 && shape.num_elements() == 0) return value.Reshaped(shape);
  return ContiguousPart(ctx, value, offset, shape);
}

// Scatter (handle, indices, value, flow) and Unpack (handle, value, flow).
Status ScatterElements(KernelContext& ctx) {
  const bool has_indices = ctx.num_inputs() == 4;
  TensorArray* array;
  MR_RETURN_IF_ERROR(FindStepObject(ctx, 0, &array));
  const Tensor& value = ctx.input(has_indices ? 2 : 1);
  MR_RETURN_IF_ERROR(CheckElementType(ctx, *array, value.dtype()));
  if (value.rank() == 0) {
    return InvalidArgument("Input value for unpack must be at least a vector but received shape: []");
  }
  const int64_t count = value.dim(0);
  std::vector<int64_t> indices;
  int64_t needs = count;
  if (has_indices) {
    MR_ASSIGN_OR_RETURN(indices, IndicesFrom(ctx, 1));
    if (static_cast<int64_t>(indices.size()) != count) {
      return InvalidArgument("Expected len(indices) == values.shape[0], but saw: ", indices.size(), " vs. ", count);
    }
    needs = 0;
    for (int64_t i : indices) needs = std::max(needs, i + 1);
  }
  MR_ASSIGN_OR_RETURN(const int64_t size, array->SizeForWrite(needs, true));
  if (!has_indices && size != count) {
    return InvalidArgument(
        "Input value must have first dimension equal to the array size (", count, " vs. ", size, ")");
  }
  if (!has_indices) indices = FirstIndices(count);
  std::vector<Tensor> values;
  values.reserve(indices.size());
  const Shape row = value.shape().WithoutDim(0);
  for (int64_t i = 0; i < count; ++i) {
    MR_ASSIGN_OR_RETURN(values.emplace_back(), PartOf(ctx, value, i * row.num_elements(), row));
  }
  MR_RETURN_IF_ERROR(array->WriteMany(indices, values));
  ctx.set_output(0, ctx.input(ctx.num_inputs() - 1));
  return absl::OkStatus();
}

Status SplitElements(KernelContext& ctx) {
  TensorArray* array;
  MR_RETURN_IF_ERROR(FindStepObject(ctx, 0, &array));
  const Tensor& value = ctx.input(1);
  MR_RETURN_IF_ERROR(CheckElementType(ctx, *array, value.dtype()));
  if (ctx.input(2).rank() != 1) {
    return InvalidArgument("Expected lengths to be a vector, received shape: ", ctx.input(2).shape().ToString());
  }
  if (value.rank() == 0) return InvalidArgument("Expected value to be at least a vector, but received shape: []");
  const absl::Span<const int64_t> lengths = ctx.input(2).flat<int64_t>();
  const int64_t count = static_cast<int64_t>(lengths.size());
  int64_t total = 0;
  for (int64_t length : lengths) {
    if (length < 0 || !CheckedAdd(total, length, &total)) return InvalidArgument("Invalid length: ", length);
  }
  if (total != value.dim(0)) {
    return InvalidArgument("Expected sum of lengths to be equal to values.shape[0], but sum of lengths is ", total,
                           " and value's shape is: ", value.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(const int64_t size, array->SizeForWrite(count, true));
  if (size != count) {
    return InvalidArgument("TensorArray's size is not equal to the size of lengths (", size, " vs. ", count,
                           "), and the TensorArray is not marked as dynamically resizeable");
  }
  std::vector<Tensor> values;
  values.reserve(lengths.size());
  const int64_t row = value.shape().WithoutDim(0).num_elements();
  int64_t begin = 0;
  for (int64_t length : lengths) {
    MR_ASSIGN_OR_RETURN(const Shape shape, value.shape().WithDim(0, length));
    MR_ASSIGN_OR_RETURN(values.emplace_back(), PartOf(ctx, value, begin * row, shape));
    begin += length;
  }
  MR_RETURN_IF_ERROR(array->WriteMany(FirstIndices(count), values));
  ctx.set_output(0, ctx.input(3));
  return absl::OkStatus();
}

}  // namespace

void RegisterTensorArrayManyKernels(KernelRegistry& r) {
  for (const char* version : {"", "V2", "V3"}) {
    r.Add<TensorArrayGatherKernel>({.op = absl::StrCat("TensorArrayGather", version)});
    r.Add<TensorArrayConcatKernel>({.op = absl::StrCat("TensorArrayConcat", version)});
    r.AddFn({.op = absl::StrCat("TensorArrayScatter", version)}, ScatterElements);
    r.AddFn({.op = absl::StrCat("TensorArraySplit", version)}, SplitElements);
  }
  r.Add<TensorArrayGatherKernel>({.op = "TensorArrayPack"});
  r.AddFn({.op = "TensorArrayUnpack"}, ScatterElements);
}

}  // namespace millrace
