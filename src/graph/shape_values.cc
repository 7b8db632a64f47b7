// SPDX-License-Identifier: Apache-2.0
#include "graph/shape_values.h"

#include <algorithm>

#include "base/checked.h"

namespace millrace {
namespace {

using Elements = std::optional<std::vector<int64_t>>;

std::optional<int64_t> ConstantScalar(const Graph& g, Output o) {
  const Tensor* t = g.ConstantValue(o);
  if (t == nullptr || t->num_elements() != 1) return std::nullopt;
  auto v = t->IntScalar();
  return v.ok() ? std::optional<int64_t>(*v) : std::nullopt;
}

bool AttrIs(const Node& n, absl::string_view name, int64_t value) {
  auto it = n.attrs().find(name);
  if (it == n.attrs().end()) return false;
  const int64_t* v = it->second.get<int64_t>();
  return v != nullptr && *v == value;
}

Elements PackElements(const Graph& g, const Node& n) {
  if (!AttrIs(n, "axis", 0)) return std::nullopt;
  std::vector<int64_t> out;
  for (const Output& o : n.inputs()) {
    const PartialShape& s = o.shape();
    if (s.has_rank() && s.rank() != 0) return std::nullopt;
    out.push_back(ConstantScalar(g, o).value_or(-1));
  }
  return out;
}

Elements ConcatElements(const Graph& g, const Node& n, size_t begin, size_t end) {
  std::vector<int64_t> out;
  for (size_t i = begin; i < end; ++i) {
    const Elements e = KnownElements(g, n.inputs()[i]);
    if (!e) return std::nullopt;
    out.insert(out.end(), e->begin(), e->end());
    if (out.size() > kMaxRank) return std::nullopt;
  }
  return out;
}

Elements SliceElements(const Graph& g, const Node& n) {
  const Elements in = KnownElements(g, n.input(0));
  const auto begin = ConstantScalar(g, n.input(1)), size = ConstantScalar(g, n.input(2));
  if (!in || !begin || !size) return std::nullopt;
  const int64_t length = static_cast<int64_t>(in->size());
  if (*begin < 0 || *begin > length || *size < -1 || *size > length - *begin) return std::nullopt;
  const int64_t count = *size == -1 ? length - *begin : *size;
  return std::vector<int64_t>(in->begin() + *begin, in->begin() + *begin + count);
}

Elements StridedSliceElements(const Graph& g, const Node& n) {
  if (n.num_inputs() != 4) return std::nullopt;
  const Elements in = KnownElements(g, n.input(0));
  if (!in) return std::nullopt;
  int64_t v[3];
  for (int i = 0; i < 3; ++i) {
    const Tensor* t = g.ConstantValue(n.input(i + 1));
    if (t == nullptr || t->rank() != 1) return std::nullopt;
    const auto scalar = ConstantScalar(g, n.input(i + 1));
    if (!scalar) return std::nullopt;
    v[i] = *scalar;
  }
  const auto slice = ResolveVectorSlice(n, static_cast<int64_t>(in->size()), v[0], v[1], v[2]);
  if (!slice || slice->shrinks) return std::nullopt;
  std::vector<int64_t> out;
  for (int64_t p : slice->positions) out.push_back((*in)[static_cast<size_t>(p)]);
  return out;
}

Elements ElementsOf(const Graph& g, const Node& n) {
  const std::string& op = n.op_name();
  const size_t inputs = n.inputs().size();
  if (op == "Pack") return PackElements(g, n);
  if (op == "ConcatV2" && inputs > 1) return ConcatElements(g, n, 0, inputs - 1);
  if (op == "Concat" && inputs > 1) return ConcatElements(g, n, 1, inputs);
  if (op == "StridedSlice") return StridedSliceElements(g, n);
  if (op == "Slice") return SliceElements(g, n);
  return std::nullopt;
}

bool BuildsShapes(absl::string_view op) {
  return op == "Pack" || op == "ConcatV2" || op == "Concat" || op == "StridedSlice" || op == "Slice";
}

bool IsIndex(DType t) { return BaseType(t) == DType::kInt32 || BaseType(t) == DType::kInt64; }

}  // namespace

Elements KnownElements(const Graph& graph, Output o) {
  if (const Tensor* t = graph.ConstantValue(o)) {
    if (t->rank() != 1 || t->num_elements() > kMaxRank) return std::nullopt;
    auto values = t->IntValues();
    if (!values.ok()) return std::nullopt;
    return *std::move(values);
  }
  return ElementsFromShape(o);
}

Elements ElementsFromShape(Output o) {
  if (o.index < o.node->num_outputs()) {
    const auto& as_shape = o.node->as_shape(o.index);
    if (as_shape && as_shape->has_rank()) return as_shape->dims();
  }
  const PartialShape& s = o.shape();
  if (s.rank() != 1 || !s.has_dim(0) || s.dim(0) > kMaxRank) return std::nullopt;
  return std::vector<int64_t>(static_cast<size_t>(s.dim(0)), -1);
}

std::optional<VectorSlice> ResolveVectorSlice(const Node& node, int64_t n, int64_t begin, int64_t end, int64_t stride) {
  const auto mask = [&node](absl::string_view name) {
    auto v = node.Attr<int64_t>(name);
    return v.ok() ? *v : -1;
  };
  if (mask("ellipsis_mask") != 0 || mask("new_axis_mask") != 0) return std::nullopt;
  VectorSlice out;
  if ((mask("shrink_axis_mask") & 1) != 0) {
    int64_t at;
    if (!NormalizeIndex(begin, n, &at)) return std::nullopt;
    out.shrinks = true;
    out.positions.push_back(at);
    return out;
  }
  if (stride == 0) return std::nullopt;
  const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? n : n - 1;
  const auto clamp = [&](int64_t v) { return std::clamp(v < 0 ? v + n : v, low, high); };
  begin = (mask("begin_mask") & 1) != 0 ? (stride > 0 ? 0 : n - 1) : clamp(std::max(begin, -n - 1));
  end = (mask("end_mask") & 1) != 0 ? (stride > 0 ? n : -1) : clamp(std::max(end, -n - 1));
  stride = std::clamp(stride, -n - 1, n + 1);
  for (int64_t p = begin; stride > 0 ? p < end : p > end; p += stride) out.positions.push_back(p);
  return out;
}

void InferShapeValues(const Graph& graph, const Node& node, std::vector<std::optional<PartialShape>>* as_shape) {
  if (as_shape->empty() || !IsIndex(node.output_type(0))) return;
  const std::string& op = node.op_name();
  if (op == "Shape" || op == "ShapeN") {
    for (size_t i = 0; i < as_shape->size() && i < node.inputs().size(); ++i) {
      if (!(*as_shape)[i] && node.inputs()[i].shape().has_rank()) (*as_shape)[i] = node.inputs()[i].shape();
    }
    return;
  }
  if (op == "Enter" || op == "Switch") {  // how the bodies of loops and branches read what is outside
    const Output in = node.input(0);
    for (auto& known : *as_shape) {
      if (!known && IsIndex(in.dtype())) known = in.node->as_shape(in.index);
    }
    return;
  }
  auto& first = (*as_shape)[0];
  if (first) return;
  if ((op == "Identity" || op == "Cast") && node.num_inputs() == 1) {
    const Output in = node.input(0);
    if (IsIndex(in.dtype())) first = in.node->as_shape(in.index);
    return;
  }
  if (!BuildsShapes(op)) return;
  const Elements elements = ElementsOf(graph, node);
  if (!elements) return;
  if (auto shape = PartialShape::Make(*elements); shape.ok()) first = *std::move(shape);
}

}  // namespace millrace
