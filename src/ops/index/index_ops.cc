// SPDX-License-Identifier: Apache-2.0
// Ops: gather, scatter, segments, blocks.
#include "ops/index/index_ops.h"

#include "absl/algorithm/container.h"
#include "ops/op_list.h"

namespace millrace {

PartialShape JoinDims(std::initializer_list<std::vector<int64_t>> pieces) {
  std::vector<int64_t> dims;
  for (const auto& p : pieces) dims.insert(dims.end(), p.begin(), p.end());
  return PartialShape::Of(std::move(dims));
}

StatusOr<PartialShape> GatherNdShapeOf(const PartialShape& params, const PartialShape& indices) {
  if (!indices.has_rank()) return PartialShape::Unknown();
  const int ir = indices.rank();
  if (ir < 1) return InvalidArgument("indices must have at least one dimension, got ", indices.ToString());
  const int64_t depth = indices.dim(ir - 1);
  if (!params.has_rank() || depth < 0) return PartialShape::Unknown();
  if (depth > params.rank()) {
    return InvalidArgument("indices of depth ", depth, " address a tensor of rank ", params.rank());
  }
  return JoinDims({DimRange(indices, 0, ir - 1), DimRange(params, static_cast<int>(depth), params.rank())});
}

Status CheckSliceUpdates(const PartialShape& target, const PartialShape& indices, const PartialShape& updates) {
  MR_ASSIGN_OR_RETURN(const PartialShape want, GatherNdShapeOf(target, indices));
  if (target.has_rank() && absl::c_linear_search(target.dims(), 0) && indices.IsFullyDefined() &&
      !absl::c_linear_search(indices.dims(), 0)) {
    return InvalidArgument("Indices and updates specified for empty output shape ", target.ToString());
  }
  if (!indices.has_rank() || !updates.has_rank()) return absl::OkStatus();
  const int outer = indices.rank() - 1;
  const auto fits = [](absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
    return absl::c_equal(a, b, [](int64_t x, int64_t y) { return x < 0 || y < 0 || x == y; });
  };
  const absl::Span<const int64_t> at = indices.dims(), given = updates.dims();
  if (updates.rank() < outer || !fits(at.first(static_cast<size_t>(outer)), given.first(static_cast<size_t>(outer)))) {
    return InvalidArgument("The outer ", outer, " dimensions of indices.shape=", indices.ToString(),
                           " must match the outer ", outer, " dimensions of updates.shape=", updates.ToString());
  }
  if (!want.has_rank()) return absl::OkStatus();
  const int inner = want.rank() - outer;
  if (updates.rank() != want.rank() ||
      !fits(
          absl::MakeConstSpan(want.dims()).last(static_cast<size_t>(inner)), given.last(static_cast<size_t>(inner)))) {
    return InvalidArgument(
        "The inner ", inner, " dimensions of input.shape=", target.ToString(), " must match the inner ",
        updates.rank() - outer, " dimensions of updates.shape=", updates.ToString());
  }
  return absl::OkStatus();
}

StatusOr<PartialShape> GatherShapeOf(const PartialShape& params, const PartialShape& indices,
                                     std::optional<int64_t> axis, int64_t batch_dims) {
  if (indices.has_rank() && (batch_dims < -indices.rank() || batch_dims > indices.rank())) {
    return InvalidArgument("batch_dims ", batch_dims, " is not in [-", indices.rank(), ", ", indices.rank(), "]");
  }
  if (params.has_rank() && params.rank() < 1) return InvalidArgument("params must have at least one dimension");
  if (!params.has_rank() || !indices.has_rank()) return PartialShape::Unknown();
  if (batch_dims < 0) batch_dims += indices.rank();
  if (batch_dims >= params.rank()) {
    return InvalidArgument("batch_dims ", batch_dims, " must be less than the rank of params, ", params.rank());
  }
  const int b = static_cast<int>(batch_dims);
  if (!axis) return PartialShape::UnknownOfRank(params.rank() - 1 + indices.rank() - b);
  int64_t a = *axis < 0 ? *axis + params.rank() : *axis;
  if (a < 0 || a >= params.rank()) {
    return InvalidArgument("axis ", *axis, " is not in [-", params.rank(), ", ", params.rank(), ")");
  }
  if (a < b) return InvalidArgument("axis ", a, " lies within the ", b, " batch dimensions");
  MR_ASSIGN_OR_RETURN(
      PartialShape batch, PartialShape::Of(DimRange(params, 0, b)).Merge(PartialShape::Of(DimRange(indices, 0, b))));
  const int ai = static_cast<int>(a);
  return JoinDims({batch.dims(), DimRange(params, b, ai), DimRange(indices, b, indices.rank()),
                   DimRange(params, ai + 1, params.rank())});
}

Output VectorSlice(const GraphBuilder& b, Output t, int64_t begin, int64_t size) {
  return b.Op("Slice", {t, b.Vector<int64_t>({begin}), b.Vector<int64_t>({size})});
}

Output TakeRows(const GraphBuilder& b, Output x, Output ids) {
  return b.Op("GatherV2", {x, ids, b.Scalar<int32_t>(0)});
}

IndexedSlices RowSlices(const GraphBuilder& b, Output g, Output ids, Output dense_shape) {
  IndexedSlices s;
  s.dense_shape = dense_shape;
  if (ids && ids.shape().rank() == 1) {
    s.indices = ids;
    s.values = g;
    return s;
  }
  Output minus_one = b.Vector<int32_t>({-1});
  s.indices = b.Reshape(ids, minus_one);
  Output count = b.Op("ExpandDims", {b.Op("Size", {ids}), b.Scalar<int32_t>(0)});
  Output shape =
      b.Op("ConcatV2", {std::vector<Output>{count, VectorSlice(b, dense_shape, 1, -1)}, b.Scalar<int32_t>(0)});
  s.values = b.Reshape(g, shape);
  return s;
}

void RegisterIndexOps(OpRegistry& registry) {
  RegisterGatherOps(registry);
  RegisterBlockOps(registry);
  RegisterDiagonalOps(registry);
  RegisterIndexSelectionOps(registry);
  RegisterRaggedOps(registry);
  RegisterSegmentOps(registry);
  RegisterSparseSegmentOps(registry);
  RegisterBandOps(registry);
  RegisterSearchOps(registry);
}

}  // namespace millrace
