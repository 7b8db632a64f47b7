// SPDX-License-Identifier: Apache-2.0
// Ops: counting values, and rows of different lengths.
#include <algorithm>

#include "ops/index/index_ops.h"

namespace millrace {
namespace {

Status BincountShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  MR_ASSIGN_OR_RETURN(std::optional<int64_t> size, c.ConstantInt(1));
  if (size && *size < 0) return InvalidArgument("size must not be negative, got ", *size);
  c.set_output(0, PartialShape::Of({size ? *size : -1}));
  return absl::OkStatus();
}

Status DenseBincountShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRankAtMost(0, 2));
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  MR_ASSIGN_OR_RETURN(const std::optional<int64_t> size, c.ConstantInt(1));
  if (size && *size < 0) return InvalidArgument("size must not be negative, got ", *size);
  const int64_t bins = size ? *size : -1;
  c.set_output(0, !in.has_rank()  ? PartialShape()
                  : in.rank() < 2 ? PartialShape::Of({bins})
                                  : PartialShape::Of({in.dim(0), bins}));
  return absl::OkStatus();
}

// Bins of each row where there are rows.
Status RaggedBincountShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape splits, c.WithRank(0, 1));
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  MR_ASSIGN_OR_RETURN(const std::optional<int64_t> size, c.ConstantInt(2));
  if (size && *size < 0) return InvalidArgument("size must not be negative, got ", *size);
  c.set_output(
      0, PartialShape::Of({splits.dim(0) < 0 ? -1 : std::max<int64_t>(splits.dim(0) - 1, 0), size ? *size : -1}));
  return absl::OkStatus();
}

Status SparseBincountShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(3));
  MR_ASSIGN_OR_RETURN(const std::optional<int64_t> size, c.ConstantInt(3));
  if (size && *size < 0) return InvalidArgument("size must not be negative, got ", *size);
  MR_ASSIGN_OR_RETURN(const PartialShape of, c.InputAsShape(2));
  if (!of.has_rank()) return absl::OkStatus();
  const int64_t bins = size ? *size : -1;
  c.set_output(0, of.rank() < 2 ? PartialShape::Of({bins}) : PartialShape::Of({of.dim(0), bins}));
  return absl::OkStatus();
}

// Of the op of this name the inputs say whether results have rows.
Status CountToSparseShape(ShapeContext& c) {
  int64_t rank = -1;
  if (c.op().name == "DenseCountSparseOutput") {
    const PartialShape& values = c.input(0);
    if (values.has_rank() && (values.rank() < 1 || values.rank() > 2)) {
      return InvalidArgument("values must be a vector or a matrix, got shape ", values.ToString());
    }
    if (values.has_rank()) rank = values.rank();
  } else if (c.op().name == "SparseCountSparseOutput") {
    MR_ASSIGN_OR_RETURN(const PartialShape of, c.WithRank(2, 1));
    if (of.dim(0) >= 1) rank = of.dim(0) > 1 ? 2 : 1;
  } else {
    rank = 2;
  }
  c.set_output(0, PartialShape::Of({-1, rank}));
  c.set_output(1, PartialShape::UnknownOfRank(1));
  c.set_output(2, PartialShape::Of({rank}));
  return absl::OkStatus();
}

// The numbers of the values go the same way as these, so each element of the result tells whose gradient it has: a
// value's, or the default's (-1).
Status RaggedToTensorGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  const Output values = g.x(1), axis = b.Scalar<int32_t>(0);
  const Output of_values = b.Shape(values), of_result = b.Shape(g.dy());
  const Output inner = VectorSlice(b, of_values, 1, -1);
  const Output count = b.Reshape(VectorSlice(b, of_values, 0, 1), b.Vector<int32_t>({}));
  const Output outer = b.Op("Slice", {of_result, b.Vector<int32_t>({0}), b.Sub(b.Shape(of_result), b.Shape(inner))});
  std::vector<Output> partitions;
  for (int i = 3; i < g.num_inputs(); ++i) partitions.push_back(g.x(i));
  MR_ASSIGN_OR_RETURN(const auto types, g.Attr<std::vector<std::string>>("row_partition_types"));
  const Output numbers = b.Op("Range", {axis, count, b.Scalar<int32_t>(1)});
  const Output owners = b.Op(
      "RaggedTensorToTensor", {outer, numbers, b.Scalar<int32_t>(-1), partitions}, {{"row_partition_types", types}});
  const Output owner = b.Reshape(owners, b.Vector<int32_t>({-1}));
  const Output rows = b.Reshape(g.dy(), b.Op("ConcatV2", {std::vector<Output>{b.Vector<int32_t>({-1}), inner}, axis}));
  g.set_dx(1, b.Op("UnsortedSegmentSum", {rows, owner, count}));
  // 0 for the default's, and none for the others.
  const Output of_default = b.Sub(b.Scalar<int32_t>(-1), b.Op("Minimum", {owner, axis}));
  const Output sum = b.Op("UnsortedSegmentSum", {rows, of_default, b.Scalar<int32_t>(1)});
  g.set_dx(2, SumToShapeOf(b, b.Reshape(sum, inner), g.x(2)));
  return g.status();
}

