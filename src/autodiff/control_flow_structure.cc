// SPDX-License-Identifier: Apache-2.0
// The loop of a node is that of any of its inputs, except behind Enter and Exit, so it is found by climbing one input
// per node. The liveness of a node is what all its inputs need together; a Merge needs what its inputs have in common.
#include "autodiff/control_flow_structure.h"

#include <algorithm>
#include <iterator>

namespace millrace {
namespace {

// What the constructors say at the LoopCond, where it is not the default.
constexpr char kBackProp[] = "_back_prop";
constexpr char kSwapMemory[] = "_swap_memory";

bool Flag(const Node* n, absl::string_view name, bool otherwise = false) {
  const auto it = n->attrs().find(name);
  const bool* value = it == n->attrs().end() ? nullptr : it->second.get<bool>();
  return value == nullptr ? otherwise : *value;
}

// The input by which the climb goes on; null at the top.
const Node* Climb(const Node* n) {
  for (const Output& o : n->inputs()) {
    if (o && !IsBackEdge(o.node->control_op(), n->control_op())) return o.node;
  }
  return n->control_inputs().empty() ? nullptr : n->control_inputs()[0];
}

void Insert(Liveness* l, int literal) {
  const auto it = std::lower_bound(l->begin(), l->end(), literal);
  if (it == l->end() || *it != literal) l->insert(it, literal);
}

void InsertAll(Liveness* l, const Liveness& more) {
  for (int literal : more) Insert(l, literal);
}

}  // namespace

bool ControlFlowStructure::Encloses(const Loop* outer, const Loop* inner) {
  while (inner != nullptr && inner != outer) inner = inner->parent;
  return inner == outer;
}

bool ControlFlowStructure::IsLoopMerge(const Node* n) {
  return n->control_op() == ControlOp::kMerge &&
         std::any_of(n->inputs().begin(), n->inputs().end(), [](const Output& o) {
           if (!o) return false;
           const ControlOp from = o.node->control_op();
           return from == ControlOp::kNextIteration || from == ControlOp::kEnter;
         });
}

Output ControlFlowStructure::StripIdentities(Output o) {
  while (o.node->Is(OpTrait::kPassesOn) && o.node->control_inputs().empty()) o = o.node->input(0);
  return o;
}

StatusOr<Loop*> ControlFlowStructure::LoopOf(const Node* n) {
  const size_t size = static_cast<size_t>(graph_.num_node_ids());
  if (loop_of_.size() < size) {
    loop_of_.resize(size, nullptr);
    loop_known_.resize(size, false);
  }
  std::vector<const Node*> path;
  while (n != nullptr && !loop_known_[static_cast<size_t>(n->id())]) {
    path.push_back(n);
    if (path.size() > size) return InvalidArgument(n->Describe(), " is part of a cycle");
    n = Climb(n);
  }
  Loop* loop = n == nullptr ? nullptr : loop_of_[static_cast<size_t>(n->id())];
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    if ((*it)->control_op() == ControlOp::kEnter) {
      MR_ASSIGN_OR_RETURN(loop, LoopEntered(*it, loop));
    } else if ((*it)->control_op() == ControlOp::kExit) {
      if (loop == nullptr) return InvalidArgument((*it)->Describe(), " leaves a loop that no Enter has entered");
      loop = loop->parent;
    }
    loop_of_[static_cast<size_t>((*it)->id())] = loop;
    loop_known_[static_cast<size_t>((*it)->id())] = true;
  }
  return path.empty() ? loop : loop_of_[static_cast<size_t>(path.front()->id())];
}

StatusOr<Loop*> ControlFlowStructure::LoopEntered(const Node* enter, Loop* parent) {
  MR_ASSIGN_OR_RETURN(std::string name, enter->Attr<std::string>("frame_name"));
  Loop*& loop = by_key_[LoopKey{parent, name}];
  if (loop == nullptr) {
    const int depth = parent == nullptr ? 1 : parent->depth + 1;
    if (depth > kMaxLoopDepth) {
      return InvalidArgument(
          enter->Describe(), " enters a loop within ", depth - 1, " others; the limit is ", kMaxLoopDepth);
    }
    loop = loops_.emplace_back(std::make_unique<Loop>()).get();
    loop->name = std::move(name);
    loop->parent = parent;
    loop->depth = depth;
  }
  return loop;
}

