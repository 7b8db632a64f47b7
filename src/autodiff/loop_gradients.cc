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
  const bool from_exits = std::any_of(
      exits_[loop].begin(), exits_[loop].end(), [&](Node* exit) { return flows_.contains(exit->output(0)); });
  MR_ASSIGN_OR_RETURN(const bool from_stacks, HasStackFlows(loop));
  if (!from_exits && !from_stacks) return absl::OkStatus();
  if (loop->parent != root_ && IsRoot(loop->parent)) {
    return Unimplemented("the gradient through the loop '", loop->name, "' from inside of the loop '", root_->name,
                         "', which is not around it");
  }
  Region& outer = *current_;
  Region& inner = RegionOfLoop(loop);
  inner.context = std::make_unique<BackwardContext>(outer.context.get(), loop);
  MR_RETURN_IF_ERROR(inner.context->Begin());
  std::vector<CarriedGradient> carried;
  for (LoopVariable& v : loop->variables) {
    if (!IsBetween(v.merge) || !Carries(v.merge->output_type(0)) || v.gate == nullptr) continue;
    MR_RETURN_IF_ERROR(StartVariable(loop, &v, inner, outer, &carried));
  }
  std::vector<std::pair<Node*, Gradient>> invariants;
  {
    const InRegion in(this, &inner);
    MR_RETURN_IF_ERROR(WalkRegion(inner));
    for (const CarriedGradient& c : carried) MR_RETURN_IF_ERROR(CloseVariable(c, inner));
    MR_ASSIGN_OR_RETURN(invariants, TakeInvariants(loop));
  }
  for (const CarriedGradient& c : carried) {
    MR_ASSIGN_OR_RETURN(const Output exit, inner.context->Exit(c.backward));
    MR_RETURN_IF_ERROR(Flow(c.forward->enter, 0, {exit, std::nullopt}));
  }
  for (const auto& [enter, g] : invariants) {
    MR_ASSIGN_OR_RETURN(Gradient total, Accumulate(enter, g, inner, outer));
    MR_RETURN_IF_ERROR(Flow(enter, 0, std::move(total)));
  }
  const Item item{nullptr, loop};
  if (const auto it = stack_edges_.find(item); it != stack_edges_.end()) {
    MR_ASSIGN_OR_RETURN(Node * done, inner.context->Done());
    for (const Item& producer : it->second) after_[producer].push_back(done);
  }
  return inner.context->End(after_[item]);
}

// The gradient of a variable starts as that of its final value.
Status BackwardWalk::StartVariable(Loop* loop, LoopVariable* v, Region& inner, Region& outer,
                                   std::vector<CarriedGradient>* carried) {
  std::vector<Output> finals;
  for (Node* exit : v->exits) finals.push_back(exit->output(0));
  MR_ASSIGN_OR_RETURN(const Gradient last, TakeAll(finals));
  const GraphBuilder b = ScopeOf(v->merge);
  Output initial = Dense(b, last);
  if (!initial) {
    MR_ASSIGN_OR_RETURN(const Output final, tape_->FinalValue(loop, v));
    initial = ZerosForGradient(b, final, final.node->handle(0) ? final.node->handle(0)->dtype : DType::kFloat);
  }
  MR_RETURN_IF_ERROR(builder_.status());
  MR_ASSIGN_OR_RETURN(initial, outer.context->Resolve(initial));
  const bool is_handle = BaseType(v->merge->output_type(0)) == DType::kResource;
  CarriedGradient c{v, {}};
  MR_ASSIGN_OR_RETURN(
      c.backward, inner.context->AddVariable(initial, is_handle ? PartialShape::Unknown() : v->merge->shape(0)));
  const Output next = v->next->input(0);
  if (IsBetween(v->next) && IsBetween(next.node) && !stops_.contains(v->next->output(0))) {
    flows_[next].push_back({c.backward.value(), std::nullopt});
  }
  carried->push_back(c);
  return absl::OkStatus();
}

// Next comes the gradient of what the iteration read.
Status BackwardWalk::CloseVariable(const CarriedGradient& c, Region& inner) {
  MR_ASSIGN_OR_RETURN(const Gradient g, TakeAll(Readings(*c.forward)));
  const GraphBuilder b = ScopeOf(c.forward->merge);
  Output next = Dense(b, g);
  if (!next) next = ZerosForGradient(b, c.forward->gate->output(1), BaseType(c.backward.value().dtype()));
  MR_RETURN_IF_ERROR(builder_.status());
  return inner.context->CloseVariable(c.backward, next);
}

