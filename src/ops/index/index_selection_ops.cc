// SPDX-License-Identifier: Apache-2.0
// Ops: sets, selections, partitions, ranges.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "ops/index/index_ops.h"

namespace millrace {
namespace {

Status UniqueShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape x, c.WithRank(0, 1));
  c.set_output(0, PartialShape::UnknownOfRank(1));
  c.set_output(1, std::move(x));
  if (c.num_outputs() > 2) c.set_output(2, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

Status UniqueV2Shape(ShapeContext& c) {
  const PartialShape& x = c.input(0);
  MR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  MR_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> axes, c.ConstantInts(1));
  if (c.num_outputs() > 2) c.set_output(2, PartialShape::UnknownOfRank(1));
  c.set_output(1, PartialShape::UnknownOfRank(1));
  if (!axes) {
    if (x.has_rank()) c.set_output(0, PartialShape::UnknownOfRank(x.rank()));
    return absl::OkStatus();
  }
  if (axes->size() > 1) return InvalidArgument("axis must have at most one element, got ", axes->size());
  if (axes->empty()) MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  if (!x.has_rank()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(int axis, c.Axis(axes->empty() ? 0 : axes->front(), x.rank()));
  std::vector<int64_t> dims = x.dims();
  c.set_output(1, PartialShape::Of({dims[static_cast<size_t>(axis)]}));
  dims[static_cast<size_t>(axis)] = -1;
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Status ListDiffShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  MR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  c.set_output(0, PartialShape::UnknownOfRank(1));
  c.set_output(1, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

Status WhereShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRankAtLeast(0, 1));
  c.set_output(0, PartialShape::Of({-1, in.rank()}));
  return absl::OkStatus();
}

Status VectorShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape x, c.WithRank(0, 1));
  c.set_output(0, std::move(x));
  return absl::OkStatus();
}

Status OneHotShape(ShapeContext& c) {
  for (int i = 1; i < 4; ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  MR_ASSIGN_OR_RETURN(int64_t axis, c.Attr<int64_t>("axis"));
  if (axis < -1) return InvalidArgument("axis must be at least -1, got ", axis);
  MR_ASSIGN_OR_RETURN(std::optional<int64_t> depth, c.ConstantInt(1));
  if (depth && *depth < 0) return InvalidArgument("depth must not be negative, got ", *depth);
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  if (axis > in.rank()) return InvalidArgument("axis ", axis, " is not in [-1, ", in.rank(), "]");
  const int a = axis < 0 ? in.rank() : static_cast<int>(axis);
  c.set_output(0, JoinDims({DimRange(in, 0, a), {depth ? *depth : -1}, DimRange(in, a, in.rank())}));
  return absl::OkStatus();
}

Status ReverseSequenceShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape lengths, c.WithRank(1, 1));
  MR_ASSIGN_OR_RETURN(int64_t seq, c.Attr<int64_t>("seq_dim"));
  MR_ASSIGN_OR_RETURN(int64_t batch, c.Attr<int64_t>("batch_dim"));
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  if (!InRange(seq, in.rank())) return InvalidArgument("seq_dim must be < input rank: ", seq, " vs. ", in.rank());
  if (!InRange(batch, in.rank())) return InvalidArgument("batch_dim must be < input rank: ", batch, " vs. ", in.rank());
  std::vector<int64_t> dims = in.dims();
  int64_t& rows = dims[static_cast<size_t>(batch)];
  MR_ASSIGN_OR_RETURN(rows, c.MergeDim(rows, lengths.dim(0), "the number of sequence lengths"));
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Status DynamicPartitionShape(ShapeContext& c) {
  const PartialShape& data = c.input(0);
  const PartialShape& parts = c.input(1);
  if (!data.has_rank() || !parts.has_rank()) return absl::OkStatus();
  if (parts.rank() > data.rank()) {
    return InvalidArgument(
        "partitions of shape ", parts.ToString(), " do not lead the shape of data, ", data.ToString());
  }
  MR_RETURN_IF_ERROR(
      c.Merge(PartialShape::Of(DimRange(data, 0, parts.rank())), parts, "the shape of the partitions").status());
  const PartialShape out = JoinDims({{-1}, DimRange(data, parts.rank(), data.rank())});
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
  return absl::OkStatus();
}

