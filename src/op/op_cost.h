// SPDX-License-Identifier: Apache-2.0
// How much a kernel works, estimated from attributes and shapes before it has ever run: what placement, the scheduling
// of transfers and the choice of what to compute twice begin with. An estimate orders alternatives; nothing depends on
// its being right. Kernels name their estimate where they are registered (KernelSpec::cost).
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

// Of one run.
struct OpCost {
  double operations = 0;  // of arithmetic; 0: it looks at no value, as Reshape
  double bytes = 0;       // read and written
};

// A node as estimates see it. Shapes may be unknown.
struct CostContext {
  struct Value {
    DType type = DType::kInvalid;
    PartialShape shape;
    double elements() const { return EstimateElements(shape); }
    double bytes() const { return EstimateBytes(type, shape); }
  };
  const AttrMap& attrs;
  std::vector<Value> inputs, outputs;

  double Bytes() const;         // of all inputs and outputs
  double MostElements() const;  // of any of them
};

using CostFunction = OpCost (*)(const CostContext&);

OpCost NoCost(const CostContext& node);
OpCost ElementCost(const CostContext& node);        // one operation an element; also of kernels that say nothing
OpCost CostlyElementCost(const CostContext& node);  // a function that takes some, an element
// `operations`, and every input and output once.
OpCost CostOf(double operations, const CostContext& node);

}  // namespace millrace
