// SPDX-License-Identifier: Apache-2.0
// Ops: element-wise arithmetic, comparison, activations.
#include "ops/elementwise/elementwise_ops.h"

#include "ops/op_list.h"

namespace millrace {

void RegisterElementwiseOps(OpRegistry& registry) {
  RegisterUnaryMathOps(registry);
  RegisterBinaryMathOps(registry);
  RegisterComparisonOps(registry);
  RegisterActivationOps(registry);
  RegisterSelectionOps(registry);
  RegisterSpecialMathOps(registry);
  RegisterBesselOps(registry);
}

}  // namespace millrace