Status DynamicStitchShape(ShapeContext& c) {
  const int n = c.num_inputs() / 2;
  PartialShape slice;
  bool all_known = true;
  int64_t rows = 0;
  for (int i = 0; i < n; ++i) {
    const PartialShape& ids = c.input(i);
    const PartialShape& data = c.input(n + i);
    MR_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> values, c.ConstantInts(i));
    if (values) {
      for (int64_t v : *values) {
        if (v < 0) return InvalidArgument("indices must not be negative, got ", v);
        rows = std::max(rows, v + 1);
      }
    } else {
      all_known = false;
    }
    if (!ids.has_rank() || !data.has_rank()) continue;
    if (ids.rank() > data.rank()) {
      return InvalidArgument(
          "indices[", i, "] of shape ", ids.ToString(), " do not lead the shape of data[", i, "], ", data.ToString());
    }
    MR_RETURN_IF_ERROR(c.Merge(PartialShape::Of(DimRange(data, 0, ids.rank())), ids, "the shape of indices").status());
    MR_ASSIGN_OR_RETURN(
        slice,
        c.Merge(slice, PartialShape::Of(DimRange(data, ids.rank(), data.rank())), "the shapes of the slices of data"));
  }
  if (slice.has_rank()) c.set_output(0, JoinDims({{all_known ? rows : -1}, slice.dims()}));
  return absl::OkStatus();
}

// As the kernel counts; what it refuses has no shape yet.
Status FloatRangeShape(ShapeContext& c) {
  double values[3];
  for (int i = 0; i < 3; ++i) {
    const Tensor* t = c.constant(i);
    if (t == nullptr) return absl::OkStatus();
    if (t->dtype() == DType::kFloat) {
      values[i] = static_cast<double>(*t->data<float>());
    } else if (t->dtype() == DType::kDouble) {
      values[i] = *t->data<double>();
    } else {
      return absl::OkStatus();
    }
  }
  const double count = std::ceil((values[1] - values[0]) / values[2]);
  if (count >= 0 && count < 0x1p62) c.set_output(0, PartialShape::Of({static_cast<int64_t>(count)}));
  return absl::OkStatus();
}

Status RangeShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  c.set_output(0, PartialShape::UnknownOfRank(1));
  if (c.input_dtype(0) != DType::kInt32 && c.input_dtype(0) != DType::kInt64) return FloatRangeShape(c);
  MR_ASSIGN_OR_RETURN(std::optional<int64_t> start, c.ConstantInt(0));
  MR_ASSIGN_OR_RETURN(std::optional<int64_t> limit, c.ConstantInt(1));
  MR_ASSIGN_OR_RETURN(std::optional<int64_t> delta, c.ConstantInt(2));
  if (delta && *delta == 0) return InvalidArgument("Requires delta != 0");
  if (!start || !limit || !delta) return absl::OkStatus();
  if (*delta > 0 ? *start > *limit : *start < *limit) {
    return InvalidArgument(
        "Requires start ", *delta > 0 ? "<= limit when delta > 0: " : ">= limit when delta < 0: ", *start, "/", *limit);
  }
  int64_t span;
  if (!CheckedSub(*limit, *start, &span)) return absl::OkStatus();  // the kernel refuses or answers
  if (span == 0) {
    c.set_output(0, PartialShape::Of({0}));
  } else if (*delta > 0 || span != std::numeric_limits<int64_t>::min()) {
    int64_t last;
    if (CheckedDiv(span > 0 ? span - 1 : span + 1, *delta, &last)) c.set_output(0, PartialShape::Of({last + 1}));
  }
  return absl::OkStatus();
}

Status LinSpaceShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  MR_ASSIGN_OR_RETURN(std::optional<int64_t> num, c.ConstantInt(2));
  if (num && *num < 1) return InvalidArgument("Requires num > 0: ", *num);
  c.set_output(0, PartialShape::Of({num ? *num : -1}));
  return absl::OkStatus();
}

