// SPDX-License-Identifier: Apache-2.0
#include "autodiff/sum_gradients.h"

#include <algorithm>

namespace millrace {
namespace {

Output Concat(const GraphBuilder& b, std::vector<Output> parts) {
  return b.Op("ConcatV2", {std::move(parts), b.Scalar<int32_t>(0)});
}

IndexedSlices SumSparse(const GraphBuilder& b, const std::vector<Gradient>& parts) {
  std::vector<Output> values, indices;
  const DType first = BaseType(parts[0].sparse->indices.dtype());
  const bool mixed = std::any_of(
      parts.begin(), parts.end(), [&](const Gradient& g) { return BaseType(g.sparse->indices.dtype()) != first; });
  for (const Gradient& g : parts) {
    const IndexedSlices s = FlatRows(b, *g.sparse);
    values.push_back(s.values);
    indices.push_back(mixed ? b.Cast(s.indices, DType::kInt64) : s.indices);
  }
  return {Concat(b, std::move(values)), Concat(b, std::move(indices)), parts[0].sparse->dense_shape};
}

}  // namespace

IndexedSlices FlatRows(const GraphBuilder& b, const IndexedSlices& s) {
  if (s.indices.shape().rank() == 1) return s;
  const Output row =
      b.Op("StridedSlice", {s.dense_shape, b.Vector<int32_t>({1}), b.Vector<int32_t>({0}), b.Vector<int32_t>({1})},
           {{"end_mask", 1}});
  const Output any =
      b.Const(row.dtype() == DType::kInt64 ? Tensor::Vector<int64_t>({-1}) : Tensor::Vector<int32_t>({-1}));
  IndexedSlices out = s;
  out.values = b.Reshape(s.values, Concat(b, {any, row}));
  out.indices = b.Reshape(s.indices, b.Vector<int32_t>({-1}));
  return out;
}

Gradient SumGradients(const GraphBuilder& b, const std::vector<Gradient>& parts) {
  if (parts.empty()) return {};
  if (parts.size() == 1) return parts[0];
  if (std::all_of(parts.begin(), parts.end(), [](const Gradient& g) { return g.sparse && !g.dense; })) {
    return Gradient{{}, SumSparse(b, parts)};
  }
  std::vector<Output> dense;
  for (const Gradient& g : parts) dense.push_back(g.dense ? g.dense : Densify(b, *g.sparse));
  return Gradient{b.Op("AddN", {std::move(dense)}), std::nullopt};
}

}  // namespace millrace
