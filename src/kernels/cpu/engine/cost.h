// SPDX-License-Identifier: Apache-2.0
// Estimates of what kernels work (KernelSpec::cost), as families share them. Shapes that do not fit together give some
// number and no fault.
#pragma once

#include "op/op_cost.h"

namespace millrace {

OpCost ProductCost(const CostContext& node);  // of two matrices, or of two stacks of them
// Of an image, or its shape, with a filter, or its shape; a gradient has the output's gradient as third input.
OpCost ConvolutionCost(const CostContext& node);
OpCost FusedConvolutionCost(const CostContext& node);  // whose other inputs are for what follows
OpCost WindowCost(const CostContext& node);            // as many as attribute `ksize` says, an element
OpCost CubicCost(const CostContext& node);             // of matrices: the third power of a side
OpCost CellCost(const CostContext& node);  // of a recurrent network: the product of the first matrix with the largest
// Takes from a larger value, which it does not read otherwise: as much as its outputs have.
OpCost TakeCost(const CostContext& node);

}  // namespace millrace