Status ReverseSequenceGrad(GradContext& g) {
  MR_ASSIGN_OR_RETURN(int64_t seq, g.Attr<int64_t>("seq_dim"));
  MR_ASSIGN_OR_RETURN(int64_t batch, g.Attr<int64_t>("batch_dim"));
  g.set_dx(0, g.b().Op("ReverseSequence", {g.dy(), g.x(1)}, {{"seq_dim", seq}, {"batch_dim", batch}}));
  return g.status();
}

// Where each row went is what partitioning the row numbers tells; stitching by them puts the gradients back.
Status DynamicPartitionGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  Output shape = b.Shape(g.x(1));
  Output numbers = b.Op("Range", {b.Scalar<int32_t>(0), b.Op("Size", {g.x(1)}), b.Scalar<int32_t>(1)});
  Node* parts = b.OpNode("DynamicPartition", std::vector<Arg>{b.Reshape(numbers, shape), g.x(1)},
                         {{"num_partitions", int64_t{g.num_outputs()}}});
  if (!parts) return g.status();
  std::vector<Output> ids, grads;
  for (int i = 0; i < g.num_outputs(); ++i) {
    ids.push_back(parts->output(i));
    grads.push_back(g.dy(i));
  }
  g.set_dx(0, b.Reshape(b.Op("DynamicStitch", {ids, grads}), b.Shape(g.x(0))));
  return g.status();
}

Status DynamicStitchGrad(GradContext& g) {
  const int n = g.num_inputs() / 2;
  for (int i = 0; i < n; ++i) g.set_dx(n + i, TakeRows(g.b(), g.dy(), g.x(i)));
  return g.status();
}

void RegisterSetOps(OpRegistry& registry) {
  const char* no_gradient = "the choice of distinct values has no gradient defined; gather by idx instead";
  registry.Add("Unique(x:T) -> (y:T, idx:out_idx) | T:type; out_idx in IDX=i32")
      .Doc(
          "The distinct values of a vector in order of first appearance, and for each element the position of its "
          "value among them.")
      .Shape(UniqueShape)
      .NoGradient(no_gradient)
      .Example("i32[7]{4 1 4 2 1 9 4}");
  registry.Add("UniqueWithCounts(x:T) -> (y:T, idx:out_idx, count:out_idx) | T:type; out_idx in IDX=i32")
      .Doc("Unique, and how often each distinct value occurs.")
      .Shape(UniqueShape)
      .NoGradient(no_gradient)
      .Example("i64[6]{7 7 1 7 3 1}");
  registry.Add("UniqueV2(x:T, axis:Taxis) -> (y:T, idx:out_idx) | T:type; Taxis in IDX=i64; out_idx in IDX=i32")
      .Doc(
          "The distinct slices along one dimension, in order of first appearance. `axis` holds that dimension, or "
          "nothing when x is a vector.")
      .Shape(UniqueV2Shape)
      .NoGradient(no_gradient)
      .Example("i32[3,2]{1 2 3 4 1 2}, i64[1]{0}")
      .Example("f32[2,3]{1 2 1 3 4 3}, i32[1]{-1}");
  registry
      .Add(
          "UniqueWithCountsV2(x:T, axis:Taxis) -> (y:T, idx:out_idx, count:out_idx) | T:type; Taxis in IDX=i64; "
          "out_idx in IDX=i32")
      .Doc("UniqueV2, and how often each distinct slice occurs.")
      .Shape(UniqueV2Shape)
      .NoGradient(no_gradient)
      .Example("i32[4]{5 5 6 5}, i64[0]{}");
  registry.Add("ListDiff(x:T, y:T) -> (out:T, idx:out_idx) | T:type; out_idx in IDX=i32")
      .Doc("The elements of the vector x that do not occur in y, in order, and their positions in x.")
      .Shape(ListDiffShape)
      .NoGradient("a set difference has no gradient defined; gather by idx instead")
      .Example("i32[6]{1 2 3 4 5 6}, i32[3]{1 3 5}");
  registry.Add("Where(input:T) -> (index:i64) | T in NUM|bool=bool")
      .Doc("Coordinates of the elements that are true or not zero, one row each, in row-major order.")
      .Shape(WhereShape)
      .NotDifferentiable("the output counts positions")
      .Example("f32[2,3]{0 1 0 2 3 0}");
  registry.Add("InvertPermutation(x:T) -> (y:T) | T in IDX=i32")
      .Doc("The permutation that undoes x: y[x[i]] = i.")
      .Shape(VectorShape)
      .NotDifferentiable("a permutation is made of integers")
      .Example("i32[4]{2 0 3 1}");
  registry
      .Add(
          "OneHot(indices:TI, depth:i32, on_value:T, off_value:T) -> (output:T) | axis:int=-1; T:type; "
          "TI in IDX|u8|i8=i64")
      .Doc(
          "A new dimension of size `depth` at `axis` (-1: last) in which the position named by the index holds "
          "`on_value` and the others `off_value`. Indices outside [0, depth) give only `off_value`.")
      .Shape(OneHotShape)
      .NotDifferentiable("declared so: the position is discrete and the values are taken as constants")
      .Example("i64[3]{0 2 -1}, i32[]{3}, f32[]{1}, f32[]{0}")
      .Example("i32[2,2]{1 0 2 2}, i32[]{3}, f32[]{5}, f32[]{-1} | axis=1");
}

}  // namespace

