// SPDX-License-Identifier: Apache-2.0
// Pieces that the convolution, pooling and normalisation declarations share.
#pragma once

#include "graph/gradient.h"
#include "op/op_registry.h"
#include "op/shape_context.h"
#include "tensor/window.h"

namespace millrace {

void RegisterConvOps(OpRegistry& registry);
void RegisterPoolOps(OpRegistry& registry);
void RegisterNormOps(OpRegistry& registry);
void RegisterWindowOps(OpRegistry& registry);

// Reads data_format, padding, strides, dilations, ksize and explicit_paddings, as far as the op has them, and checks.
StatusOr<WindowAttrs> WindowAttrsOf(const ShapeContext& c, bool spatial_only);

// Output size of spatial dimension i, -1 when input or kernel is unknown (-1).
StatusOr<int64_t> SpatialOutput(const WindowAttrs& attrs, int i, int64_t input, int64_t kernel);

// The attributes of `node` with these names, those that it has.
AttrMap CopyAttrs(const Node* node, std::initializer_list<const char*> names);

}  // namespace millrace
