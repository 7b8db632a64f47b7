// SPDX-License-Identifier: Apache-2.0
// How much an op works, estimated from its name, attributes and shapes before it has ever run: what placement, the
// scheduling of transfers and the choice of what to compute twice begin with. An estimate orders alternatives; nothing
// depends on its being right.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "op/attr.h"

namespace millrace {

// For dimensions that are not known.
inline constexpr double kAssumedDimension = 32;

double EstimateElements(const PartialShape& shape);
// 0 for types whose elements have no fixed size.
double EstimateBytes(DType type, const PartialShape& shape);

// Arithmetic operations of one run. 0: the op looks at no value, as Reshape. Ops that the table in op_cost.cc does not
// name count one operation an element.
double EstimateOperations(absl::string_view op, const AttrMap& attrs, absl::Span<const PartialShape> inputs,
                          absl::Span<const PartialShape> outputs);

}  // namespace millrace
