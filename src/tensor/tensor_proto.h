// SPDX-License-Identifier: Apache-2.0
// Tensor <-> TensorProto and Shape <-> TensorShapeProto, with every check that bytes from outside need.
#pragma once

#include "base/status.h"
#include "tensor/tensor.h"
#include "wire/graph.h"

namespace millrace {

// InvalidArgument: bad dtype, bad shape, content of the wrong size, a reference or resource dtype.
StatusOr<Tensor> TensorFromProto(const wire::TensorProto& proto);
// Compact: tensor_content for plain types (a splat when all elements are equal and there are many), string_val for
// strings. Resources keep names only; variants are Unimplemented.
StatusOr<wire::TensorProto> TensorToProto(const Tensor& tensor);
// The same, but one element as a value of its own (int_val: 3), as in attributes.
StatusOr<wire::TensorProto> TensorToAttrProto(const Tensor& tensor);

StatusOr<PartialShape> ShapeFromProto(const wire::TensorShapeProto& proto);
wire::TensorShapeProto ShapeToProto(const PartialShape& shape);

}  // namespace millrace
