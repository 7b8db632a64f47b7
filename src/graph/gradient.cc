// SPDX-License-Identifier: Apache-2.0
#include "graph/gradient.h"

#include <limits>

namespace millrace {
namespace {

Output AxesConst(const GraphBuilder& b, const std::vector<int32_t>& axes) {
  return b.Const(Tensor::Vector<int32_t>(absl::Span<const int32_t>(axes)));
}

// Dimensions of a known shape as a constant: int32 where they fit.
Output ShapeConst(const GraphBuilder& b, const PartialShape& s) {
  std::vector<int32_t> narrow;
  for (int64_t d : s.dims()) {
    if (d > std::numeric_limits<int32_t>::max()) return b.Const(Tensor::Vector<int64_t>(absl::MakeConstSpan(s.dims())));
    narrow.push_back(static_cast<int32_t>(d));
  }
  return AxesConst(b, narrow);
}

bool SameKnownShape(const PartialShape& a, const PartialShape& b) { return a.IsFullyDefined() && a == b; }

// Axes of `from` along which a tensor of shape `to` was broadcast; false unless both ranks, and the sizes that matter,
// are known.
bool StaticAxes(const PartialShape& from, const PartialShape& to, std::vector<int32_t>* axes) {
  if (!from.has_rank() || !to.has_rank() || to.rank() > from.rank()) return false;
  const int lead = from.rank() - to.rank();
  for (int i = 0; i < lead; ++i) axes->push_back(i);
  for (int i = lead; i < from.rank(); ++i) {
    const int64_t target = to.dim(i - lead), source = from.dim(i);
    if (target == 1 && source != 1) {
      axes->push_back(i);  // summing over one element, should that be its size, changes nothing
    } else if (target < 0) {
      return false;
    }
  }
  return true;
}

// The sum over known axes and the reshape where a dimension of one stays.
Output SumStatic(const GraphBuilder& b, Output g, const PartialShape& to, const std::vector<int32_t>& axes) {
  if (axes.empty()) return g;
  const bool only_leading = axes.back() == static_cast<int32_t>(axes.size()) - 1 &&
                            g.shape().rank() - static_cast<int>(axes.size()) == to.rank();
  const Output sum = b.Sum(g, AxesConst(b, axes));
  return only_leading ? sum : b.Reshape(sum, ShapeConst(b, to));
}

Output SumDynamic(const GraphBuilder& b, Output g, Output axes, Output shape) {
  return b.Reshape(b.Sum(g, axes), shape);
}

bool TrySumStatic(const GraphBuilder& b, Output* g, const PartialShape& to) {
  std::vector<int32_t> axes;
  if (!to.IsFullyDefined() || !StaticAxes(g->shape(), to, &axes)) return false;
  *g = SumStatic(b, *g, to, axes);
  return true;
}

}  // namespace

GradContext::GradContext(GraphBuilder builder, Node* node, std::vector<Gradient> output_gradients)
    : builder_(std::move(builder)),
      node_(node),
      gradients_(std::move(output_gradients)),
      results_(static_cast<size_t>(node->num_inputs())) {
  gradients_.resize(static_cast<size_t>(node->num_outputs()));
}

Output GradContext::dy(int i) const {
  Gradient& g = gradients_[static_cast<size_t>(i)];
  if (g.dense) return g.dense;
  g.dense = g.sparse ? Densify(builder_, *g.sparse) : Zeros(builder_, node_->output(i));
  return g.dense;
}

Output Zeros(const GraphBuilder& b, Output like) {
  const DType dtype = BaseType(like.dtype());
  const PartialShape& s = like.shape();
  const bool is_number = IsFloating(dtype) || IsComplex(dtype) || IsInteger(dtype) || dtype == DType::kBool;
  if (!is_number || !s.IsFullyDefined()) return b.ZerosLike(like);
  const Output zero = b.ScalarOf(dtype, 0);
  return s.rank() == 0 ? zero : b.Op("Fill", {ShapeConst(b, s), zero});
}

Output Densify(const GraphBuilder& b, const IndexedSlices& s) {
  const Output rows =
      b.Op("StridedSlice", {s.dense_shape, b.Vector<int32_t>({0}), b.Vector<int32_t>({1}), b.Vector<int32_t>({1})},
           {{"shrink_axis_mask", 1}});
  return b.Op("UnsortedSegmentSum", {s.values, s.indices, rows});
}

Output SumToShapeOf(const GraphBuilder& b, Output g, Output x) {
  if (!g || !x) return g;
  if (SameKnownShape(g.shape(), x.shape())) return g;
  if (TrySumStatic(b, &g, x.shape())) return g;
  const Output sx = b.Shape(x);
  Node* r = b.OpNode("BroadcastGradientArgs", {sx, b.Shape(g)});
  return r == nullptr ? Output() : SumDynamic(b, g, r->output(0), sx);
}

std::pair<Output, Output> Unbroadcast(const GraphBuilder& b, Output x, Output y, Output gx, Output gy) {
  if (!x || !y || SameKnownShape(x.shape(), y.shape())) return {gx, gy};
  const bool x_done = !gx || SameKnownShape(gx.shape(), x.shape()) || TrySumStatic(b, &gx, x.shape());
  const bool y_done = !gy || SameKnownShape(gy.shape(), y.shape()) || TrySumStatic(b, &gy, y.shape());
  if (x_done && y_done) return {gx, gy};
  const Output sx = b.Shape(x), sy = b.Shape(y);
  Node* r = b.OpNode("BroadcastGradientArgs", {sx, sy});
  if (r == nullptr) return {};
  if (!x_done) gx = SumDynamic(b, gx, r->output(0), sx);
  if (!y_done) gy = SumDynamic(b, gy, r->output(1), sy);
  return {gx, gy};
}

}  // namespace millrace
