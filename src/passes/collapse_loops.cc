// SPDX-License-Identifier: Apache-2.0
// Loops that wait for nothing become one node each. Innermost loops go first, so nests of loops go too.
#include <algorithm>

#include "base/hash_map.h"
#include "graph/frame_tree.h"
#include "passes/pipeline.h"

namespace millrace {
namespace {

// Ops that are not declared here, those of plugins, may wait for all that is known.
bool MayWait(const Node* n) { return n->op() == nullptr || n->op()->schema.empty() || n->Is(OpTrait::kWaits); }
bool Waits(const Graph& graph) { return std::any_of(graph.nodes().begin(), graph.nodes().end(), MayWait); }

class LoopCollapser {
 public:
  explicit LoopCollapser(Partition& partition) : graph_(*partition.graph), loops_(partition.loops) {}

  Status Run() {
    const bool has_loops = std::any_of(graph_.nodes().begin(), graph_.nodes().end(), [](const Node* n) {
      return n->control_op() == ControlOp::kLoopCond;
    });
    for (bool more = has_loops; more;) {
      MR_ASSIGN_OR_RETURN(more, CollapseInnermost());
    }
    return absl::OkStatus();
  }

 private:
  // All loops without loops inside that have not been refused yet; false when that changed nothing. So there are as
  // many rounds as loops are deep.
  StatusOr<bool> CollapseInnermost() {
    MR_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(graph_));
    MR_ASSIGN_OR_RETURN(const FrameTree tree, FrameTree::Of(order, graph_.num_node_ids()));
    const std::vector<LoopFrame>& frames = tree.frames();
    std::vector<bool> has_children(frames.size(), false);
    for (const LoopFrame& f : frames) {
      if (f.parent >= 0) has_children[static_cast<size_t>(f.parent)] = true;
    }
    std::vector<std::vector<Node*>> nodes(frames.size());
    for (Node* n : order) {
      const bool enters = n->control_op() == ControlOp::kEnter;
      nodes[static_cast<size_t>(enters ? tree.OutputsIn(n) : tree.RunsIn(n))].push_back(n);
    }
    bool changed = false;
    for (size_t f = 1; f < frames.size(); ++f) {
      if (has_children[f] || refused_.contains(frames[f].name)) continue;
      MR_ASSIGN_OR_RETURN(
          std::unique_ptr<LoopRegion> region, FindLoopRegion(frames[f].name, std::move(nodes[f]), graph_.registry()));
      if (region && !Waits(*region->predicate) && !Waits(*region->body)) {
        MR_RETURN_IF_ERROR(Replace(*region));
        changed = true;
      } else {
        refused_.insert(frames[f].name);
      }
    }
    return changed;
  }

  Status Replace(LoopRegion& region) {
    NodeSpec spec;
    spec.op = "_Loop";
    do {
      spec.name = absl::StrCat("_loop_", serial_++);
    } while (graph_.Find(spec.name) != nullptr);
    std::vector<DType> in, out;
    for (const std::vector<Output>* list : {&region.variables, &region.invariants}) {
      for (const Output& o : *list) {
        spec.inputs.push_back(o);
        in.push_back(BaseType(o.dtype()));
      }
    }
    for (const Node* exit : region.exits) out.push_back(BaseType(exit->output_type(0)));
    spec.attrs["Tin"] = in;
    spec.attrs["Tout"] = out;
    spec.control_inputs = region.waits_for;
    if (!region.nodes.empty()) spec.location = region.nodes.front()->location();
    MR_ASSIGN_OR_RETURN(Node * loop, graph_.AddNode(std::move(spec)));
    loop->set_assigned_device(region.nodes.front()->assigned_device());
    for (size_t i = 0; i < region.exits.size(); ++i) {
      Node* exit = region.exits[i];
      loop->set_shape(static_cast<int>(i), exit->shape(0));
      MR_RETURN_IF_ERROR(graph_.ReplaceUses(exit->output(0), loop->output(static_cast<int>(i))));
      const std::vector<Node*> waiting = exit->control_outputs();
      for (Node* to : waiting) graph_.AddControlEdge(loop, to);
    }
    loops_[loop->name()] = {
        region.name,
        region.variables.size(),
        std::move(region.predicate),
        std::move(region.body),
        std::move(region.predicate_args),
        std::move(region.body_args),
        std::move(region.results)};
    // Readers go first, once nobody reads around the loop.
    for (Node* n : region.nodes) {
      for (int i = 0; i < n->num_inputs(); ++i) {
        if (IsBackEdge(n->input(i).node->control_op(), n->control_op())) {
          MR_RETURN_IF_ERROR(graph_.SetInput(n, i, n->input(0)));
        }
      }
    }
    for (auto n = region.nodes.rbegin(); n != region.nodes.rend(); ++n) graph_.RemoveNode(*n);
    return absl::OkStatus();
  }

  Graph& graph_;
  CollapsedLoops& loops_;
  HashSet<std::string> refused_;
  int serial_ = 0;
};

}  // namespace

Status CollapseLoops(Partition& partition) { return LoopCollapser(partition).Run(); }

}  // namespace millrace
