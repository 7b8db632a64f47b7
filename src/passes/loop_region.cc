// SPDX-License-Identifier: Apache-2.0
// The nodes of a frame fall into the predicate's part, which runs whatever the predicate says, and the body's, which
// lies behind the true outputs of the Switches on the predicate. Both are copied into graphs of their own, where what
// comes from elsewhere is an argument.
#include "passes/loop_region.h"

#include <algorithm>

#include "base/hash_map.h"

namespace millrace {
namespace {

// One of the two graphs while it grows.
class Part {
 public:
  Part(const OpRegistry& registry, std::vector<LoopValue>* args)
      : graph_(std::make_unique<Graph>(&registry)), args_(args) {}

  bool Holds(const Node* n) const { return copies_.contains(n); }
  Node* CopyOf(const Node* n) const { return copies_.at(n); }

  StatusOr<Output> Argument(LoopValue value, Output like) {
    if (auto it = arguments_.find(value); it != arguments_.end()) return it->second->output(0);
    NodeSpec spec;
    spec.name = absl::StrCat("_arg_", args_->size());
    spec.op = "_Arg";
    spec.attrs["T"] = BaseType(like.dtype());
    spec.attrs["index"] = static_cast<int64_t>(args_->size());
    MR_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(std::move(spec)));
    node->set_shape(0, like.shape());
    args_->push_back(value);
    arguments_[value] = node;
    return node->output(0);
  }

  Status Copy(Node* n, absl::Span<const Output> inputs, const std::vector<Node*>& controls) {
    // Whoever waits for something that always runs before it anyway, and computes nothing from it, need not wait. So
    // constants of the body become constants of its plan.
    std::vector<Node*> kept;
    for (Node* c : controls) {
      if (conditional_.contains(c) || n->num_inputs() > 0 || !n->Is(OpTrait::kConstant)) kept.push_back(c);
    }
    if (IsIdentity(*n) && kept.empty() && inputs[0].node->Is(OpTrait::kArgument)) {
      identities_[n] = inputs[0];
      return absl::OkStatus();
    }
    MR_ASSIGN_OR_RETURN(Node * copy, graph_->CopyNode(*n, inputs, kept));
    copies_[n] = copy;
    const auto conditional = [this](const Node* from) { return conditional_.contains(from); };
    const bool below =
        std::any_of(inputs.begin(), inputs.end(), [&](const Output& o) { return conditional(o.node); }) ||
        std::any_of(kept.begin(), kept.end(), conditional);
    if (below || n->control_op() == ControlOp::kSwitch) conditional_.insert(copy);
    return absl::OkStatus();
  }

  // The value of `o`, or nothing when it is not of this part.
  Output Value(Output o) const {
    if (auto it = identities_.find(o.node); it != identities_.end()) return it->second;
    auto it = copies_.find(o.node);
    return it == copies_.end() ? Output() : Output{it->second, o.index};
  }
  // The nodes to wait for in place of `n`: none when it is not of this part, and so has run before.
  Node* Before(const Node* n) const {
    auto it = copies_.find(n);
    return it == copies_.end() ? nullptr : it->second;
  }
  bool has_conditionals() const { return !conditional_.empty(); }
  // Whether `n` is of this part and lies behind a Switch.
  bool MayBeDead(const Node* n) const {
    auto it = copies_.find(n);
    return it != copies_.end() && conditional_.contains(it->second);
  }

  Status Return(Output value) {
    NodeSpec spec;
    spec.name = absl::StrCat("_retval_", num_retvals_);
    spec.op = "_Retval";
    spec.inputs = {value};
    spec.attrs["T"] = BaseType(value.dtype());
    spec.attrs["index"] = num_retvals_++;
    return graph_->AddNode(std::move(spec)).status();
  }
  std::unique_ptr<Graph> Take() { return std::move(graph_); }

 private:
  static bool IsIdentity(const Node& n) { return n.Is(OpTrait::kPassesOn) && !IsRef(n.input(0).dtype()); }

  std::unique_ptr<Graph> graph_;
  std::vector<LoopValue>* args_;
  HashMap<LoopValue, Node*> arguments_;
  HashMap<const Node*, Node*> copies_;
  HashMap<const Node*, Output> identities_;  // of arguments
  HashSet<const Node*> conditional_;         // copies that lie behind a Switch
  int64_t num_retvals_ = 0;
};

class RegionFinder {
 public:
  RegionFinder(const std::string& name, std::vector<Node*> nodes, const OpRegistry& registry)
      : region_(std::make_unique<LoopRegion>()),
        predicate_(registry, &region_->predicate_args),
        body_(registry, &region_->body_args) {
    region_->name = name;
    region_->nodes = std::move(nodes);
  }

