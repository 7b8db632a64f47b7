// SPDX-License-Identifier: Apache-2.0
// Segment*, UnsortedSegment*, SparseSegment* and their gradients.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/index_scatter.h"
#include "kernels/cpu/engine/index_segment.h"
#include "kernels/cpu/engine/row_ranges.h"
#include "kernels/cpu/index/index_kernels.h"

namespace millrace {
namespace {

// `first` followed by dimensions [from, ...) of `rest`.
StatusOr<Shape> RowsOfShape(int64_t first, const Shape& rest, int from) {
  std::vector<int64_t> dims = {first};
  for (int i = from; i < rest.rank(); ++i) dims.push_back(rest.dim(i));
  return Shape::Make(dims);
}

// CheckIndices with TensorFlow's words for these ops.
Status CheckPlaces(const Tensor& t, int64_t limit, absl::string_view what) {
  if (CheckIndices(what, t, limit).ok()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> values, t.IntValues());
  size_t i = 0;
  while (i + 1 < values.size() && InRange(values[i], limit)) ++i;
  if (what == "indices") {
    return InvalidArgument("Bad: indices[", i, "] == ", values[i], " out of range [0, ", limit, ")");
  }
  return InvalidArgument(what, " ", values[i], " out of range [0, ", limit, "), at ", i);
}

template <RowOp op, SegmentFinish finish>
Status SegmentKernel(KernelContext& ctx) {
  const Tensor& data = ctx.input(0);
  if (ctx.input(1).rank() != 1) {
    return InvalidArgument("segment_ids should be a vector. Got shape ", ctx.input(1).shape().ToString());
  }
  if (data.rank() < 1) return InvalidArgument("data must have at least one dimension, got a scalar");
  if (data.dim(0) != ctx.input(1).num_elements()) {
    return InvalidArgument("segment_ids should be the same size as dimension 0 of input. There are ",
                           ctx.input(1).num_elements(), " ids and ", data.dim(0), " rows");
  }
  const SegmentIds ids(ctx.input(1));
  MR_ASSIGN_OR_RETURN(int64_t count, SegmentCount(ids));
  MR_ASSIGN_OR_RETURN(Shape shape, RowsOfShape(count, data.shape(), 1));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  return ReduceSegments(
      ctx, {.op = op,
            .finish = finish,
            .dtype = data.dtype(),
            .data = data.raw(),
            .ids = ids,
            .width = DimProduct(data.shape(), 1, data.rank()),
            .out = out->mutable_raw()});
}

template <SegmentFinish finish>
Status SparseSegmentKernel(KernelContext& ctx) {
  const Tensor& data = ctx.input(0);
  MR_RETURN_IF_ERROR(RequireVector("indices", ctx.input(1)));
  MR_RETURN_IF_ERROR(RequireVector("segment_ids", ctx.input(2)));
  if (data.rank() < 1) return InvalidArgument("data must have at least one dimension, got a scalar");
  if (ctx.input(1).num_elements() != ctx.input(2).num_elements()) {
    return InvalidArgument("segment_ids and indices should have same size. There are ", ctx.input(1).num_elements(),
                           " indices and ", ctx.input(2).num_elements(), " ids");
  }
  MR_RETURN_IF_ERROR(CheckPlaces(ctx.input(1), data.dim(0), "indices"));
  MR_ASSIGN_OR_RETURN(WideIndices rows, WideIndices::Make(ctx, ctx.input(1)));
  const SegmentIds ids(ctx.input(2));
  MR_ASSIGN_OR_RETURN(int64_t used, SegmentCount(ids));
  int64_t count = used;
  if (ctx.num_inputs() > 3) {
    MR_RETURN_IF_ERROR(RequireScalar("num_segments", ctx.input(3)));
    MR_ASSIGN_OR_RETURN(count, ctx.input(3).IntScalar());
    if (count < used) return InvalidArgument("segment ids must be < num_segments: ", used - 1, ", ", count);
  }
  const int64_t width = DimProduct(data.shape(), 1, data.rank());
  MR_ASSIGN_OR_RETURN(Shape shape, RowsOfShape(count, data.shape(), 1));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  ZeroElements(out->dtype(), out->mutable_raw(), used * width, (count - used) * width);
  return ReduceSegments(
      ctx,
      {.op = RowOp::kAdd,
       .finish = finish,
       .dtype = data.dtype(),
       .data = data.raw(),
       .rows = rows.data(),
       .ids = ids,
       .width = width,
       .out = out->mutable_raw()});
}

// Every element becomes the result of an empty segment.
template <RowOp op>
void FillNeutral(Tensor* out) {
  if constexpr (op == RowOp::kAdd) {
    ZeroElements(out->dtype(), out->mutable_raw(), 0, out->num_elements());
  } else if constexpr (op == RowOp::kMul) {
    VisitNumberTypes(out->dtype(), [&]<typename T>() {
      std::fill_n(out->mutable_data<T>(), out->num_elements(), static_cast<T>(1.0f));
    });
  } else {
    VisitRealTypes(out->dtype(), [&]<typename T>() {
      std::fill_n(out->mutable_data<T>(), out->num_elements(), op == RowOp::kMax ? LowestOf<T>() : HighestOf<T>());
    });
  }
}

template <RowOp op>
Status UnsortedSegment(KernelContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor& ids = ctx.input(1);
  if (ctx.input(2).rank() != 0) {
    return InvalidArgument("num_segments should be a scalar, not shape ", ctx.input(2).shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(int64_t count, ctx.input(2).IntScalar());
  if (count < 0) return InvalidArgument("Input num_segments == ", count, " must not be negative.");
  bool leads = ids.rank() <= data.rank();
  for (int i = 0; leads && i < ids.rank(); ++i) leads = ids.dim(i) == data.dim(i);
  if (!leads) {
    return InvalidArgument(
        "data.shape = ", data.shape().ToString(), " does not start with segment_ids.shape = ", ids.shape().ToString());
  }
  if (data.num_elements() > 0) MR_RETURN_IF_ERROR(CheckIndicesBelow("segment_ids", ids, count));
  MR_ASSIGN_OR_RETURN(Shape shape, RowsOfShape(count, data.shape(), ids.rank()));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  FillNeutral<op>(out);
  RowScatter scatter{
      .op = op,
      .dtype = data.dtype(),
      .dst = out->mutable_raw(),
      .dst_rows = count,
      .updates = data.raw(),
      .width = DimProduct(data.shape(), ids.rank(), data.rank()),
      .keep_wide = true};
  const bool half = data.dtype() == DType::kHalf || data.dtype() == DType::kBFloat16;  // whose sums are rounded once
  if (ids.dtype() == DType::kInt32 && scatter.width == 1 && !half && ThreadsOf(ctx) == 1) {
    // Wide ones would be more memory than the rest.
    constexpr int64_t kBlock = 4096;
    const int32_t* const narrow = ids.data<int32_t>();
    const auto size = static_cast<int64_t>(DTypeSize(data.dtype()));
    int64_t wide[kBlock];
    scatter.rows = wide;
    for (int64_t i = 0; i < ids.num_elements(); i += kBlock) {
      scatter.n = std::min(kBlock, ids.num_elements() - i);
      std::copy(narrow + i, narrow + i + scatter.n, wide);
      scatter.updates = static_cast<const char*>(data.raw()) + i * size;
      MR_RETURN_IF_ERROR(ScatterRows(ctx, scatter));
    }
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(WideIndices rows, WideIndices::Make(ctx, ids));
  scatter.rows = rows.data();
  scatter.n = rows.size();
  return ScatterRows(ctx, scatter);
}

template <RowOp op>
Status ReduceSlice(KernelContext& ctx) {
  const Tensor &data = ctx.input(0), &indices = ctx.input(1);
  const bool pairs = indices.rank() == 2;
  if (data.rank() < 1) return InvalidArgument("data must have at least one dimension, got a scalar");
  if (pairs ? indices.dim(1) != 2 : indices.rank() != 1) {
    return InvalidArgument("indices must be a vector or have shape [n, 2], got ", indices.shape().ToString());
  }
  MR_RETURN_IF_ERROR(RequireScalar("axis", ctx.input(2)));
  MR_ASSIGN_OR_RETURN(int64_t given, ctx.input(2).IntScalar());
  if (given < 0) given += data.rank();
  if (!InRange(given, data.rank())) return InvalidArgument("axis is not in [-", data.rank(), ", ", data.rank(), ")");
  const int axis = static_cast<int>(given);
  const int64_t slices = pairs ? indices.dim(0) : std::max<int64_t>(indices.dim(0), 1) - 1;
  MR_ASSIGN_OR_RETURN(const Shape shape, data.shape().WithDim(axis, slices));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  FillNeutral<op>(out);
  const int64_t size = data.dim(axis), outer = DimProduct(shape, 0, axis);
  const int64_t width = DimProduct(shape, axis + 1, shape.rank());
  const int64_t row = width * static_cast<int64_t>(DTypeSize(data.dtype()));
  const SegmentIds places(indices);
  const std::vector<int64_t> same_row(static_cast<size_t>(width > 0 ? size : 0));
  for (int64_t s = 0; s < slices; ++s) {
    const int64_t begin = places[pairs ? 2 * s : s], end = std::min(places[pairs ? 2 * s + 1 : s + 1], size);
    if (begin >= end) continue;
    if (begin < 0) return InvalidArgument("slice ", s, " begins at ", begin, ", which is before the data");
    for (int64_t o = 0; o < outer && width > 0; ++o) {
      MR_RETURN_IF_ERROR(ScatterRows(
          ctx, {.op = op,
                .dtype = data.dtype(),
                .dst = static_cast<char*>(out->mutable_raw()) + (o * slices + s) * row,
                .dst_rows = 1,
                .rows = same_row.data(),
                .n = end - begin,
                .updates = static_cast<const char*>(data.raw()) + (o * size + begin) * row,
                .width = width,
                .keep_wide = true}));
    }
  }
  return absl::OkStatus();
}

// scaled[s, :] = grad[s, :] / (1, the members of s, or the root of their number), in type A.
template <typename T, typename A>
void ScaleRows(const T* grad, const int64_t* ids, int64_t n, int64_t segments, int64_t width, SegmentFinish finish,
               A* scaled) {
  std::vector<int64_t> members(static_cast<size_t>(segments));
  for (int64_t i = 0; i < n; ++i) ++members[static_cast<size_t>(ids[i])];
  for (int64_t s = 0; s < segments; ++s) {
    const double count = static_cast<double>(std::max<int64_t>(members[static_cast<size_t>(s)], 1));
    const double divisor =
        finish == SegmentFinish::kNone ? 1 : (finish == SegmentFinish::kMean ? count : std::sqrt(count));
    const A scale = static_cast<A>(1.0 / divisor);
    for (int64_t k = 0; k < width; ++k) scaled[s * width + k] = static_cast<A>(grad[s * width + k]) * scale;
  }
}

template <SegmentFinish finish>
Status SparseSegmentGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.input(0);
  MR_RETURN_IF_ERROR(RequireVector("indices", ctx.input(1)));
  MR_RETURN_IF_ERROR(RequireVector("segment_ids", ctx.input(2)));
  MR_RETURN_IF_ERROR(RequireScalar("output_dim0", ctx.input(3)));
  MR_ASSIGN_OR_RETURN(int64_t count, ctx.input(3).IntScalar());
  if (count < 0) return InvalidArgument("output_dim0 must not be negative, got ", count);
  if (grad.rank() < 1) return InvalidArgument("grad must have at least one dimension, got a scalar");
  if (ctx.input(1).num_elements() != ctx.input(2).num_elements()) {
    return InvalidArgument("segment_ids and indices should have same size. There are ", ctx.input(1).num_elements(),
                           " indices and ", ctx.input(2).num_elements(), " ids");
  }
  MR_RETURN_IF_ERROR(CheckPlaces(ctx.input(1), count, "Index"));
  MR_RETURN_IF_ERROR(CheckPlaces(ctx.input(2), grad.dim(0), "Segment id"));
  MR_ASSIGN_OR_RETURN(WideIndices rows, WideIndices::Make(ctx, ctx.input(1)));
  MR_ASSIGN_OR_RETURN(WideIndices ids, WideIndices::Make(ctx, ctx.input(2)));
  MR_ASSIGN_OR_RETURN(Shape shape, RowsOfShape(count, grad.shape(), 1));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  ZeroElements(out->dtype(), out->mutable_raw(), 0, out->num_elements());
  const int64_t width = DimProduct(grad.shape(), 1, grad.rank());
  if (out->num_elements() == 0 || rows.size() == 0) return absl::OkStatus();
  Status status;
  VisitTypes<float, double, Half, BFloat16>(grad.dtype(), [&]<typename T>() {
    using A = Accumulator<T>;
    status = [&]() -> Status {
      MR_ASSIGN_OR_RETURN(Tensor scaled, ctx.AllocateTemp(DTypeOf<A>::value, grad.shape()));
      ScaleRows(grad.data<T>(), ids.data(), ids.size(), grad.dim(0), width, finish, scaled.mutable_data<A>());
      Tensor sums;
      if (!std::is_same_v<A, T>) {
        MR_ASSIGN_OR_RETURN(sums, ctx.AllocateTemp(DTypeOf<A>::value, shape));
        ZeroElements(sums.dtype(), sums.mutable_raw(), 0, sums.num_elements());
      }
      A* dst = std::is_same_v<A, T> ? static_cast<A*>(out->mutable_raw()) : sums.mutable_data<A>();
      MR_RETURN_IF_ERROR(ScatterRows(
          ctx, {.op = RowOp::kAdd,
                .dtype = DTypeOf<A>::value,
                .dst = dst,
                .dst_rows = count,
                .rows = rows.data(),
                .n = rows.size(),
                .updates = scaled.raw(),
                .sources = ids.data(),
                .width = width}));
      if (!std::is_same_v<A, T>) {
        T* to = out->mutable_data<T>();
        for (int64_t i = 0; i < out->num_elements(); ++i) to[i] = static_cast<T>(dst[i]);
      }
      return absl::OkStatus();
    }();
  });
  return status;
}

}  // namespace

void RegisterSegmentKernels(KernelRegistry& r) {
  const std::vector<DType> numbers = Types("REAL|CPX"), reals = Types("REAL");
  auto spec = [](const char* op, const std::vector<DType>& types) {
    return KernelSpec{.op = op, .types = {{"T", types}}};
  };
  r.AddFn(spec("SegmentSum", numbers), SegmentKernel<RowOp::kAdd, SegmentFinish::kNone>);
  r.AddFn(spec("SegmentMean", numbers), SegmentKernel<RowOp::kAdd, SegmentFinish::kMean>);
  r.AddFn(spec("SegmentProd", numbers), SegmentKernel<RowOp::kMul, SegmentFinish::kNone>);
  r.AddFn(spec("SegmentMax", reals), SegmentKernel<RowOp::kMax, SegmentFinish::kNone>);
  r.AddFn(spec("SegmentMin", reals), SegmentKernel<RowOp::kMin, SegmentFinish::kNone>);
  for (const char* op : {"UnsortedSegmentSum", "SegmentSumV2"})
    r.AddFn(spec(op, numbers), UnsortedSegment<RowOp::kAdd>);
  for (const char* op : {"UnsortedSegmentProd", "SegmentProdV2"}) {
    r.AddFn(spec(op, numbers), UnsortedSegment<RowOp::kMul>);
  }
  for (const char* op : {"UnsortedSegmentMax", "SegmentMaxV2"}) r.AddFn(spec(op, reals), UnsortedSegment<RowOp::kMax>);
  for (const char* op : {"UnsortedSegmentMin", "SegmentMinV2"}) r.AddFn(spec(op, reals), UnsortedSegment<RowOp::kMin>);
  r.AddFn(spec("ReduceSliceSum", numbers), ReduceSlice<RowOp::kAdd>);
  r.AddFn(spec("ReduceSliceProd", numbers), ReduceSlice<RowOp::kMul>);
  r.AddFn(spec("ReduceSliceMax", reals), ReduceSlice<RowOp::kMax>);
  r.AddFn(spec("ReduceSliceMin", reals), ReduceSlice<RowOp::kMin>);
}

void RegisterSparseSegmentKernels(KernelRegistry& r) {
  r.AddFn({.op = "SparseSegmentSum"}, SparseSegmentKernel<SegmentFinish::kNone>);
  r.AddFn({.op = "SparseSegmentMean"}, SparseSegmentKernel<SegmentFinish::kMean>);
  r.AddFn({.op = "SparseSegmentSqrtN"}, SparseSegmentKernel<SegmentFinish::kSqrtN>);
  r.AddFn({.op = "SparseSegmentSumWithNumSegments"}, SparseSegmentKernel<SegmentFinish::kNone>);
  r.AddFn({.op = "SparseSegmentMeanWithNumSegments"}, SparseSegmentKernel<SegmentFinish::kMean>);
  r.AddFn({.op = "SparseSegmentSqrtNWithNumSegments"}, SparseSegmentKernel<SegmentFinish::kSqrtN>);
  r.AddFn({.op = "SparseSegmentSumGrad"}, SparseSegmentGrad<SegmentFinish::kNone>);
  r.AddFn({.op = "SparseSegmentMeanGrad"}, SparseSegmentGrad<SegmentFinish::kMean>);
  r.AddFn({.op = "SparseSegmentSqrtNGrad"}, SparseSegmentGrad<SegmentFinish::kSqrtN>);
}

}  // namespace millrace
