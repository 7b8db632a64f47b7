// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/cost.h"

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

using Value = CostContext::Value;

double Dimension(const PartialShape& s, int d) {
  return s.has_dim(d) ? static_cast<double>(s.dim(d)) : kAssumedDimension;
}
double LastDimension(const PartialShape& s) { return s.rank() > 0 ? Dimension(s, s.rank() - 1) : kAssumedDimension; }

double Most(const std::vector<Value>& values) {
  double most = 0;
  for (const Value& v : values) most = std::max(most, v.elements());
  return most;
}

// Each of `results` is a sum over the part of the filter that belongs to one output channel.
OpCost Convolution(double results, const PartialShape& filter, const CostContext& node) {
  return CostOf(2 * results * EstimateElements(filter) / std::max(1.0, LastDimension(filter)), node);
}

}  // namespace

// The matrices M x K, K x N and M x N have together (M K N)^2 elements, however they are transposed, and a product
// takes 2 M K N.
OpCost ProductCost(const CostContext& node) {
  if (node.inputs.size() < 2 || node.outputs.empty()) return ElementCost(node);
  double stack = 1;
  const PartialShape& out = node.outputs[0].shape;
  for (int i = 0; i + 2 < out.rank(); ++i) stack *= Dimension(out, i);
  if (stack == 0) return CostOf(0, node);
  const double all = node.inputs[0].elements() * node.inputs[1].elements() * node.outputs[0].elements();
  return CostOf(2 * std::sqrt(all / stack), node);
}

OpCost ConvolutionCost(const CostContext& node) {
  if (node.inputs.size() < 3) return FusedConvolutionCost(node);
  if (node.outputs.empty()) return ElementCost(node);
  // Where the input is a shape, the value itself is the output.
  const bool gives_filter = node.inputs[1].shape.rank() == 1;
  return Convolution(node.inputs[2].elements(), (gives_filter ? node.outputs[0] : node.inputs[1]).shape, node);
}

OpCost FusedConvolutionCost(const CostContext& node) {
  if (node.inputs.size() < 2 || node.outputs.empty()) return ElementCost(node);
  return Convolution(node.outputs[0].elements(), node.inputs[1].shape, node);
}

OpCost WindowCost(const CostContext& node) {
  double window = 1;
  if (auto sides = GetAttr<std::vector<int64_t>>(node.attrs, "ksize"); sides.ok()) {
    for (const int64_t side : *sides) window *= static_cast<double>(std::max<int64_t>(side, 1));
  }
  return CostOf(window * std::min(Most(node.inputs), Most(node.outputs)), node);
}

OpCost CubicCost(const CostContext& node) {
  if (node.inputs.empty()) return ElementCost(node);
  return CostOf(node.inputs[0].elements() * LastDimension(node.inputs[0].shape), node);
}

OpCost CellCost(const CostContext& node) {
  const auto x =
      std::find_if(node.inputs.begin(), node.inputs.end(), [](const Value& v) { return v.shape.rank() >= 2; });
  if (x == node.inputs.end()) return ElementCost(node);
  double weights = 0;
  for (const Value& v : node.inputs) {
    if (v.shape.rank() == 2) weights = std::max(weights, v.elements());
  }
  return CostOf(2 * weights * x->elements() / std::max(1.0, LastDimension(x->shape)), node);
}

OpCost TakeCost(const CostContext& node) {
  OpCost cost;
  for (const Value& v : node.outputs) {
    cost.operations += v.elements();
    cost.bytes += 2 * v.bytes();
  }
  return cost;
}

}  // namespace millrace
