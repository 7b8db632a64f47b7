// SPDX-License-Identifier: Apache-2.0
#include "ops/formula.h"

namespace millrace {

Output Formula::Cast(Output x, DType to) const {
  const GraphBuilder inside = b_.Scope("Cast");
  return x && BaseType(x.dtype()) == to ? x : inside.WithName("/").Op("Cast", {x}, {{"DstT", to}});
}

Output Formula::Binary(absl::string_view name, absl::string_view op, const Operand& x, const Operand& y) const {
  if (!x.is_number && !y.is_number) return b_.WithName(name).Op(op, {x.value, y.value});
  const GraphBuilder inside = b_.Scope(name);
  const Output value = x.is_number ? y.value : x.value;
  if (!value) return inside.Op(op, {value});  // an error came before, or is told here
  const auto constant = [&](const char* place, const Operand& o) {
    return o.is_number ? inside.WithName(place).ScalarOf(value.dtype(), o.number) : o.value;
  };
  const Output left = constant("x", x), right = constant("y", y);
  return inside.WithName("/").Op(op, {left, right});
}

Output ShapeOf(const GraphBuilder& b, Output x) {
  if (!x || !x.shape().IsFullyDefined()) return b.Shape(x);
  std::vector<int32_t> dims;
  for (const int64_t d : x.shape().dims()) dims.push_back(static_cast<int32_t>(d));
  return b.WithName("Shape").Const(Tensor::Vector<int32_t>(dims));
}

}  // namespace millrace
