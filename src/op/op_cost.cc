// SPDX-License-Identifier: Apache-2.0
#include "op/op_cost.h"

#include <algorithm>

namespace millrace {

double EstimateElements(const PartialShape& shape) {
  if (!shape.has_rank()) return kAssumedDimension;
  double n = 1;
  for (const int64_t d : shape.dims()) n *= d >= 0 ? static_cast<double>(d) : kAssumedDimension;
  return n;
}

double EstimateBytes(DType type, const PartialShape& shape) {
  return IsPlain(BaseType(type)) ? EstimateElements(shape) * static_cast<double>(DTypeSize(BaseType(type))) : 0;
}

double CostContext::Bytes() const {
  double bytes = 0;
  for (const auto* values : {&inputs, &outputs}) {
    for (const Value& v : *values) bytes += v.bytes();
  }
  return bytes;
}

double CostContext::MostElements() const {
  double most = 0;
  for (const auto* values : {&inputs, &outputs}) {
    for (const Value& v : *values) most = std::max(most, v.elements());
  }
  return most;
}

OpCost CostOf(double operations, const CostContext& node) { return {operations, node.Bytes()}; }

OpCost NoCost(const CostContext&) { return {}; }

OpCost ElementCost(const CostContext& node) { return CostOf(node.MostElements(), node); }

OpCost CostlyElementCost(const CostContext& node) {
  constexpr double kOperations = 12;
  return CostOf(kOperations * node.MostElements(), node);
}

}  // namespace millrace