// The dimensions asked for; what is not asked for is known of the values' own.
Status RaggedToTensorShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape values, c.WithRankAtLeast(1, 1));
  MR_ASSIGN_OR_RETURN(const std::vector<std::string> types, c.Attr<std::vector<std::string>>("row_partition_types"));
  MR_ASSIGN_OR_RETURN(const PartialShape asked, c.WithRankAtMost(0, 1));
  PartialShape out;
  if (asked.rank() == 1) {
    MR_ASSIGN_OR_RETURN(out, c.InputAsShape(0));
  }
  if (values.has_rank()) {
    const bool has_size = !types.empty() && types[0] == "FIRST_DIM_SIZE";
    std::vector<int64_t> dims(types.size() + 1 - (has_size ? 1 : 0), -1);
    for (int d = 1; d < values.rank(); ++d) dims.push_back(values.dim(d));
    MR_ASSIGN_OR_RETURN(out, c.Merge(out, PartialShape::Of(dims), "shape"));
  }
  c.set_output(0, out);
  return absl::OkStatus();
}
Status RaggedRangeShape(ShapeContext& c) {
  int64_t rows = -1;
  bool all_scalars = true;
  for (int i = 0; i < 3; ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape s, c.WithRankAtMost(i, 1));
    all_scalars = all_scalars && s.has_rank() && s.rank() == 0;
    if (!s.has_rank() || s.rank() == 0) continue;
    MR_ASSIGN_OR_RETURN(rows, c.MergeDim(rows, s.dim(0), "the lengths of starts, limits and deltas"));
  }
  if (all_scalars) rows = 1;
  c.set_output(0, PartialShape::Of({rows < 0 ? -1 : rows + 1}));
  c.set_output(1, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

Status RaggedGatherShape(ShapeContext& c) {
  const ArgRange splits = c.input_arg("params_nested_splits");
  for (int i = splits.begin; i < splits.end; ++i) MR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
  MR_ASSIGN_OR_RETURN(const PartialShape values, c.WithRankAtLeast(splits.end, 1));
  const PartialShape& indices = c.input(splits.end + 1);
  MR_ASSIGN_OR_RETURN(const int64_t out_rank, c.Attr<int64_t>("OUTPUT_RAGGED_RANK"));
  if (indices.has_rank() && out_rank != splits.end - splits.begin + indices.rank() - 1) {
    return InvalidArgument("OUTPUT_RAGGED_RANK must be PARAMS_RAGGED_RANK ", splits.end - splits.begin,
                           " + indices' rank ", indices.rank(), " - 1, got ", out_rank);
  }
  // The first splits are of the rows that the dimensions of the indices make.
  for (int o = 0; o + 1 < c.num_outputs(); ++o) {
    int64_t rows = -1;
    if (indices.has_rank() && o < indices.rank()) {
      rows = PartialShape::Of(DimRange(indices, 0, o + 1)).num_elements();
    }
    c.set_output(o, PartialShape::Of({rows < 0 ? -1 : rows + 1}));
  }
  if (values.has_rank()) {
    c.set_output(c.num_outputs() - 1, JoinDims({{-1}, DimRange(values, 1, values.rank())}));
  }
  return absl::OkStatus();
}

// The numbers of the values go the same way as these.
Status RaggedGatherGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  const int values = g.num_inputs() - 2, out = g.num_outputs() - 1;
  std::vector<Output> splits;
  for (int i = 0; i < values; ++i) splits.push_back(g.x(i));
  MR_ASSIGN_OR_RETURN(const int64_t out_rank, g.Attr<int64_t>("OUTPUT_RAGGED_RANK"));
  const Output of_values = b.Shape(g.x(values), DType::kInt64);
  const Output count = b.Reshape(VectorSlice(b, of_values, 0, 1), b.Vector<int32_t>({}));
  const Output numbers = b.Op("Range", {b.Scalar<int64_t>(0), count, b.Scalar<int64_t>(1)});
  const Output gathered = b.Op("RaggedGather", {splits, numbers, g.x(values + 1)}, {{"OUTPUT_RAGGED_RANK", out_rank}});
  g.set_dx(values, RowSlices(b, g.dy(out), gathered.node->output(out), b.Shape(g.x(values))));
  return g.status();
}