  // False: not of this form. (An error is one of memory or of a bug.)
  StatusOr<bool> Find() {
    if (!FindPredicate() || !FindVariables() || !MarkBody()) return false;
    for (Node* n : region_->nodes) {
      if (n->op() == nullptr) return false;
      if (n->control_op() != ControlOp::kNone && n->control_op() != ControlOp::kTrigger && !IsInner(*n)) continue;
      MR_ASSIGN_OR_RETURN(const bool fits, Add(n));
      if (!fits) return false;
    }
    return Close();
  }
  std::unique_ptr<LoopRegion> Take() { return std::move(region_); }

 private:
  bool IsLoopSwitch(const Node& n) const {
    return n.control_op() == ControlOp::kSwitch && n.input(1).node == loop_cond_;
  }
  bool IsLoopMerge(const Node& n) const { return variable_of_.contains(&n); }
  // A Switch or Merge of a conditional.
  bool IsInner(const Node& n) const {
    return (n.control_op() == ControlOp::kSwitch && !IsLoopSwitch(n)) ||
           (n.control_op() == ControlOp::kMerge && !IsLoopMerge(n));
  }

  bool FindPredicate() {
    for (Node* n : region_->nodes) {
      if (n->control_op() != ControlOp::kLoopCond) continue;
      if (loop_cond_ != nullptr || !n->control_outputs().empty()) return false;
      loop_cond_ = n;
    }
    if (loop_cond_ == nullptr) return false;
    return std::all_of(loop_cond_->consumers().begin(), loop_cond_->consumers().end(), [&](const Consumer& c) {
      return c.input == 1 && IsLoopSwitch(*c.node);
    });
  }

  bool FindVariables() {
    for (Node* n : region_->nodes) {
      switch (n->control_op()) {
        case ControlOp::kEnter:
          if (IsRef(n->output_type(0))) return false;
          for (Node* c : n->control_inputs()) region_->waits_for.push_back(c);
          if (n->IsConstantEnter()) {
            invariant_of_[n] = static_cast<int>(region_->invariants.size());
            region_->invariants.push_back(n->input(0));
          } else if (!n->control_outputs().empty() || n->consumers().size() != 1) {
            return false;
          }
          break;
        case ControlOp::kMerge: {
          const bool is_back = n->num_inputs() == 2 && n->input(1).node->control_op() == ControlOp::kNextIteration;
          if (!is_back) break;
          const Node* enter = n->input(0).node;
          if (enter->control_op() != ControlOp::kEnter || enter->IsConstantEnter() || !n->control_inputs().empty() ||
              IsRef(n->output_type(0)) || !n->ConsumersOf(1).empty()) {
            return false;
          }
          variable_of_[n] = static_cast<int>(region_->variables.size());
          region_->variables.push_back(enter->input(0));
          next_.push_back(n->input(1).node);
          break;
        }
        default: break;
      }
    }
    return !region_->variables.empty();
  }

  // What depends on a true output of a loop Switch. Only Exits may depend on a false one.
  bool MarkBody() {
    for (Node* n : region_->nodes) {
      if (n->control_op() == ControlOp::kEnter || n->control_op() == ControlOp::kLoopCond || IsLoopMerge(*n)) continue;
      if (IsLoopSwitch(*n)) {
        // Who waits for the Switch itself, not for an output of it, runs in every iteration, as the predicate does.
        if (!n->control_inputs().empty() || IsRef(n->output_type(0))) return false;
        continue;
      }
      bool in_body = false;
      for (const Output& o : n->inputs()) {
        if (IsLoopSwitch(*o.node)) {
          if (o.index == 0 && n->control_op() != ControlOp::kExit) return false;
          in_body |= o.index == 1;
        }
        in_body |= body_nodes_.contains(o.node);
      }
      for (const Node* c : n->control_inputs()) in_body |= body_nodes_.contains(c);
      if (n->control_op() == ControlOp::kExit) {
        if (in_body || !IsLoopSwitch(*n->input(0).node) || !n->control_inputs().empty()) return false;
        region_->exits.push_back(n);
      } else if (n->control_op() == ControlOp::kNextIteration) {
        if (!in_body || !n->control_outputs().empty() || n->consumers().size() != 1) return false;
      } else if (in_body) {
        body_nodes_.insert(n);
      }
    }
    return !body_nodes_.contains(loop_cond_->input(0).node);
  }

