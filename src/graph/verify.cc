// SPDX-License-Identifier: Apache-2.0
#include "graph/verify.h"

#include <algorithm>

#include "base/hash_map.h"
#include "graph/frame_tree.h"
#include "graph/recursion.h"

namespace millrace {
namespace {

constexpr int kMaxFunctionDepth = 256;

Status VerifyEdges(const Node& n) {
  if (n.inputs().size() != n.signature().input_types.size()) {
    return InvalidArgument(
        n.Describe(), " takes ", n.signature().input_types.size(), " inputs, has ", n.inputs().size());
  }
  for (int i = 0; i < n.num_inputs(); ++i) {
    const Output o = n.input(i);
    if (!o) return InvalidArgument(n.Describe(), " lacks input ", i);
    if (o.index < 0 || o.index >= o.node->num_outputs()) {
      return InvalidArgument(n.Describe(), ", input ", i, ": ", o.node->Describe(), " has no output ", o.index);
    }
    const DType got = o.dtype(), want = n.input_type(i);
    if (got == DType::kInvalid || want == DType::kInvalid || got == want || BaseType(got) == want) continue;
    return InvalidArgument(n.Describe(), ", input ", i, ": got ", DTypeName(got), ", wanted ", DTypeName(want));
  }
  return absl::OkStatus();
}

// Every way around a loop must lead through a Switch of that loop, or nothing could ever end it; something must leave
// it.
class LoopVerifier {
 public:
  LoopVerifier(const std::vector<Node*>& order, const FrameTree& tree, int num_ids)
      : order_(order), tree_(tree), conditional_(static_cast<size_t>(num_ids), false) {}

  Status Verify() {
    for (const Node* n : order_) conditional_[static_cast<size_t>(n->id())] = !Unconditional(n);
    for (const Node* n : order_) {
      if (n->control_op() == ControlOp::kMerge) MR_RETURN_IF_ERROR(VisitBackEdges(*n));
      if (n->Is(OpTrait::kResult) && tree_.RunsIn(n) != 0) {
        return InvalidArgument(n->input(0).ToString(), " is inside of the loop '", NameOf(n),
                               "' and has a value in each iteration; fetch what leaves the loop by an Exit instead");
      }
    }
    return FindExits();
  }

 private:
  const std::string& NameOf(const Node* n) const { return tree_.frames()[static_cast<size_t>(tree_.RunsIn(n))].name; }

  Status VisitBackEdges(const Node& merge) {
    for (const Output& o : merge.inputs()) {
      if (o.node->control_op() != ControlOp::kNextIteration) continue;
      if (tree_.RunsIn(o.node) != tree_.RunsIn(&merge)) {
        return InvalidArgument(merge.Describe(), " in frame '", NameOf(&merge), "' is fed by '", o.node->name(),
                               "' in frame '", NameOf(o.node), "'");
      }
      if (!conditional_[static_cast<size_t>(o.node->id())]) {
        return InvalidArgument("the loop '", NameOf(&merge), "' can never end: no Switch stands between ",
                               merge.Describe(), " and '", o.node->name(), "', which feeds it");
      }
    }
    return absl::OkStatus();
  }

  // Whether `n` runs in every iteration whatever a Switch decides. Said only when it is sure.
  bool Unconditional(const Node* n) const {
    if (n->control_op() == ControlOp::kSwitch || n->control_op() == ControlOp::kExit) return false;
    if (n->control_op() == ControlOp::kEnter) return true;
    const auto is_conditional = [this](const Node* from) { return conditional_[static_cast<size_t>(from->id())]; };
    bool loop_merge = false;
    for (const Output& o : n->inputs()) {
      if (IsBackEdge(o.node->control_op(), n->control_op())) {
        loop_merge = true;
      } else if (n->control_op() != ControlOp::kMerge && is_conditional(o.node)) {
        return false;
      }
    }
    if (n->control_op() == ControlOp::kMerge) return loop_merge;
    return std::none_of(n->control_inputs().begin(), n->control_inputs().end(), is_conditional);
  }

  Status FindExits() const {
    std::vector<const Node*> turns(tree_.frames().size(), nullptr);
    std::vector<bool> left(tree_.frames().size(), false);
    for (const Node* n : order_) {
      const size_t frame = static_cast<size_t>(tree_.RunsIn(n));
      if (n->control_op() == ControlOp::kNextIteration) turns[frame] = n;
      if (n->control_op() == ControlOp::kExit) left[frame] = true;
    }
    for (size_t f = 0; f < turns.size(); ++f) {
      if (turns[f] == nullptr || left[f]) continue;
      return InvalidArgument(
          "nothing leaves the loop '", tree_.frames()[f].name, "' of ", turns[f]->Describe(), ": it has no Exit");
    }
    return absl::OkStatus();
  }

  const std::vector<Node*>& order_;
  const FrameTree& tree_;
  std::vector<bool> conditional_;  // by id: whether it runs depends on a Switch
};

}  // namespace

// Depth-first over the call graph with a stack of our own: no recursion, no chain deeper than the limit.
Status VerifyFunctions(const Graph& graph) {
  struct Visit {
    absl::string_view name;
    std::vector<absl::string_view> calls;
    size_t next = 0;
    int height = 1;
  };
  HashMap<absl::string_view, int> height;  // 0: on the stack, and so, found again, a recursion
  for (const wire::FunctionDef* root : graph.Functions()) {
    if (height.contains(root->signature->name)) continue;
    std::vector<Visit> stack;
    const auto push = [&](const wire::FunctionDef& f) {
      height[f.signature->name] = 0;
      stack.push_back({f.signature->name, CallsOf(graph, f)});
    };
    push(*root);
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.next == top.calls.size()) {
        const int done = top.height;
        if (done > kMaxFunctionDepth) {
          return InvalidArgument(
              "function '", top.name, "' calls functions ", done, " deep; the limit is ", kMaxFunctionDepth);
        }
        height[top.name] = done;
        stack.pop_back();
        if (!stack.empty()) stack.back().height = std::max(stack.back().height, done + 1);
        continue;
      }
      const absl::string_view callee = top.calls[top.next++];
      auto it = height.find(callee);
      if (it == height.end()) {
        push(*graph.FindFunction(callee));
      } else {
        top.height = std::max(top.height, it->second + 1);
      }
    }
  }
  return absl::OkStatus();
}

Status VerifyGraph(const Graph& graph, GraphExtent extent) {
  for (const Node* n : graph.nodes()) {
    MR_RETURN_IF_ERROR(VerifyEdges(*n));
  }
  MR_ASSIGN_OR_RETURN(std::vector<Node*> order, TopologicalOrder(graph));
  MR_ASSIGN_OR_RETURN(const FrameTree tree, FrameTree::Of(order, graph.num_node_ids()));
  if (extent == GraphExtent::kWhole && tree.frames().size() > 1) {
    MR_RETURN_IF_ERROR(LoopVerifier(order, tree, graph.num_node_ids()).Verify());
  }
  return VerifyFunctions(graph);
}

}  // namespace millrace