Status RaggedToSparseShape(ShapeContext& c) {
  const int levels = c.num_inputs() - 1;
  for (int i = 0; i < levels; ++i) MR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
  MR_ASSIGN_OR_RETURN(const PartialShape values, c.WithRankAtLeast(levels, 1));
  const int64_t rank = values.has_rank() ? levels + values.rank() : -1;
  const int64_t count = values.num_elements();
  c.set_output(0, PartialShape::Of({count, rank}));
  c.set_output(1, PartialShape::Of({count}));
  c.set_output(2, PartialShape::Of({rank}));
  return absl::OkStatus();
}

Status RaggedToSparseGrad(GradContext& g) {
  const int values = g.num_inputs() - 1;
  g.set_dx(values, g.b().Reshape(g.dy(1), g.b().Shape(g.x(values))));
  return g.status();
}

}  // namespace

Status RaggedToVariantShape(ShapeContext& c) {
  const ArgRange splits = c.input_arg("rt_nested_splits");
  for (int i = splits.begin; i < splits.end; ++i) MR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
  MR_ASSIGN_OR_RETURN(const bool batched, c.Attr<bool>("batched_input"));
  const bool dense = splits.begin == splits.end;
  if (batched || !dense) MR_RETURN_IF_ERROR(c.WithRankAtLeast(splits.end, 1).status());
  const PartialShape& outer = c.input(splits.begin);
  int64_t rows = -1;
  if (outer.has_rank() && outer.rank() > 0 && outer.dim(0) >= (dense ? 0 : 1)) rows = outer.dim(0) - (dense ? 0 : 1);
  c.set_output(0, batched ? PartialShape::Of({rows}) : PartialShape::Scalar());
  return absl::OkStatus();
}

Status RaggedFromVariantShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const int64_t inner, c.Attr<int64_t>("input_ragged_rank"));
  MR_ASSIGN_OR_RETURN(const int64_t outer, c.Attr<int64_t>("output_ragged_rank"));
  const PartialShape& encoded = c.input(0);
  if (encoded.has_rank() && (inner < 0 ? encoded.rank() > outer : inner + encoded.rank() != outer)) {
    return InvalidArgument("output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.rank(): ", outer,
                           ", ", inner, " and ", encoded.rank());
  }
  for (int i = 0; i + 1 < c.num_outputs(); ++i) c.set_output(i, PartialShape::Of({-1}));
  return absl::OkStatus();
}

