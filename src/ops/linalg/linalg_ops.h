// SPDX-License-Identifier: Apache-2.0
// The parts of the linear algebra family, and what their gradients share.
#pragma once

#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {

void RegisterMatMulOps(OpRegistry& registry);
void RegisterFactorizationOps(OpRegistry& registry);
void RegisterSpectralOps(OpRegistry& registry);
void RegisterLeastSquaresOps(OpRegistry& registry);
void RegisterEinsumOps(OpRegistry& registry);
void RegisterMatrixFunctionOps(OpRegistry& registry);
void RegisterWalsOps(OpRegistry& registry);
void RegisterClusteringOps(OpRegistry& registry);

// Input i as a stack of square matrices; its last two dimensions merged.
StatusOr<PartialShape> SquareMatrices(ShapeContext& c, int i);
// All dimensions but the last `count`; the rank must be known.
PartialShape WithoutLast(const PartialShape& s, int count);
PartialShape WithLast(PartialShape batch, std::initializer_list<int64_t> dims);

// BatchMatMulV2.
Output BatchMatMul(const GraphBuilder& b, Output x, Output y, bool adj_x, bool adj_y);
// Conjugate transpose of each matrix.
Output Adjoint(const GraphBuilder& b, Output x);
Output BandPart(const GraphBuilder& b, Output x, int64_t lower, int64_t upper);
Output TriangularSolve(const GraphBuilder& b, Output a, Output rhs, bool lower, bool adjoint);
// Gradients of two stacks of matrices whose batch dimensions were broadcast against each other, summed back to the
// shapes of x and y.
std::pair<Output, Output> UnbroadcastBatches(const GraphBuilder& b, Output x, Output y, Output gx, Output gy);

}  // namespace millrace