  // What a value is at the beginning of the body, if it is not computed there.
  StatusOr<LoopValue> Source(Output o) {
    if (IsLoopSwitch(*o.node)) o = o.node->input(0);
    if (auto it = variable_of_.find(o.node); it != variable_of_.end())
      return LoopValue{LoopValue::Kind::kVariable, it->second};
    if (auto it = invariant_of_.find(o.node); it != invariant_of_.end()) {
      return LoopValue{LoopValue::Kind::kInvariant, it->second};
    }
    const auto [it, fresh] = computed_.try_emplace(o, static_cast<int>(computed_.size()));
    if (fresh) computed_values_.push_back(o);
    return LoopValue{LoopValue::Kind::kComputed, it->second};
  }

  StatusOr<bool> Add(Node* n) {
    const bool in_body = body_nodes_.contains(n);
    Part& part = in_body ? body_ : predicate_;
    std::vector<Output> inputs;
    for (const Output& o : n->inputs()) {
      Output here = part.Value(o);
      if (!here) {
        MR_ASSIGN_OR_RETURN(const LoopValue source, Source(o));
        if (!in_body && source.kind == LoopValue::Kind::kComputed) return false;
        MR_ASSIGN_OR_RETURN(here, part.Argument(source, o));
      }
      inputs.push_back(here);
    }
    std::vector<Node*> controls;
    for (const Node* c : n->control_inputs()) {
      // Who waits for what may be dead may be dead itself, which the body could not tell.
      if (in_body && predicate_.MayBeDead(c)) return false;
      if (Node* before = part.Before(c)) controls.push_back(before);
    }
    MR_RETURN_IF_ERROR(part.Copy(n, inputs, controls));
    return true;
  }

  StatusOr<bool> Close() {
    for (size_t i = 0; i < next_.size(); ++i) {
      const Output o = next_[i]->input(0);
      Output value = body_.Value(o);
      if (!value) {
        MR_ASSIGN_OR_RETURN(const LoopValue source, Source(o));
        MR_ASSIGN_OR_RETURN(value, body_.Argument(source, o));
      }
      MR_RETURN_IF_ERROR(body_.Return(value));
    }
    for (Node* exit : region_->exits) {
      MR_ASSIGN_OR_RETURN(region_->results.emplace_back(), Source(exit->input(0)));
    }
    MR_ASSIGN_OR_RETURN(Output pred, ValueInPredicate(loop_cond_->input(0)));
    if (!pred) return false;
    MR_RETURN_IF_ERROR(predicate_.Return(pred));
    // A computed value might be dead; then only the general way is right.
    if (!computed_values_.empty() && predicate_.has_conditionals()) return false;
    for (const Output& o : computed_values_) {
      MR_ASSIGN_OR_RETURN(const Output value, ValueInPredicate(o));
      if (!value) return false;
      MR_RETURN_IF_ERROR(predicate_.Return(value));
    }
    region_->predicate = predicate_.Take();
    region_->body = body_.Take();
    return true;
  }

  StatusOr<Output> ValueInPredicate(Output o) {
    if (const Output value = predicate_.Value(o)) return value;
    if (!variable_of_.contains(o.node) && !invariant_of_.contains(o.node)) return Output();
    MR_ASSIGN_OR_RETURN(const LoopValue source, Source(o));
    return predicate_.Argument(source, o);
  }

  std::unique_ptr<LoopRegion> region_;
  Part predicate_, body_;
  Node* loop_cond_ = nullptr;
  HashMap<const Node*, int> variable_of_;   // by Merge
  HashMap<const Node*, int> invariant_of_;  // by Enter
  std::vector<Node*> next_;                 // the NextIteration of each variable
  HashSet<const Node*> body_nodes_;
  HashMap<Output, int> computed_;
  std::vector<Output> computed_values_;
};

}  // namespace

StatusOr<std::unique_ptr<LoopRegion>> FindLoopRegion(const std::string& name, std::vector<Node*> nodes,
                                                     const OpRegistry& registry) {
  RegionFinder finder(name, std::move(nodes), registry);
  MR_ASSIGN_OR_RETURN(const bool found, finder.Find());
  return found ? finder.Take() : nullptr;
}

}  // namespace millrace
