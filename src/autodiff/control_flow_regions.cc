// SPDX-License-Identifier: Apache-2.0
// Regions: the frame that ys are in, with all frames around it, is one; every loop in it is an item there and a region
// of its own inside. A loop's skeleton (Enter, Merge, Switch, NextIteration, Exit of its variables) belongs to the
// loop.
#include <algorithm>

#include "autodiff/backward_walk.h"
#include "autodiff/stack_links.h"
#include "base/hash_map.h"

namespace millrace {

Status BackwardWalk::FindRoot(const std::vector<Output>& ys) {
  bool first = true;
  for (const Output& y : ys) {
    MR_ASSIGN_OR_RETURN(Loop * loop, structure_.LoopOf(y.node));
    if (!first && loop != root_) {
      return InvalidArgument(
          "ys are in different loops: ", ys[0].ToString(), " in '", root_ == nullptr ? "" : root_->name, "', ",
          y.ToString(), " in '", loop == nullptr ? "" : loop->name, "'");
    }
    root_ = loop;
    first = false;
  }
  if (root_ == nullptr) return absl::OkStatus();
  has_control_flow_ = true;
  return structure_.Describe(root_);
}

// The outermost context. In a loop, what runs without inputs waits for the beginning of the iteration.
Status BackwardWalk::StartTape(Output y) {
  tape_ = std::make_unique<ForwardTape>(&structure_, NodeEmitter(&graph_, builder_.scope(), around_), root_);
  RegionOfLoop(nullptr).context = std::make_unique<BackwardContext>(tape_.get());
  if (root_ == nullptr || around_ != nullptr) return absl::OkStatus();
  // A node that comes before whatever the loop computes.
  Node* anchor = y.node;
  for (const LoopVariable& v : root_->variables) {
    if (v.gate == nullptr) continue;
    MR_ASSIGN_OR_RETURN(const Liveness when, structure_.LivenessOf(y));
    const int in_body = structure_.NumberOf({root_->condition->output(0), 1});
    anchor = v.merge;
    if (std::binary_search(when.begin(), when.end(), in_body)) {
      MR_ASSIGN_OR_RETURN(anchor, tape_->emit().Add("anchor", "Identity", {v.gate->output(1)}));
    }
    break;
  }
  tape_->set_anchor(anchor);
  return absl::OkStatus();
}

BackwardWalk::Region& BackwardWalk::RegionOfLoop(Loop* loop) {
  if (IsRoot(loop)) loop = nullptr;
  std::unique_ptr<Region>& region = regions_[loop];
  if (region == nullptr) {
    region = std::make_unique<Region>();
    region->loop = loop;
  }
  return *region;
}

StatusOr<BackwardWalk::Region*> BackwardWalk::RegionOf(const Node* n) {
  Loop* loop = nullptr;
  if (has_control_flow_) {
    MR_ASSIGN_OR_RETURN(loop, structure_.LoopOf(n));
  }
  return &RegionOfLoop(loop);
}

StatusOr<bool> BackwardWalk::IsSkeleton(const Node* n) {
  if (!has_control_flow_) return false;
  switch (n->control_op()) {
    case ControlOp::kExit: return true;
    case ControlOp::kMerge:
      if (!ControlFlowStructure::IsLoopMerge(n)) return false;
      break;
    case ControlOp::kSwitch:
      if (!ControlFlowStructure::IsGate(n) || !ControlFlowStructure::IsLoopMerge(n->input(0).node)) return false;
      break;
    case ControlOp::kEnter:
    case ControlOp::kNextIteration: break;
    default: return false;
  }
  MR_ASSIGN_OR_RETURN(const Loop* loop, structure_.LoopOf(n));
  return !IsRoot(loop);
}

StatusOr<BackwardWalk::Item> BackwardWalk::Reader(Node* consumer, int input) {
  MR_ASSIGN_OR_RETURN(const bool cut, IsCut({consumer, input}));
  if (cut) return Item();
  MR_ASSIGN_OR_RETURN(const bool skeleton, IsSkeleton(consumer));
  if (!skeleton) return Item{consumer, nullptr};
  if (consumer->control_op() != ControlOp::kEnter) return Item();
  MR_ASSIGN_OR_RETURN(Loop * loop, structure_.LoopOf(consumer));
  return Item{nullptr, loop};
}

StatusOr<BackwardWalk::Item> BackwardWalk::Producer(Output o) {
  MR_ASSIGN_OR_RETURN(const bool skeleton, IsSkeleton(o.node));
  if (!skeleton) return Item{o.node, nullptr};
  if (o.node->control_op() != ControlOp::kExit) return Item();
  MR_ASSIGN_OR_RETURN(Loop * loop, structure_.LoopLeft(o.node));
  return Item{nullptr, loop};
}

// Around the loop that ys are in, what an earlier iteration left does not count.
StatusOr<bool> BackwardWalk::IsCut(const Consumer& edge) {
  if (root_ == nullptr || !IsBackEdge(edge.node->input(edge.input).node->control_op(), edge.node->control_op()))
    return false;
  MR_ASSIGN_OR_RETURN(const Loop* loop, structure_.LoopOf(edge.node));
  return IsRoot(loop);
}

// From the outside: the loops that `n` is in, then itself.
StatusOr<std::vector<BackwardWalk::Item>> BackwardWalk::ItemsAround(Node* n) {
  std::vector<Item> out;
  MR_ASSIGN_OR_RETURN(Loop * loop, structure_.LoopOf(n));
  for (; !IsRoot(loop); loop = loop->parent) out.insert(out.begin(), Item{nullptr, loop});
  out.push_back({n, nullptr});
  return out;
}

// Only stacks of loops of their own are understood.
Status BackwardWalk::LinkStacks() {
  if (stacks_linked_) return absl::OkStatus();
  stacks_linked_ = true;
  for (const auto& [push, pop] : StackLinks(graph_)) {
    const StatusOr<Loop*> from = structure_.LoopOf(push), to = structure_.LoopOf(pop);
    if (!from.ok() || !to.ok() || *from == *to || IsRoot(*from) || IsRoot(*to)) continue;
    pop_of_push_[push] = pop;
    push_of_pop_[pop] = push;
  }
  return absl::OkStatus();
}

}  // namespace millrace
