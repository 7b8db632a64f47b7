// SPDX-License-Identifier: Apache-2.0
// The parts of the index family, one file each, and what they share.
#pragma once

#include "graph/gradient.h"
#include "op/op_registry.h"
#include "op/shape_context.h"

namespace millrace {

void RegisterGatherOps(OpRegistry& registry);          // Gather*, ScatterNd, TensorScatter*
void RegisterBlockOps(OpRegistry& registry);           // space <-> batch, space <-> depth, patches
void RegisterDiagonalOps(OpRegistry& registry);        // Diag*, Matrix*
void RegisterIndexSelectionOps(OpRegistry& registry);  // Unique*, Where, OneHot, partitions, ranges
void RegisterRaggedOps(OpRegistry& registry);          // Bincount and its kin, Ragged*
void RegisterSegmentOps(OpRegistry& registry);         // Segment*, UnsortedSegment*
void RegisterSparseSegmentOps(OpRegistry& registry);
void RegisterBandOps(OpRegistry& registry);    // MatrixDiagV2, ...
void RegisterSearchOps(OpRegistry& registry);  // LowerBound, Bucketize, HistogramFixedWidth, ...

// Dimensions [from, to) of a shape whose rank is known.
inline std::vector<int64_t> DimRange(const PartialShape& s, int from, int to) {
  return {s.dims().begin() + from, s.dims().begin() + to};
}
// All pieces one after the other.
PartialShape JoinDims(std::initializer_list<std::vector<int64_t>> pieces);
// Shape of GatherNd's output, or of the updates that fit into `params` at `indices`; unknown where it must be.
StatusOr<PartialShape> GatherNdShapeOf(const PartialShape& params, const PartialShape& indices);
// InvalidArgument unless updates of shape `updates` fit into `target` at `indices`: indices.shape[:-1] +
// target.shape[depth:].
Status CheckSliceUpdates(const PartialShape& target, const PartialShape& indices, const PartialShape& updates);
// Shape of a gather along `axis` (unknown: nullopt) below `batch_dims` common dimensions.
StatusOr<PartialShape> GatherShapeOf(const PartialShape& params, const PartialShape& indices,
                                     std::optional<int64_t> axis, int64_t batch_dims);

// The integer vector t[begin, begin+size) (size -1: to the end).
Output VectorSlice(const GraphBuilder& b, Output t, int64_t begin, int64_t size);
// Rows `ids` of `x` along dimension 0.
Output TakeRows(const GraphBuilder& b, Output x, Output ids);
// The sparse gradient of x[ids] for a value whose shape is the integer vector `dense_shape`.
IndexedSlices RowSlices(const GraphBuilder& b, Output g, Output ids, Output dense_shape);

}  // namespace millrace
