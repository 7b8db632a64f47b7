// SPDX-License-Identifier: Apache-2.0
// Integer vectors that denote shapes: what is known of their elements while some are unknown.
#pragma once

#include "graph/graph.h"

namespace millrace {

// Fills entries of *as_shape (one per output) that the op's shape function left open, for the ops that build shapes:
// Shape, Pack, ConcatV2, StridedSlice, ...
void InferShapeValues(const Graph& graph, const Node& node, std::vector<std::optional<PartialShape>>* as_shape);

// What is known of the elements of the integer vector `o`, -1 where unknown; nullopt when not even their number is
// known.
std::optional<std::vector<int64_t>> KnownElements(const Graph& graph, Output o);
// The same from shapes alone, without asking for its constant value.
std::optional<std::vector<int64_t>> ElementsFromShape(Output o);

// Positions that x[begin:end:stride] takes from a vector of n elements, with StridedSlice's mask bits for one
// dimension.
struct VectorSlice {
  std::vector<int64_t> positions;
  bool shrinks = false;  // the result is the scalar at positions[0]
};
// For a StridedSlice node over a vector of n elements; nullopt when its masks say more than this, or on an index out of
// range.
std::optional<VectorSlice> ResolveVectorSlice(const Node& node, int64_t n, int64_t begin, int64_t end, int64_t stride);

}  // namespace millrace
