// SPDX-License-Identifier: Apache-2.0
// Parts of the element-wise family.
#pragma once

#include "graph/gradient.h"
#include "op/op_registry.h"

namespace millrace {

void RegisterUnaryMathOps(OpRegistry& r);
void RegisterBinaryMathOps(OpRegistry& r);
void RegisterComparisonOps(OpRegistry& r);
void RegisterActivationOps(OpRegistry& r);
void RegisterSelectionOps(OpRegistry& r);
void RegisterSpecialMathOps(OpRegistry& r);
void RegisterBesselOps(OpRegistry& r);

}  // namespace millrace
