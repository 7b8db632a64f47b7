// SPDX-License-Identifier: Apache-2.0
// Arithmetic that gives back one of its operands, bit for bit: x * 1, x / 1, x - 0. Gradients of sums are full of it.
// x + 0 is among them where x is never -0, which it turns into 0, as numbers drawn from [0, 1) are.
#include <algorithm>
#include <cstring>

#include "graph/variable_use.h"
#include "op/op_fusion.h"
#include "passes/pipeline.h"

namespace millrace {
namespace {

template <typename T>
bool IsFilledWith(const Tensor& t, T value) {
  const absl::Span<const T> all = t.flat<T>();
  return std::all_of(all.begin(), all.end(), [value](T v) { return std::memcmp(&v, &value, sizeof(T)) == 0; });
}

bool IsFilledWith(const Tensor& t, int value) {
  switch (t.dtype()) {
    case DType::kFloat: return IsFilledWith<float>(t, static_cast<float>(value));
    case DType::kDouble: return IsFilledWith<double>(t, value);
    case DType::kInt32: return IsFilledWith<int32_t>(t, value);
    case DType::kInt64: return IsFilledWith<int64_t>(t, value);
    default: return false;
  }
}

// Whether x keeps its shape when it is combined with `other`, which broadcasts.
bool KeepsShape(const PartialShape& x, const Shape& other) {
  if (other.IsScalar()) return true;
  if (!x.has_rank() || x.rank() < other.rank()) return false;
  for (int i = 0; i < other.rank(); ++i) {
    if (other.dim(i) != 1 && x.dim(x.rank() - other.rank() + i) != other.dim(i)) return false;
  }
  return true;
}

// Whether readers of `x` may be made to read a variable again, where readers of a value computed from it may not.
bool MayBeReadAgain(Output x) {
  while (CarriesValue(*x.node)) x = x.node->input(0);
  return ReadsVariable(*x.node);
}

// The operand that the node gives back; none when it computes something.
Output OperandGivenBack(const Node& n) {
  if (!n.op() || n.num_inputs() != 2 || !n.control_inputs().empty()) return {};
  const bool one = n.Is(OpTrait::kOneIsNeutral), left = n.Is(OpTrait::kOneIsNeutralLeft);
  const bool adds = FusionPartOf(n.op_name()) == FusionPart::kAddition;
  if (!one && !adds && !n.Is(OpTrait::kZeroIsNeutral)) return {};
  for (int c : {1, 0}) {
    if (c == 0 && !left && !adds) break;
    const Output x = n.input(1 - c), constant = n.input(c);
    if (!x || !constant || !constant.node->Is(OpTrait::kConstant) || !constant.node->control_inputs().empty()) continue;
    if (IsRef(x.dtype()) || MayBeReadAgain(x)) continue;
    if (adds && FusionPartOf(x.node->op_name()) != FusionPart::kUniform) continue;
    const StatusOr<Tensor> value = constant.node->Attr<Tensor>("value");
    if (!value.ok() || !KeepsShape(x.shape(), value->shape())) continue;
    if (IsFilledWith(*value, one ? 1 : 0)) return x;
  }
  return {};
}

}  // namespace

Status SimplifyArithmetic(Graph& graph) {
  MR_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(graph));
  for (Node* n : order) {
    const Output x = OperandGivenBack(*n);
    if (!x) continue;
    MR_RETURN_IF_ERROR(graph.ReplaceUses(n->output(0), x));
    if (n->control_outputs().empty()) graph.RemoveNode(n);
  }
  return absl::OkStatus();
}

}  // namespace millrace