StatusOr<std::vector<std::pair<Node*, Gradient>>> BackwardWalk::TakeInvariants(Loop* loop) {
  std::vector<std::pair<Node*, Gradient>> out;
  for (Node* enter : loop->enters) {
    if (!IsBetween(enter) || stops_.contains(enter->output(0))) continue;
    const bool is_variable = std::any_of(
        loop->variables.begin(), loop->variables.end(), [&](const LoopVariable& v) { return v.enter == enter; });
    MR_ASSIGN_OR_RETURN(Gradient g, Take(enter->output(0)));
    if (g.none() || is_variable) continue;
    if (!enter->IsConstantEnter()) {
      return Unimplemented("the gradient through ", enter->Describe(), ", whose value only the first iteration sees");
    }
    out.push_back({enter, std::move(g)});
  }
  return out;
}

// The sum of g over all iterations, for a value that all of them read.
StatusOr<Gradient> BackwardWalk::Accumulate(Node* enter, const Gradient& g, Region& inner, Region& outer) {
  const Output x = enter->input(0);
  const GraphBuilder b = ScopeOf(enter);
  if (!g.dense) return AccumulateRows(b, x, *g.sparse, inner, outer);
  const Output zeros = ZerosForGradient(b, x, BaseType(g.dense.dtype()));
  MR_RETURN_IF_ERROR(builder_.status());
  MR_ASSIGN_OR_RETURN(const Output sum, Pile(zeros, zeros.shape(), inner, outer, [&](Output so_far) {
                        if (BaseType(g.dense.dtype()) != DType::kVariant) return b.Add(so_far, g.dense);
                        return b.Op("AddN", {std::vector<Output>{so_far, g.dense}});
                      }));
  return Gradient{sum, std::nullopt};
}

// A variable that starts as `first`, grows by `add` in every iteration, and is then taken out of the loop.
StatusOr<Output> BackwardWalk::Pile(Output first, const PartialShape& shape, Region& inner, Region& outer,
                                    const std::function<Output(Output)>& add) {
  MR_ASSIGN_OR_RETURN(first, outer.context->Resolve(first));
  MR_ASSIGN_OR_RETURN(const BackwardContext::Variable v, inner.context->AddVariable(first, shape));
  const InRegion in(this, &inner);
  const Output next = add(v.value());
  MR_RETURN_IF_ERROR(builder_.status());
  MR_RETURN_IF_ERROR(inner.context->CloseVariable(v, next));
  return inner.context->Exit(v);
}

// Rows and their numbers pile up, in the reverse order of iterations.
StatusOr<Gradient> BackwardWalk::AccumulateRows(const GraphBuilder& b, Output x, IndexedSlices g, Region& inner,
                                                Region& outer) {
  {
    const InRegion in(this, &inner);
    g = FlatRows(b, g);
  }
  const Output shape = ShapeForGradient(b, x), zero = b.Scalar<int32_t>(0), one = b.Vector<int32_t>({1});
  const Output none = b.ZerosLike(b.Op("StridedSlice", {shape, b.Vector<int32_t>({0}), one, one}));
  const Output row = b.Op("StridedSlice", {shape, one, one, one}, {{"end_mask", 1}});
  const Output dims = b.Op("ConcatV2", {std::vector<Output>{none, row}, zero});
  const Output no_values = b.Op("Fill", {dims, b.ScalarOf(BaseType(g.values.dtype()), 0)});
  const Output no_indices = b.Op("Fill", {none, b.ScalarOf(BaseType(g.indices.dtype()), 0)});
  MR_RETURN_IF_ERROR(builder_.status());
  const auto pile = [&](Output first, Output more) -> StatusOr<Output> {
    PartialShape any = PartialShape::Unknown();
    if (const PartialShape& s = more.shape(); s.rank() >= 1) {
      std::vector<int64_t> sizes(s.dims().begin(), s.dims().end());
      sizes[0] = -1;
      MR_ASSIGN_OR_RETURN(any, PartialShape::Make(sizes));
    }
    return Pile(first, any, inner, outer, [&](Output so_far) {
      return b.Op("ConcatV2", {std::vector<Output>{so_far, more}, b.Scalar<int32_t>(0)});
    });
  };
  IndexedSlices sum{{}, {}, shape};
  MR_ASSIGN_OR_RETURN(sum.values, pile(no_values, g.values));
  MR_ASSIGN_OR_RETURN(sum.indices, pile(no_indices, g.indices));
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
    MR_ASSIGN_OR_RETURN(
        const Output back, current_->context->PopGradient(it->second, BaseType(push->input(1).dtype()), when));
    const Status s = graph_.RefineShape(back, push->input(1).shape());
    if (!s.ok()) return s;
    parts.push_back({back, std::nullopt});
  }
  const Gradient sum = SumGradients(ScopeOf(push), parts);
  MR_RETURN_IF_ERROR(builder_.status());
  return Flow(push, 1, sum);
}

}  // namespace millrace
