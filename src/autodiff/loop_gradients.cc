// SPDX-License-Identifier: Apache-2.0
// The gradient of a loop is a loop that runs as often, from the last iteration to the first (white paper 4.1). Each
// loop variable that matters has a gradient that goes around it: it starts as what flows into the variable's final
// value, and an iteration turns the gradient of what the body made into that of what the body read. What all iterations
// read from outside has a sum that grows.
#include <algorithm>

#include "autodiff/backward_walk.h"
#include "autodiff/sum_gradients.h"

namespace millrace {
namespace {

Output Dense(const GraphBuilder& b, const Gradient& g) {
  if (g.none()) return Output();
  return g.dense ? g.dense : Densify(b, *g.sparse);
}

std::vector<Output> Readings(const LoopVariable& v) {
  std::vector<Output> out = {v.merge->output(0)};
  for (const Consumer& c : v.merge->consumers()) {
    if (c.input == 0 && ControlFlowStructure::IsGate(c.node)) out.push_back(c.node->output(1));
  }
  return out;
}

bool IsConstantEnter(const Node* n) {
  const auto constant = n->Attr<bool>("is_constant");
  return constant.ok() && *constant;
}

}  // namespace

StatusOr<Gradient> BackwardWalk::TakeAll(const std::vector<Output>& outputs) {
  std::vector<Gradient> parts;
  for (const Output& o : outputs) {
    if (stops_.contains(o)) continue;
    MR_ASSIGN_OR_RETURN(Gradient g, Take(o));
    if (!g.none()) parts.push_back(std::move(g));
  }
  const Gradient sum = outputs.empty() ? Gradient() : SumGradients(ScopeOf(outputs[0].node), parts);
  MR_RETURN_IF_ERROR(builder_.status());
  return sum;
}

Status BackwardWalk::CheckExits(Loop* loop) {
  if (loop->condition == nullptr) return InvalidArgument("the loop '", loop->name, "' has no LoopCond");
  for (const Node* exit : exits_[loop]) {
    const bool known = std::any_of(loop->variables.begin(), loop->variables.end(), [&](const LoopVariable& v) {
      return std::find(v.exits.begin(), v.exits.end(), exit) != v.exits.end();
    });
    if (!known) {
      return Unimplemented("the gradient through ", exit->Describe(), ", which takes ", exit->input(0).ToString(),
                           " out of the loop '", loop->name, "': that is not a loop variable");
    }
  }
  return absl::OkStatus();
}

StatusOr<bool> BackwardWalk::HasStackFlows(Loop* loop) {
  for (const auto& [push, handle] : gradient_stacks_) {
    MR_ASSIGN_OR_RETURN(const Loop* at, structure_.LoopOf(push));
    if (ControlFlowStructure::Encloses(loop, at)) return true;
  }
  return false;
}

Status BackwardWalk::LoopGradient(Loop* loop) {
  MR_RETURN_IF_ERROR(structure_.Describe(loop));
  MR_RETURN_IF_ERROR(CheckExits(loop));
  Region& outer = *current_;
  Region& inner = RegionOfLoop(loop);
  bool any = false;
  for (const Node* exit : exits_[loop]) any |= flows_.contains(const_cast<Node*>(exit)->output(0));
  MR_ASSIGN_OR_RETURN(const bool from_stacks, HasStackFlows(loop));
  if (!any && !from_stacks) return absl::OkStatus();
  inner.context = std::make_unique<BackwardContext>(outer.context.get(), loop);
  MR_RETURN_IF_ERROR(inner.context->Begin());
  const GraphBuilder b = builder_.ScopeExact(absl::StrCat(loop->name, "_grad"));

  struct Part {
    LoopVariable* forward;
    BackwardContext::Variable backward;
  };
  std::vector<Part> parts;
  for (LoopVariable& v : loop->variables) {
    if (!IsBetween(v.merge) || !CarriesGradient(v.merge->output_type(0)) || v.gate == nullptr) continue;
    MR_ASSIGN_OR_RETURN(const Gradient last, TakeAll([&] {
                          std::vector<Output> finals;
                          for (Node* e : v.exits) finals.push_back(e->output(0));
                          return finals;
                        }()));
    Output initial = Dense(b, last);
    if (!initial) {
      MR_ASSIGN_OR_RETURN(const Output final, tape_->FinalValue(loop, &v));
      initial = ZerosForGradient(b, final, final.node->handle(0) ? final.node->handle(0)->dtype : DType::kFloat);
    }
    MR_RETURN_IF_ERROR(builder_.status());
    MR_ASSIGN_OR_RETURN(initial, outer.context->Resolve(initial));
    const bool is_handle = BaseType(v.merge->output_type(0)) == DType::kResource;
    MR_ASSIGN_OR_RETURN(const BackwardContext::Variable back,
                        inner.context->AddVariable(initial, is_handle ? PartialShape::Unknown() : v.merge->shape(0)));
    parts.push_back({&v, back});
    if (IsBetween(v.next) && IsBetween(v.next->input(0).node) && !stops_.contains(v.next->output(0))) {
      flows_[v.next->input(0)].push_back({back.value(), std::nullopt});
    }
  }

  std::vector<std::pair<Node*, Gradient>> sums;
  {
    const InRegion in(this, &inner);
    MR_RETURN_IF_ERROR(WalkRegion(inner));
    for (Part& p : parts) {
      MR_ASSIGN_OR_RETURN(const Gradient g, TakeAll(Readings(*p.forward)));
      Output next = Dense(b, g);
      if (!next) {
        const Output like = p.forward->gate->output(1);
        next = ZerosForGradient(b, like, BaseType(p.backward.value().dtype()));
      }
      MR_RETURN_IF_ERROR(builder_.status());
      MR_RETURN_IF_ERROR(inner.context->CloseVariable(p.backward, next));
    }
    for (Node* enter : loop->enters) {
      if (!IsBetween(enter) || stops_.contains(enter->output(0))) continue;
      const bool is_variable = std::any_of(loop->variables.begin(), loop->variables.end(),
                                           [&](const LoopVariable& v) { return v.enter == enter; });
      MR_ASSIGN_OR_RETURN(Gradient g, Take(enter->output(0)));
      if (g.none() || is_variable) continue;
      if (!IsConstantEnter(enter)) {
        return Unimplemented("the gradient through ", enter->Describe(), ", whose value only the first iteration sees");
      }
      sums.push_back({enter, std::move(g)});
    }
  }
  for (const Part& p : parts) {
    MR_ASSIGN_OR_RETURN(const Output exit, inner.context->Exit(p.backward));
    MR_RETURN_IF_ERROR(Flow(p.forward->enter, 0, {exit, std::nullopt}));
  }
  for (const auto& [enter, g] : sums) {
    MR_ASSIGN_OR_RETURN(Gradient total, Accumulate(enter, g, b, inner, outer));
    MR_RETURN_IF_ERROR(Flow(enter, 0, std::move(total)));
  }
  const Item item{nullptr, loop};
  if (const auto it = stack_edges_.find(item); it != stack_edges_.end()) {
    MR_ASSIGN_OR_RETURN(Node * done, inner.context->Done());
    for (const Item& producer : it->second) after_[producer].push_back(done);
  }
  return inner.context->End(after_[item]);
}

// The sum over iterations of g, from `initial` on.
StatusOr<Output> BackwardWalk::AccumulateDense(Output initial, Output g, const GraphBuilder& b, Region& inner) {
  const PartialShape shape = initial.shape();
  MR_ASSIGN_OR_RETURN(const BackwardContext::Variable sum, inner.context->AddVariable(initial, shape));
  {
    const InRegion in(this, &inner);
    const Output next = BaseType(g.dtype()) == DType::kVariant ? b.Op("AddN", {std::vector<Output>{sum.value(), g}})
                                                               : b.Add(sum.value(), g);
    MR_RETURN_IF_ERROR(builder_.status());
    MR_RETURN_IF_ERROR(inner.context->CloseVariable(sum, next));
  }
  return inner.context->Exit(sum);
}

StatusOr<Gradient> BackwardWalk::Accumulate(Node* enter, const Gradient& g, const GraphBuilder& b, Region& inner,
                                            Region& outer) {
  const Output x = enter->input(0);
  if (g.dense) {
    Output zeros = ZerosForGradient(b, x, BaseType(g.dense.dtype()));
    MR_RETURN_IF_ERROR(builder_.status());
    MR_ASSIGN_OR_RETURN(zeros, outer.context->Resolve(zeros));
    MR_ASSIGN_OR_RETURN(const Output sum, AccumulateDense(zeros, g.dense, b, inner));
    return Gradient{sum, std::nullopt};
  }
  // Rows and their numbers pile up.
  const Output shape = ShapeForGradient(b, x);
  const Output ones = b.Vector<int32_t>({1});
  const Output row = b.Op("StridedSlice", {shape, ones, ones, ones}, {{"end_mask", 1}});
  const Output none = b.Op("ZerosLike", {b.Op("StridedSlice", {shape, b.Vector<int32_t>({0}), ones, ones})});
  const Output dims = b.Op("ConcatV2", {std::vector<Output>{none, row}, b.Scalar<int32_t>(0)});
  Output values = b.Op("Fill", {dims, b.ScalarOf(BaseType(g.sparse->values.dtype()), 0)});
  Output indices = b.Op("Fill", {none, b.ScalarOf(BaseType(g.sparse->indices.dtype()), 0)});
  MR_RETURN_IF_ERROR(builder_.status());
  const auto pile = [&](Output empty, Output more, Output flat_shape) -> StatusOr<Output> {
    const PartialShape& s = more.shape();
    PartialShape any = PartialShape::Unknown();
    if (s.has_rank() && s.rank() >= 1) {
      std::vector<int64_t> d(s.dims().begin(), s.dims().end());
      d[0] = -1;
      MR_ASSIGN_OR_RETURN(any, PartialShape::Make(d));
    }
    (void)flat_shape;
    MR_ASSIGN_OR_RETURN(const BackwardContext::Variable v, inner.context->AddVariable(empty, any));
    const InRegion in(this, &inner);
    const Output next = b.Op("ConcatV2", {std::vector<Output>{v.value(), more}, b.Scalar<int32_t>(0)});
    MR_RETURN_IF_ERROR(builder_.status());
    MR_RETURN_IF_ERROR(inner.context->CloseVariable(v, next));
    return inner.context->Exit(v);
  };
  IndexedSlices flat = *g.sparse;
  if (flat.indices.shape().rank() != 1) {
    const InRegion in(this, &inner);
    const Output all = b.Vector<int32_t>({-1});
    const Output row_in = b.Op("StridedSlice", {flat.dense_shape, ones, ones, ones}, {{"end_mask", 1}});
    const Output any = BaseType(row_in.dtype()) == DType::kInt64 ? b.Cast(all, DType::kInt64) : all;
    flat.values = b.Reshape(flat.values, b.Op("ConcatV2", {std::vector<Output>{any, row_in}, b.Scalar<int32_t>(0)}));
    flat.indices = b.Reshape(flat.indices, all);
    MR_RETURN_IF_ERROR(builder_.status());
  }
  IndexedSlices sum;
  MR_ASSIGN_OR_RETURN(sum.values, pile(values, flat.values, row));
  MR_ASSIGN_OR_RETURN(sum.indices, pile(indices, flat.indices, row));
  sum.dense_shape = shape;
  return Gradient{{}, sum};
}

// The backward loop of an earlier gradient popped what its forward loop had pushed. Now it pushes the gradients of what
// it popped, and the gradient of the forward loop pops them, which is the order in which it needs them.
Status BackwardWalk::PopGradientOf(Node* pop, const Gradient& g) {
  if (g.none()) return absl::OkStatus();
  const GraphBuilder b = ScopeOf(pop);
  const Output value = Dense(b, g);
  MR_RETURN_IF_ERROR(builder_.status());
  MR_ASSIGN_OR_RETURN(const Output handle, tape_->NewStack(BaseType(value.dtype()), "gradient_acc", pop->device()));
  MR_ASSIGN_OR_RETURN(const Liveness branches, BranchesOf(pop));
  MR_RETURN_IF_ERROR(current_->context->PushGradient(handle, value, !branches.empty()));
  gradient_stacks_[push_of_pop_[pop]] = handle;
  return absl::OkStatus();
}

Status BackwardWalk::PushGradientOf(Node* push, const Gradient& g) {
  std::vector<Gradient> parts;
  if (!g.none()) parts.push_back(g);
  if (const auto it = gradient_stacks_.find(push); it != gradient_stacks_.end()) {
    MR_ASSIGN_OR_RETURN(const Liveness when, structure_.LivenessOf(push));
    MR_ASSIGN_OR_RETURN(const Output back,
                        current_->context->PopGradient(it->second, BaseType(push->input(1).dtype()), when));
    const Status s = graph_.RefineShape(back, push->input(1).shape());
    if (!s.ok()) return s;
    parts.push_back({back, std::nullopt});
  }
  const Gradient sum = SumGradients(ScopeOf(push), parts);
  MR_RETURN_IF_ERROR(builder_.status());
  return Flow(push, 1, sum);
}

}  // namespace millrace