Status ControlFlowStructure::CollectEnters() {
  if (enters_collected_) return absl::OkStatus();
  enters_collected_ = true;
  for (Node* n : graph_.nodes()) {
    if (n->control_op() != ControlOp::kEnter) continue;
    MR_ASSIGN_OR_RETURN(Loop * loop, LoopOf(n));
    loop->enters.push_back(n);
  }
  return absl::OkStatus();
}

Status ControlFlowStructure::Describe(Loop* loop) {
  MR_RETURN_IF_ERROR(CollectEnters());
  if (!loop->described) loop->problem = FillIn(loop);
  loop->described = true;
  return loop->problem;
}

Status ControlFlowStructure::FillIn(Loop* loop) {
  for (Node* enter : loop->enters) {
    if (auto n = enter->Attr<int64_t>("parallel_iterations"); n.ok()) loop->parallel_iterations = *n;
    MR_RETURN_IF_ERROR(AddVariable(loop, enter));
  }
  if (loop->condition != nullptr) {
    loop->back_prop = Flag(loop->condition, kBackProp, true);
    loop->swap_memory = Flag(loop->condition, kSwapMemory);
  }
  return absl::OkStatus();
}

Status ControlFlowStructure::AddVariable(Loop* loop, Node* enter) {
  if (Flag(enter, "is_constant")) return absl::OkStatus();
  for (const Consumer& c : enter->consumers()) {
    if (c.node->control_op() != ControlOp::kMerge) continue;
    if (c.node->num_inputs() != 2)
      return InvalidArgument(c.node->Describe(), " has ", c.node->num_inputs(), " inputs, wanted 2");
    Node* next = c.node->input(1 - c.input).node;
    if (next == nullptr || next->control_op() != ControlOp::kNextIteration) continue;
    LoopVariable v{enter, c.node, next, nullptr, {}};
    MR_RETURN_IF_ERROR(FindGate(loop, &v));
    loop->variables.push_back(std::move(v));
  }
  return absl::OkStatus();
}

Status ControlFlowStructure::FindGate(Loop* loop, LoopVariable* v) {
  for (const Consumer& c : v->merge->consumers()) {
    if (c.input != 0 || !IsGate(c.node)) continue;
    Node* condition = c.node->input(1).node;
    if (loop->condition != nullptr && loop->condition != condition) {
      return InvalidArgument("the loop '", loop->name, "' has two conditions, ", loop->condition->Describe(), " and ",
                             condition->Describe());
    }
    loop->condition = condition;
    if (v->gate == nullptr) v->gate = c.node;
    for (const Consumer& e : c.node->ConsumersOf(0)) {
      if (e.node->control_op() == ControlOp::kExit) v->exits.push_back(e.node);
    }
  }
  return absl::OkStatus();
}

int ControlFlowStructure::NumberOf(Literal l) {
  l.predicate = StripIdentities(l.predicate);
  const auto [it, fresh] = numbers_.try_emplace(l, static_cast<int>(literals_.size()));
  if (fresh) literals_.push_back(l);
  return it->second;
}

StatusOr<std::vector<const Node*>> ControlFlowStructure::Needs(const Node* n) {
  std::vector<const Node*> out;
  switch (n->control_op()) {
    case ControlOp::kEnter:
    case ControlOp::kTrigger: return out;
    case ControlOp::kMerge:
      if (IsLoopMerge(n)) return out;
      break;
    case ControlOp::kExit: {
      MR_RETURN_IF_ERROR(CollectEnters());
      MR_ASSIGN_OR_RETURN(const Loop* loop, LoopLeft(n));
      for (const Node* enter : loop->enters) out.push_back(enter->input(0).node);
      return out;
    }
    default: break;
  }
  for (const Output& o : n->inputs()) {
    if (o) out.push_back(o.node);
  }
  out.insert(out.end(), n->control_inputs().begin(), n->control_inputs().end());
  return out;
}