void RegisterRaggedOps(OpRegistry& registry) {
  registry.Add("Bincount(arr:i32, size:i32, weights:T) -> (bins:T) | T in FD|IDX")
      .Doc(
          "How often each value in [0, size) occurs in `arr`, or the sum of the weights of its occurrences. Larger "
          "values are not counted; negative ones are an error.")
      .Shape(BincountShape)
      .NoGradient("counting has no gradient defined")
      .Example("i32[6]{0 1 1 4 9 1}, i32[]{5}, f32[6]{1 2 3 4 5 6}")
      .Example("i32[3]{0 2 2}, i32[]{3}, i64[0]{}");
  registry
      .Add(
          "DenseBincount(input:Tidx, size:Tidx, weights:T) -> (output:T) | Tidx in IDX; T in FD|IDX; "
          "binary_output:bool=false")
      .Doc(
          "Bincount of a vector, or of each row of a matrix: [size] or [rows, size]. With `binary_output` 1 where a "
          "value occurs and 0 where it does not, whatever the weights.")
      .Shape(DenseBincountShape)
      .NoGradient("counting has no gradient defined")
      .Example("i32[6]{0 1 1 4 9 1}, i32[]{5}, f32[6]{1 2 3 4 5 6}")
      .Example("i64[2,3]{0 1 1 9 2 2}, i64[]{3}, f32[0]{}")
      .Example("i32[2,3]{0 1 1 9 2 2}, i32[]{3}, i64[0]{} | binary_output=true");
  registry
      .Add(
          "RaggedBincount(splits:i64, values:Tidx, size:Tidx, weights:T) -> (output:T) | Tidx in IDX; T in FD|IDX; "
          "binary_output:bool=false")
      .Doc(
          "Bincount of each row of a ragged tensor: [rows, size], where row i has the values from splits[i] to "
          "splits[i + 1]. The weights are as many as the values, or none.")
      .Shape(RaggedBincountShape)
      .NoGradient("counting has no gradient defined")
      .Example("i64[4]{0 2 2 5}, i32[5]{1 1 0 3 9}, i32[]{4}, f32[5]{1 2 3 4 5}")
      .Example("i64[3]{0 2 3}, i64[3]{1 1 0}, i64[]{2}, f32[0]{} | binary_output=true");
  registry
      .Add(
          "SparseBincount(indices:i64, values:Tidx, dense_shape:i64, size:Tidx, weights:T) -> (output:T) | "
          "Tidx in IDX; T in FD|IDX; binary_output:bool=false")
      .Doc(
          "Bincount of the values of a sparse vector, [size], or of each row of a sparse tensor of more dimensions, "
          "[rows, size]. What is not listed counts nothing. The weights are as many as the values, or none.")
      .Shape(SparseBincountShape)
      .NoGradient("counting has no gradient defined")
      .Example("i64[3,2]{0 1 2 0 2 3}, i32[3]{1 1 3}, i64[2]{3 4}, i32[]{4}, f32[3]{1 2 3}")
      .Example("i64[2,1]{0 2}, i64[2]{1 1}, i64[1]{4}, i64[]{2}, f32[0]{} | binary_output=true");
  registry
      .Add(
          "DenseCountSparseOutput(values:T, weights:output_type) -> (output_indices:i64, output_values:output_type, "
          "output_dense_shape:i64) | T in IDX; minlength:int>=-1=-1; maxlength:int>=-1=-1; binary_output:bool; "
          "output_type in IDX|FD")
      .Doc(
          "How often each value occurs in a vector, or in each row of a matrix, as a sparse tensor: [largest value + "
          "1] or [rows, largest value + 1], where minlength is the least size of the last dimension, and maxlength "
          "its size: larger values are left out. With weights the sum of the weights of the occurrences; with "
          "binary_output 1. Negative values are an error.")
      .Shape(CountToSparseShape)
      .NoGradient("counting has no gradient defined")
      .Example("i32[2,3]{1 1 5 0 7 0}, f32[2,3]{1 2 3 4 5 6} | minlength=3; maxlength=6; binary_output=false")
      .Example("i64[3]{1 1 5}, i64[0]{} | binary_output=true");
  registry
      .Add(
          "SparseCountSparseOutput(indices:i64, values:T, dense_shape:i64, weights:output_type) -> "
          "(output_indices:i64, output_values:output_type, output_dense_shape:i64) | T in IDX; "
          "minlength:int>=-1=-1; maxlength:int>=-1=-1; binary_output:bool; output_type in IDX|FD")
      .Doc("DenseCountSparseOutput of the values of a sparse tensor, whose first dimension is that of the rows.")
      .Shape(CountToSparseShape)
      .NoGradient("counting has no gradient defined")
      .Example("i64[3,2]{0 1 2 0 2 3}, i32[3]{1 3 3}, i64[2]{3 4}, f32[3]{1 2 3} | binary_output=false");
  registry
      .Add(
          "RaggedCountSparseOutput(splits:i64, values:T, weights:output_type) -> (output_indices:i64, "
          "output_values:output_type, output_dense_shape:i64) | T in IDX; minlength:int>=-1=-1; "
          "maxlength:int>=-1=-1; binary_output:bool; output_type in IDX|FD")
      .Doc("DenseCountSparseOutput of the rows of a ragged tensor.")
      .Shape(CountToSparseShape)
      .NoGradient("counting has no gradient defined")
      .Example("i64[4]{0 2 2 5}, i32[5]{1 1 0 3 9}, f32[0]{} | binary_output=false");
  registry
      .Add(
          "RaggedTensorToTensor(shape:Tshape, values:T, default_value:T, "
          "row_partition_tensors:num_row_partition_tensors*Tindex) -> (result:T) | T:type; Tindex in IDX; "
          "Tshape in IDX; num_row_partition_tensors:int>=1; row_partition_types:list(string)")
      .Doc(
          "Rows of different lengths as one tensor: each is cut or filled up with `default_value` to the size that "
          "`shape` gives or, where it has -1 (or is the scalar -1), to the longest. The row partitions, outermost "
          "first: "
          "FIRST_DIM_SIZE (a scalar) and then VALUE_ROWIDS (the row of each value), or ROW_SPLITS (where rows begin "
          "and "
          "the last ends).")
      .Shape(RaggedToTensorShape)
      .Gradient(RaggedToTensorGrad)
      .Example(
          "i32[2]{-1 -1}, f32[5]~, f32[]{0}, i64[]{4}, i64[5]{0 0 0 2 3} | num_row_partition_tensors=2; "
          "row_partition_types=[FIRST_DIM_SIZE,VALUE_ROWIDS]")
      .Example(
          "i32[2]{2 2}, f32[5]~, f32[]{0}, i64[4]{0 3 3 5} | num_row_partition_tensors=1; "
          "row_partition_types=[ROW_SPLITS]");
  registry
      .Add(
          "RaggedRange(starts:T, limits:T, deltas:T) -> (rt_nested_splits:Tsplits, rt_dense_values:T) | "
          "T in FD|bf16|IDX=i32; Tsplits in IDX=i64")
      .Doc(
          "A ragged tensor of ranges: row i counts from starts[i] by deltas[i], up to but not including limits[i]. "
          "Scalars go with every row. A delta may be negative, and is not 0; a range that leads away from its limit "
          "is empty.")
      .Shape(RaggedRangeShape)
      .NotDifferentiable("declared so: ranges number things")
      .Example("i32[3]{0 5 8}, i32[3]{3 5 12}, i32[3]{1 1 2}")
      .Example("f32[]{5}, f32[2]{1 4}, f32[]{-1.5}");
  registry
      .Add(
          "RaggedGather(params_nested_splits:PARAMS_RAGGED_RANK*Tsplits, params_dense_values:Tvalues, "
          "indices:Tindices) -> (output_nested_splits:OUTPUT_RAGGED_RANK*Tsplits, output_dense_values:Tvalues) | "
          "Tvalues:type; Tindices in IDX; Tsplits in IDX=i64; PARAMS_RAGGED_RANK:int>=1; OUTPUT_RAGGED_RANK:int>=0")
      .Doc(
          "Rows of a ragged tensor, by their numbers. The dimensions of the indices take the place of the first "
          "one: OUTPUT_RAGGED_RANK is PARAMS_RAGGED_RANK + indices' rank - 1.")
      .Shape(RaggedGatherShape)
      .Gradient(RaggedGatherGrad)
      .Example("i64[4]{0 2 2 5}, f32[5]~, i32[4]{2 0 1 2} | PARAMS_RAGGED_RANK=1; OUTPUT_RAGGED_RANK=1")
      .Example(
          "i64[4]{0 2 2 3}, i64[4]{0 1 3 5}, f32[5,2]~, i64[2,2]{2 0 1 2} | PARAMS_RAGGED_RANK=2; "
          "OUTPUT_RAGGED_RANK=3")
      .Example("i32[4]{0 2 2 5}, f32[5]~, i32[]{2} | PARAMS_RAGGED_RANK=1; OUTPUT_RAGGED_RANK=0");
  registry
      .Add(
          "RaggedTensorToSparse(rt_nested_splits:RAGGED_RANK*Tsplits, rt_dense_values:T) -> (sparse_indices:i64, "
          "sparse_values:T, sparse_dense_shape:i64) | RAGGED_RANK:int>=1; T:type; Tsplits in IDX=i64")
      .Doc("The values of a ragged tensor as a sparse one, as large as the longest rows.")
      .Shape(RaggedToSparseShape)
      .Gradient(RaggedToSparseGrad)
      .Example("i64[4]{0 2 2 5}, f32[5]~ | RAGGED_RANK=1")
      .Example("i64[4]{0 2 2 3}, i64[4]{0 1 3 5}, f32[5,2]~ | RAGGED_RANK=2");
  registry
      .Add(
          "RaggedTensorToVariant(rt_nested_splits:RAGGED_RANK*Tsplits, rt_dense_values:Tvalues) -> "
          "(encoded_ragged:var) | RAGGED_RANK:int>=0; Tvalues:type; Tsplits in IDX=i64; batched_input:bool")
      .Doc(
          "A ragged tensor as a variant; with batched_input, a vector of its rows, each a variant. What queues and "
          "data "
          "sets hold of ragged tensors.")
      .Shape(RaggedToVariantShape)
      .NoGradient("a variant is no number")
      .NoExample("a variant can only be looked at by RaggedTensorFromVariant");
  registry
      .Add(
          "RaggedTensorFromVariant(encoded_ragged:var) -> (output_nested_splits:output_ragged_rank*Tsplits, "
          "output_dense_values:Tvalues) | input_ragged_rank:int>=-1; output_ragged_rank:int>=0; Tvalues:type; "
          "Tsplits in IDX=i64")
      .Doc(
          "The ragged tensors of RaggedTensorToVariant as one: the dimensions of `encoded_ragged` are its outer ones. "
          "output_ragged_rank is input_ragged_rank, of each of them (-1: what follows), and as many more.")
      .Shape(RaggedFromVariantShape)
      .NoGradient("a variant is no number")
      .NoExample("a variant can only be made by RaggedTensorToVariant");
}

}  // namespace millrace
