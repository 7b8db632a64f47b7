// SPDX-License-Identifier: Apache-2.0
// Conditionals: what flows into a Merge goes to the input that was live, by a Switch on what decided; what flows into
// the two outputs of a Switch meets in a Merge, with zeros from the side that nothing flows into. The gradient of a
// node is live exactly when the node was.
#include <algorithm>

#include "autodiff/backward_walk.h"
#include "base/hash_map.h"

namespace millrace {
namespace {

Output Full(const GraphBuilder& b, Output shape, DType dtype, double v) {
  return b.Op("Fill", {shape, b.ScalarOf(dtype, v)});
}

Output Slice(const GraphBuilder& b, Output vector, int begin, int end, bool to_end) {
  return b.Op("StridedSlice", {vector, b.Vector<int32_t>({begin}), b.Vector<int32_t>({end}), b.Vector<int32_t>({1})},
              {{"end_mask", to_end ? 1 : 0}});
}

Output Merged(const GraphBuilder& b, Output a, Output c) { return b.Op("Merge", {std::vector<Output>{a, c}}); }

Output Dense(const GraphBuilder& b, const Gradient& g) { return g.dense ? g.dense : Densify(b, *g.sparse); }

}  // namespace

Output ShapeForGradient(const GraphBuilder& b, Output x) {
  return BaseType(x.dtype()) == DType::kResource ? b.Op("VariableShape", {x}) : b.Shape(x);
}

Output ZerosForGradient(const GraphBuilder& b, Output x, DType dtype) {
  if (BaseType(x.dtype()) != DType::kResource) return Zeros(b, x);
  return Full(b, ShapeForGradient(b, x), dtype, 0);
}

StatusOr<Liveness> BackwardWalk::BranchesOf(const Node* n) {
  if (!has_control_flow_) return Liveness();
  MR_ASSIGN_OR_RETURN(Liveness out, structure_.LivenessOf(n));
  std::erase_if(out, [&](int l) { return structure_.literal(l).predicate.node->control_op() == ControlOp::kLoopCond; });
  return out;
}

// Zeros that are live when output `side` of the Switch `n` is.
Output BackwardWalk::GuardedZeros(const GraphBuilder& b, Node* n, int side, DType dtype) {
  const Output x = n->output(side);
  if (BaseType(x.dtype()) != DType::kResource && !x.shape().IsFullyDefined()) return b.ZerosLike(x);
  if (BaseType(x.dtype()) == DType::kResource) return ZerosForGradient(b, x, dtype);
  Node* choice = b.OpNode("Switch", {Zeros(b, x), n->input(1)});
  return choice == nullptr ? Output() : choice->output(side);
}

// Of the gradients of the two outputs of the Switch `n`, at least one of which is there.
Gradient BackwardWalk::Join(const GraphBuilder& b, Node* n, Gradient g0, Gradient g1) {
  const bool sparse0 = g0.sparse && !g0.dense, sparse1 = g1.sparse && !g1.dense;
  if (sparse0 && sparse1 && BaseType(g0.sparse->indices.dtype()) == BaseType(g1.sparse->indices.dtype()) &&
      BaseType(g0.sparse->dense_shape.dtype()) == BaseType(g1.sparse->dense_shape.dtype())) {
    return {{},
            IndexedSlices{
                Merged(b, g0.sparse->values, g1.sparse->values), Merged(b, g0.sparse->indices, g1.sparse->indices),
                Merged(b, g0.sparse->dense_shape, g1.sparse->dense_shape)}};
  }
  if ((sparse0 && g1.none()) || (sparse1 && g0.none())) {
    const int absent = sparse0 ? 1 : 0;
    const IndexedSlices& s = sparse0 ? *g0.sparse : *g1.sparse;
    const Output shape = ShapeForGradient(b, n->output(absent));
    const Output none = Slice(b, shape, 0, 0, false);
    const Output dims = b.Op(
        "ConcatV2",
        {std::vector<Output>{b.Op("ZerosLike", {Slice(b, shape, 0, 1, false)}), Slice(b, shape, 1, 0, true)},
         b.Scalar<int32_t>(0)});
    // A constant shape is live on both sides: hold it back.
    const auto held = [&](Output o) {
      Node* choice = b.OpNode("Switch", {o, n->input(1)});
      return choice == nullptr ? Output() : choice->output(absent);
    };
    return {{},
            IndexedSlices{Merged(b, s.values, held(Full(b, dims, s.values.dtype(), 0))),
                          Merged(b, s.indices, held(b.Cast(none, BaseType(s.indices.dtype())))),
                          Merged(b, s.dense_shape, held(b.Cast(shape, BaseType(s.dense_shape.dtype()))))}};
  }
  const DType dtype = BaseType(g0.none() ? Dense(b, g1).dtype() : Dense(b, g0).dtype());
  const Output d0 = g0.none() ? GuardedZeros(b, n, 0, dtype) : Dense(b, g0);
  const Output d1 = g1.none() ? GuardedZeros(b, n, 1, dtype) : Dense(b, g1);
  return {Merged(b, d0, d1), std::nullopt};
}

Status BackwardWalk::SwitchGradient(Node* n, std::vector<Gradient> out) {
  if (ControlFlowStructure::IsGate(n)) return Flow(n, 0, out[1]);  // the body's reading of what is no loop variable
  const GraphBuilder b = ScopeOf(n);
  const Gradient joined = Join(b, n, out[0], out[1]);
  if (!builder_.status().ok()) return Annotate(builder_.status(), absl::StrCat("gradient of ", n->Describe(), ": "));
  return Flow(n, 0, joined);
}

// The parts of `g` behind both outputs of a Switch on `predicate`.
std::array<Gradient, 2> BackwardWalk::Part(const GraphBuilder& b, const Gradient& g, Output predicate) {
  const auto choose = [&](Output o) -> std::array<Output, 2> {
    Node* choice = b.OpNode("Switch", {o, predicate});
    if (choice == nullptr) return {};
    return {choice->output(0), choice->output(1)};
  };
  if (g.dense) {
    const auto parts = choose(g.dense);
    return {Gradient{parts[0], std::nullopt}, Gradient{parts[1], std::nullopt}};
  }
  const auto values = choose(g.sparse->values), indices = choose(g.sparse->indices);
  const auto shape = choose(g.sparse->dense_shape);
  return {Gradient{{}, IndexedSlices{values[0], indices[0], shape[0]}},
          Gradient{{}, IndexedSlices{values[1], indices[1], shape[1]}}};
}

Status BackwardWalk::MergeGradient(Node* n, const Gradient& g) {
  const GraphBuilder b = ScopeOf(n);
  MR_ASSIGN_OR_RETURN(const Literal decides, structure_.Decides(n));
  std::array<Gradient, 2> parts;
  if (decides.predicate) parts = Part(b, g, decides.predicate);
  for (int i = 0; i < n->num_inputs(); ++i) {
    if (!IsBetween(n->input(i).node)) continue;
    const int side = !decides.predicate ? 1 : i == 0 ? decides.side : 1 - decides.side;
    if (!decides.predicate) parts = Part(b, g, b.Op("Equal", {n->output(1), b.Scalar<int32_t>(i)}));
    if (!builder_.status().ok()) {
      return Annotate(builder_.status(), absl::StrCat("gradient of ", n->Describe(), ": "));
    }
    MR_RETURN_IF_ERROR(Flow(n, i, parts[static_cast<size_t>(side)]));
  }
  return absl::OkStatus();
}

// Where a node in a branch reads a value from outside directly, rather than through a Switch: zeros from the other
// side.
StatusOr<Gradient> BackwardWalk::Lift(Node* n, Output x, Gradient g) {
  MR_ASSIGN_OR_RETURN(const Liveness reader, BranchesOf(n));
  if (reader.empty()) return g;
  MR_ASSIGN_OR_RETURN(const Liveness own, structure_.LivenessOf(x));
  std::vector<std::pair<size_t, int>> extra;  // inner decisions, which need most, last
  for (int l : reader) {
    if (std::binary_search(own.begin(), own.end(), l)) continue;
    MR_ASSIGN_OR_RETURN(const Liveness needs, structure_.LivenessOf(structure_.literal(l).predicate));
    extra.push_back({needs.size(), l});
  }
  if (extra.empty()) return g;
  std::sort(extra.begin(), extra.end());
  const GraphBuilder b = ScopeOf(n);
  Output value = Dense(b, g);
  for (auto it = extra.rbegin(); it != extra.rend(); ++it) {
    const Literal l = structure_.literal(it->second);
    Node* other = b.OpNode("Switch", {ZerosForGradient(b, x, BaseType(value.dtype())), l.predicate});
    if (other == nullptr) return builder_.status();
    value = Merged(b, value, other->output(1 - l.side));
  }
  MR_RETURN_IF_ERROR(builder_.status());
  return Gradient{value, std::nullopt};
}

bool BackwardWalk::DependsOn(Output o, int mark, const std::vector<Output>& sources) const {
  HashSet<const Node*> seen;
  std::vector<const Node*> stack = {o.node};
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    if (!seen.insert(n).second) continue;
    for (const Output& s : sources) {
      if (s.node == n) return true;
    }
    if (n->id() < mark) continue;
    for (const Output& in : n->inputs()) stack.push_back(in.node);
    stack.insert(stack.end(), n->control_inputs().begin(), n->control_inputs().end());
  }
  return false;
}

// A gradient that does not depend on what flowed in, such as constant zeros, must not be live in a branch not taken.
StatusOr<Gradient> BackwardWalk::Guard(const GraphBuilder& b, Gradient g, int mark, const std::vector<Output>& guards) {
  if (guards.empty() || g.none()) return g;
  MR_ASSIGN_OR_RETURN(Node * pivot, current_->context->Pivot());
  const auto held = [&](Output o) { return DependsOn(o, mark, guards) ? o : b.WithControl({pivot}).Identity(o); };
  if (g.dense) {
    g.dense = held(g.dense);
  } else {
    g.sparse = IndexedSlices{held(g.sparse->values), held(g.sparse->indices), held(g.sparse->dense_shape)};
  }
  MR_RETURN_IF_ERROR(b.status());
  return g;
}

}  // namespace millrace