// The liveness of a node that has been worked out, with the decision that an output of a Switch adds.
Liveness ControlFlowStructure::KnownLiveness(Output o) {
  const auto it = liveness_.find(o.node);
  Liveness l = it == liveness_.end() ? Liveness() : it->second;
  if (o.node->control_op() == ControlOp::kSwitch) Insert(&l, NumberOf({o.node->input(1), o.index}));
  return l;
}

StatusOr<Liveness> ControlFlowStructure::Join(const Node* n) {
  Liveness out;
  if (n->control_op() == ControlOp::kEnter || n->control_op() == ControlOp::kTrigger) return out;
  if (n->control_op() == ControlOp::kExit) {
    MR_ASSIGN_OR_RETURN(const Loop* loop, LoopLeft(n));
    for (const Node* enter : loop->enters) InsertAll(&out, KnownLiveness(enter->input(0)));
    return out;
  }
  if (n->control_op() == ControlOp::kMerge) {
    if (!IsLoopMerge(n)) out = Meet(n);
  } else {
    for (const Output& o : n->inputs()) InsertAll(&out, KnownLiveness(o));
  }
  for (const Node* c : n->control_inputs()) {
    if (const auto it = liveness_.find(c); it != liveness_.end()) InsertAll(&out, it->second);
  }
  return out;
}

Liveness ControlFlowStructure::Meet(const Node* merge) {
  Liveness common = KnownLiveness(merge->input(0));
  for (int i = 1; i < merge->num_inputs() && !common.empty(); ++i) {
    const Liveness other = KnownLiveness(merge->input(i));
    Liveness both;
    std::set_intersection(common.begin(), common.end(), other.begin(), other.end(), std::back_inserter(both));
    common = std::move(both);
  }
  return common;
}

StatusOr<Liveness> ControlFlowStructure::LivenessOf(const Node* n) {
  std::vector<std::pair<const Node*, bool>> stack = {{n, false}};
  while (!stack.empty()) {
    const auto [at, expanded] = stack.back();
    if (liveness_.contains(at)) {
      stack.pop_back();
    } else if (expanded) {
      MR_ASSIGN_OR_RETURN(Liveness l, Join(at));
      liveness_[at] = std::move(l);
      stack.pop_back();
    } else {
      stack.back().second = true;
      MR_ASSIGN_OR_RETURN(std::vector<const Node*> needs, Needs(at));
      for (const Node* need : needs) {
        if (!liveness_.contains(need)) stack.push_back({need, false});
      }
      if (stack.size() > 64 * static_cast<size_t>(graph_.num_node_ids()) + 1024) {
        return InvalidArgument(at->Describe(), " is part of a cycle");
      }
    }
  }
  return liveness_[n];
}

StatusOr<Liveness> ControlFlowStructure::LivenessOf(const Loop* loop) {
  MR_RETURN_IF_ERROR(CollectEnters());
  Liveness out;
  for (const Node* enter : loop->enters) {
    MR_ASSIGN_OR_RETURN(const Liveness l, LivenessOf(enter->input(0)));
    InsertAll(&out, l);
  }
  return out;
}

StatusOr<Liveness> ControlFlowStructure::LivenessOf(Output o) {
  MR_RETURN_IF_ERROR(LivenessOf(o.node).status());
  return KnownLiveness(o);
}

StatusOr<Literal> ControlFlowStructure::Decides(const Node* merge) {
  if (merge->num_inputs() != 2) return Literal();
  MR_ASSIGN_OR_RETURN(const Liveness a, LivenessOf(merge->input(0)));
  MR_ASSIGN_OR_RETURN(const Liveness b, LivenessOf(merge->input(1)));
  MR_ASSIGN_OR_RETURN(const Liveness all, LivenessOf(merge));
  for (int i : a) {
    const Literal l = literal(i);
    if (!std::binary_search(b.begin(), b.end(), NumberOf({l.predicate, 1 - l.side}))) continue;
    MR_ASSIGN_OR_RETURN(const Liveness own, LivenessOf(l.predicate));
    if (std::includes(all.begin(), all.end(), own.begin(), own.end())) return l;
  }
  return Literal();
}

}  // namespace millrace