void RegisterIndexSelectionOps(OpRegistry& registry) {
  RegisterSetOps(registry);
  registry
      .Add(
          "ReverseSequence(input:T, seq_lengths:Tlen) -> (output:T) | seq_dim:int; batch_dim:int=0; T:type; "
          "Tlen in IDX=i64")
      .Doc(
          "Reverses the first seq_lengths[i] entries along `seq_dim` of every slice i along `batch_dim`; the rest "
          "stays.")
      .Shape(ReverseSequenceShape)
      .Gradient(ReverseSequenceGrad)
      .Example("f32[2,4,3]~, i64[2]{3 1} | seq_dim=1")
      .Example("f32[4,2]~, i32[2]{0 4} | seq_dim=0; batch_dim=1");
  registry.Add("DynamicPartition(data:T, partitions:i32) -> (outputs:num_partitions*T) | num_partitions:int>=1; T:type")
      .Doc("Splits the elements or slices of `data` over num_partitions outputs, as `partitions` says, in order.")
      .Shape(DynamicPartitionShape)
      .Gradient(DynamicPartitionGrad)
      .Example("f32[5,2]~, i32[5]{0 2 0 1 2} | num_partitions=3");
  registry.Add("DynamicStitch(indices:N*i32, data:N*T) -> (merged:T) | N:int>=1; T:type")
      .Doc(
          "Merges slices: merged[indices[m][i...]] = data[m][i...]. Where an index repeats, the last slice stays; rows "
          "that no index names are zero.")
      .Shape(DynamicStitchShape)
      .Gradient(DynamicStitchGrad)
      .Example("i32[2]{3 1}, i32[2]{0 2}, f32[2,2]~, f32[2,2]~ | N=2");
  registry.Add("ParallelDynamicStitch(indices:N*i32, data:N*T) -> (merged:T) | N:int>=1; T:type")
      .Doc("DynamicStitch for indices that do not repeat.")
      .Shape(DynamicStitchShape)
      .Gradient(DynamicStitchGrad)
      .Example("i32[2]{3 1}, i32[2]{0 2}, f32[2,2]~, f32[2,2]~ | N=2");
  registry.Add("Range(start:Tidx, limit:Tidx, delta:Tidx) -> (output:Tidx) | Tidx in FLT|IDX=i32")
      .Doc("start, start + delta, start + 2 delta, ... up to but not including limit.")
      .Shape(RangeShape)
      .NotDifferentiable("declared so: ranges number things")
      .Example("i32[]{3}, i32[]{18}, i32[]{4}")
      .Example("f32[]{1}, f32[]{-1}, f32[]{-0.25}");
  registry.Add("LinSpace(start:T, stop:T, num:Tidx) -> (output:T) | T in FD|bf16; Tidx in IDX=i32")
      .Doc("`num` evenly spaced values from start to stop, both included.")
      .Shape(LinSpaceShape)
      .NotDifferentiable("declared so: ranges number things")
      .Example("f32[]{10}, f32[]{12}, i32[]{3}");
}

}  // namespace millrace
