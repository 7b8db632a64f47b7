// SPDX-License-Identifier: Apache-2.0
// The parts of the array family, and what their gradients share.
#pragma once

#include <optional>
#include <vector>

#include "graph/gradient.h"
#include "op/op_registry.h"
#include "op/shape_context.h"

namespace millrace {

void RegisterArraySourceOps(OpRegistry& registry);   // constants, placeholders, identities, questions about shapes
void RegisterArrayReshapeOps(OpRegistry& registry);  // Reshape, Squeeze, Transpose, Reverse, ...
void RegisterArrayJoinOps(OpRegistry& registry);     // Concat, Pack, Split, ...
void RegisterArraySliceOps(OpRegistry& registry);    // Slice and StridedSlice with their gradients
void RegisterArrayPadOps(OpRegistry& registry);      // Pad, MirrorPad, Tile, Fill

// The integers that `o` holds, when they are known while the graph is built.
std::optional<std::vector<int64_t>> KnownInts(const GraphBuilder& b, Output o);
// A constant vector (or scalar) of int32 or int64; an error in the builder for another dtype or a value out of range.
Output IntVector(const GraphBuilder& b, DType dtype, const std::vector<int64_t>& values);
Output IntScalar(const GraphBuilder& b, DType dtype, int64_t value);
// The shape of `x` as a vector of `dtype`: a constant where it is fully known.
Output ShapeOf(const GraphBuilder& b, Output x, DType dtype = DType::kInt32);

}  // namespace millrace
