// SPDX-License-Identifier: Apache-2.0
// Partitioning (white paper 3.2.2): one graph per device; an edge that crosses becomes a Send and a Recv, one pair per
// tensor and destination device; a control edge that crosses sends an empty tensor.
//
// Loops (white paper 4.4): a device that receives something inside of a loop gets a loop of its own there, the control
// loop, which goes round once for each iteration: Enter -> Merge -> Switch -> NextIteration, with the predicate of the
// real loop, one small message an iteration. Every Recv inside waits for its Merge, so it runs once an iteration, the
// last and dead one included, as the Send does. No one coordinates the end: each device sees the predicate.
#include <algorithm>
#include <map>

#include "base/hash_map.h"
#include "graph/frame_tree.h"
#include "passes/pipeline.h"

namespace millrace {
namespace {

// What passes from one iteration to another stays on one device: a message could not say which iteration it is for.
// The Merge of a loop variable decides for its Enter, NextIteration and Switch, the Switch for the Exit.
void ColocateLoopVariables(const std::vector<Node*>& order) {
  for (Node* merge : order) {
    if (merge->control_op() != ControlOp::kMerge) continue;
    for (Output in : merge->inputs()) {
      const ControlOp op = in.node->control_op();
      if (op == ControlOp::kEnter || op == ControlOp::kNextIteration) {
        in.node->set_assigned_device(merge->assigned_device());
      }
    }
  }
  for (Node* n : order) {
    const bool is_loop_switch =
        n->control_op() == ControlOp::kSwitch && n->input(1).node->control_op() == ControlOp::kLoopCond;
    if (is_loop_switch || n->control_op() == ControlOp::kExit)
      n->set_assigned_device(n->input(0).node->assigned_device());
  }
}

class Partitioner {
 public:
  Partitioner(const Graph& graph, const PassEnvironment& env) : graph_(graph), env_(env) {}

  StatusOr<std::vector<Partition>> Run() {
    MR_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(graph_));
    MR_ASSIGN_OR_RETURN(tree_, FrameTree::Of(order, graph_.num_node_ids()));
    ColocateLoopVariables(order);
    for (Node* n : order) {
      if (n->control_op() == ControlOp::kLoopCond) loop_cond_[tree_.RunsIn(n)] = n;
    }
    const HashSet<const Node*> left_out = OnlyWaitForOthers(order);
    for (Node* n : order) {
      if (!left_out.contains(n)) MR_RETURN_IF_ERROR(Copy(n));
    }
    MR_RETURN_IF_ERROR(CloseLoops(order));
    MR_RETURN_IF_ERROR(CloseControlLoops());
    std::vector<Partition> result;
    for (auto& [device, graph] : parts_) {
      for (const wire::FunctionDef* f : graph_.Functions()) MR_RETURN_IF_ERROR(graph->AddFunction(*f));
      for (const wire::GradientDef& g : graph_.gradient_defs()) MR_RETURN_IF_ERROR(graph->AddGradientDef(g));
      result.push_back({device, std::move(graph)});
    }
    return result;
  }

 private:
  // On one device, in one frame. Completed when all nodes have been copied.
  struct ControlLoop {
    Node* enter = nullptr;
    Node* merge = nullptr;
    Node* branch = nullptr;  // its Switch
    Node* pivot = nullptr;   // runs where the loop's body does; made when something waits for that
  };

  // Nobody waits for them, as for the groups that clients run: the step is over when what they wait for has run, on
  // whichever device, and need not be told on theirs.
  static HashSet<const Node*> OnlyWaitForOthers(const std::vector<Node*>& order) {
    HashSet<const Node*> left_out;
    for (auto n = order.rbegin(); n != order.rend(); ++n) {
      const auto is_elsewhere = [&](const Node* c) { return c->assigned_device() != (*n)->assigned_device(); };
      const auto is_left_out = [&](const Node* c) { return left_out.contains(c); };
      if ((*n)->Is(OpTrait::kDoesNothing) &&
          std::any_of((*n)->control_inputs().begin(), (*n)->control_inputs().end(), is_elsewhere) &&
          std::all_of((*n)->control_outputs().begin(), (*n)->control_outputs().end(), is_left_out)) {
        left_out.insert(*n);
      }
    }
    return left_out;
  }

  Status Copy(Node* n) {
    const std::string& device = n->assigned_device();
    std::vector<Output> inputs;
    for (Output in : n->inputs()) {
      Output here;
      if (!IsBackEdge(in.node->control_op(), n->control_op())) {
        MR_ASSIGN_OR_RETURN(here, Import(in, device));
      }
      inputs.push_back(here);
    }
    std::vector<Node*> controls;
    for (Node* c : n->control_inputs()) {
      MR_ASSIGN_OR_RETURN(Node * here, ImportControl(c, device));
      controls.push_back(here);
    }
    MR_ASSIGN_OR_RETURN(Node * copy, GraphFor(device).CopyNode(*n, inputs, controls));
    copies_.emplace(n, copy);
    return absl::OkStatus();
  }

  Status CloseLoops(const std::vector<Node*>& order) {
    for (Node* n : order) {
      for (int i = 0; i < n->num_inputs(); ++i) {
        const Output in = n->input(i);
        if (!IsBackEdge(in.node->control_op(), n->control_op())) continue;
        MR_RETURN_IF_ERROR(GraphFor(n->assigned_device()).SetInput(copies_.at(n), i, {copies_.at(in.node), in.index}));
      }
    }
    return absl::OkStatus();
  }

  StatusOr<Node*> AddNode(const std::string& device, const char* op, absl::string_view name, std::vector<Output> inputs,
                          AttrMap attrs = {}) {
    NodeSpec spec;
    spec.op = op;
    spec.name = absl::StrCat("_", name, "_", serial_++);
    spec.inputs = std::move(inputs);
    spec.attrs = std::move(attrs);
    MR_ASSIGN_OR_RETURN(Node * node, GraphFor(device).AddNode(std::move(spec)));
    node->set_assigned_device(device);
    return node;
  }

  StatusOr<Output> EmptyConstant(const std::string& device) {
    AttrMap attrs;
    attrs["dtype"] = DType::kFloat;
    attrs["value"] = Tensor::Vector<float>({});
    MR_ASSIGN_OR_RETURN(Node * node, AddNode(device, "Const", "control_token", {}, std::move(attrs)));
    return node->output(0);
  }

  // The control loop of `frame` on `device`, as far as it can stand now.
  StatusOr<ControlLoop*> ControlLoopOn(int frame, const std::string& device) {
    ControlLoop& loop = control_loops_[{frame, device}];
    if (loop.merge != nullptr) return &loop;
    const LoopFrame& f = tree_.frames()[static_cast<size_t>(frame)];
    if (!loop_cond_.contains(frame)) {
      return Unimplemented("frame '", f.name, "' has no LoopCond, and edges in it cross between devices");
    }
    MR_ASSIGN_OR_RETURN(const Output token, EmptyConstant(device));
    AttrMap attrs;
    attrs["frame_name"] = f.name;
    attrs["parallel_iterations"] = f.parallel_iterations;
    MR_ASSIGN_OR_RETURN(loop.enter, AddNode(device, "Enter", "control_enter", {token}, std::move(attrs)));
    const Output enter = loop.enter->output(0);
    MR_ASSIGN_OR_RETURN(loop.merge, AddNode(device, "Merge", "control_merge", {enter, enter}));
    open_.push_back({frame, device});
    return &loop;
  }

  // With the predicate, for which the LoopCond must have been copied.
  StatusOr<ControlLoop*> ControlBranchOn(int frame, const std::string& device) {
    MR_ASSIGN_OR_RETURN(ControlLoop * loop, ControlLoopOn(frame, device));
    if (loop->branch != nullptr) return loop;
    MR_ASSIGN_OR_RETURN(const Output pred, Import(loop_cond_.at(frame)->output(0), device));
    MR_ASSIGN_OR_RETURN(loop->branch, AddNode(device, "Switch", "control_switch", {loop->merge->output(0), pred}));
    return loop;
  }

  // Back edges of the control loops. An inner one is entered once an iteration of the outer one.
  Status CloseControlLoops() {
    while (!open_.empty()) {
      const auto [frame, device] = open_.back();
      open_.pop_back();
      MR_ASSIGN_OR_RETURN(const ControlLoop* loop, ControlBranchOn(frame, device));
      MR_ASSIGN_OR_RETURN(Node * next, AddNode(device, "NextIteration", "control_next", {loop->branch->output(1)}));
      MR_RETURN_IF_ERROR(GraphFor(device).SetInput(loop->merge, 1, next->output(0)));
      const int parent = tree_.frames()[static_cast<size_t>(frame)].parent;
      if (parent > 0) MR_RETURN_IF_ERROR(ControlLoopOn(parent, device).status());
    }
    for (auto& [key, loop] : control_loops_) {
      const int parent = tree_.frames()[static_cast<size_t>(key.first)].parent;
      if (parent <= 0) continue;
      const ControlLoop& outer = control_loops_.at({parent, key.second});
      MR_RETURN_IF_ERROR(GraphFor(key.second).SetInput(loop.enter, 0, outer.branch->output(1)));
    }
    return absl::OkStatus();
  }

  Graph& GraphFor(const std::string& device) {
    std::unique_ptr<Graph>& g = parts_[device];
    if (!g) g = std::make_unique<Graph>(&graph_.registry());
    return *g;
  }

  uint64_t Incarnation(const std::string& device) const {
    for (size_t i = 0; i < env_.devices.size(); ++i) {
      if (env_.devices[i].ToString() == device) return i < env_.incarnations.size() ? env_.incarnations[i] : 0;
    }
    return 0;
  }

  // The value `o` on `device`: its copy when it is computed there, else a Recv (made once).
  StatusOr<Output> Import(Output o, const std::string& device) {
    const std::string& from = o.node->assigned_device();
    if (from == device) return Output{copies_.at(o.node), o.index};
    const auto key = std::make_pair(o, device);
    if (auto it = received_.find(key); it != received_.end()) return it->second;
    if (o.node->control_op() == ControlOp::kNextIteration ||
        (o.node->control_op() == ControlOp::kEnter && !o.node->IsConstantEnter())) {
      return Unimplemented(o.node->Describe(), " on ", from, " is read on ", device,
                           ": what passes between iterations must be read by a Merge");
    }
    Output here;
    if (o.node->IsConstantEnter() && !IsRef(o.dtype())) {
      // What holds for the whole loop crosses once, before it.
      MR_ASSIGN_OR_RETURN(const Output outside, Import(o.node->input(0), device));
      AttrMap attrs = o.node->attrs();
      MR_ASSIGN_OR_RETURN(Node * enter, AddNode(device, "Enter", "enter", {outside}, std::move(attrs)));
      here = enter->output(0);
    } else {
      MR_ASSIGN_OR_RETURN(here, Transfer(o, device));
    }
    here.node->set_shape(0, o.shape());
    received_[key] = here;
    return here;
  }

  // The upper half of the bits of a float, and zeros in place of the rest (white paper 5.5). The node says whether its
  // outputs may travel so, or else the session, where they leave their task.
  StatusOr<bool> LosesBits(Output o, const std::string& device) const {
    if (BaseType(o.dtype()) != DType::kFloat) return false;
    if (o.node->attrs().contains("_bfloat16_sendrecv")) {
      const StatusOr<bool> says = o.node->Attr<bool>("_bfloat16_sendrecv");
      return says.ok() ? says : Annotate(says.status(), absl::StrCat(o.node->Describe(), ": "));
    }
    if (!env_.bfloat16_between_tasks) return false;
    MR_ASSIGN_OR_RETURN(DeviceName from, DeviceName::Parse(o.node->assigned_device()));
    MR_ASSIGN_OR_RETURN(DeviceName to, DeviceName::Parse(device));
    from.type = to.type = "";
    from.id = to.id = -1;
    return from != to;
  }

  StatusOr<Output> Transfer(Output o, const std::string& device) {
    const std::string& from = o.node->assigned_device();
    const int frame = tree_.OutputsIn(o.node);
    Output value{copies_.at(o.node), o.index};
    // A reference cannot travel; its value does.
    const DType type = BaseType(o.dtype());
    MR_ASSIGN_OR_RETURN(const bool loses_bits, LosesBits(o, device));
    if (!loses_bits) return AddPair(value, type, o.ToString(), from, device, frame);
    MR_ASSIGN_OR_RETURN(value, Convert(from, "narrow", value, type, DType::kBFloat16));
    MR_ASSIGN_OR_RETURN(value, AddPair(value, DType::kBFloat16, o.ToString(), from, device, frame));
    value.node->set_shape(0, o.shape());
    return Convert(device, "widen", value, DType::kBFloat16, type);
  }
  StatusOr<Output> Convert(const std::string& device, const char* name, Output value, DType from, DType to) {
    AttrMap attrs;
    attrs["SrcT"] = from;
    attrs["DstT"] = to;
    attrs["Truncate"] = true;
    MR_ASSIGN_OR_RETURN(Node * node, AddNode(device, "_HostCast", name, {value}, std::move(attrs)));
    return node->output(0);
  }

  // Whether that `n` has run says no more than that the predicate was true, which the control loops know: it passes on
  // a loop variable that the predicate has looked at.
  bool IsBodyPivot(const Node& n) {
    if (!n.Is(OpTrait::kPassesOn) || !n.control_inputs().empty() || n.input(0).index != 1) return false;
    const Node& branch = *n.input(0).node;
    return branch.control_op() == ControlOp::kSwitch && branch.input(1).node->control_op() == ControlOp::kLoopCond &&
           branch.control_inputs().empty() && SeenByPredicate(tree_.RunsIn(&n)).contains(branch.input(0).node);
  }

  // The nodes of an iteration that run before its predicate is known.
  const HashSet<const Node*>& SeenByPredicate(int frame) {
    HashSet<const Node*>& seen = seen_by_predicate_[frame];
    if (!seen.empty()) return seen;
    std::vector<const Node*> stack;
    const auto visit = [&](const Node* n) {
      if (tree_.RunsIn(n) == frame && seen.insert(n).second && n->control_op() != ControlOp::kMerge) stack.push_back(n);
    };
    visit(loop_cond_.at(frame));
    while (!stack.empty()) {
      const Node* n = stack.back();
      stack.pop_back();
      for (const Output in : n->inputs()) visit(in.node);
      for (const Node* c : n->control_inputs()) visit(c);
    }
    return seen;
  }

  StatusOr<Node*> PivotOn(int frame, const std::string& device) {
    MR_ASSIGN_OR_RETURN(ControlLoop * loop, ControlBranchOn(frame, device));
    if (loop->pivot == nullptr) {
      MR_ASSIGN_OR_RETURN(loop->pivot, AddNode(device, "Identity", "control_pivot", {loop->branch->output(1)}));
    }
    return loop->pivot;
  }

  StatusOr<Node*> ImportControl(Node* c, const std::string& device) {
    const std::string& from = c->assigned_device();
    if (from == device) return copies_.at(c);
    if (IsBodyPivot(*c)) return PivotOn(tree_.RunsIn(c), device);
    Node* here = received_controls_[{c, device}];
    if (!here) {
      NodeSpec token;
      token.op = "Const";
      token.name = TokenName(c->name(), device);
      token.attrs["dtype"] = DType::kFloat;
      token.attrs["value"] = Tensor::Vector<float>({});
      token.control_inputs = {copies_.at(c)};
      MR_ASSIGN_OR_RETURN(Node * constant, GraphFor(from).AddNode(std::move(token)));
      constant->set_assigned_device(from);
      MR_ASSIGN_OR_RETURN(
          const Output recv,
          AddPair(constant->output(0), DType::kFloat, absl::StrCat("^", c->name()), from, device, tree_.OutputsIn(c)));
      recv.node->set_shape(0, Shape::Vector(0));
      here = received_controls_[{c, device}] = recv.node;
    }
    return here;
  }

  std::string TokenName(const std::string& base, const std::string& device) {
    return absl::StrCat("_edge_", serial_++, "_token_", base.substr(0, 256), "_", device.substr(device.rfind(':') + 1));
  }

  StatusOr<Output> AddPair(Output value, DType type, const std::string& tensor, const std::string& from,
                           const std::string& to, int frame) {
    const std::string key = absl::StrCat("edge_", serial_++, "_", tensor);
    auto common = [&](NodeSpec& spec, const char* type_attr) {
      spec.attrs[type_attr] = type;
      spec.attrs["tensor_name"] = key;
      spec.attrs["send_device"] = from;
      spec.attrs["recv_device"] = to;
      spec.attrs["send_device_incarnation"] = static_cast<int64_t>(Incarnation(from));
      spec.attrs["client_terminated"] = false;
    };
    NodeSpec send;
    send.op = "_Send";
    send.name = absl::StrCat("_send_", serial_);
    send.inputs = {value};
    common(send, "T");
    MR_ASSIGN_OR_RETURN(Node * s, GraphFor(from).AddNode(std::move(send)));
    s->set_assigned_device(from);
    NodeSpec recv;
    recv.op = "_Recv";
    recv.name = absl::StrCat("_recv_", serial_);
    common(recv, "tensor_type");
    if (frame != 0) {
      MR_ASSIGN_OR_RETURN(const ControlLoop* loop, ControlLoopOn(frame, to));
      recv.control_inputs = {loop->merge};
    }
    MR_ASSIGN_OR_RETURN(Node * r, GraphFor(to).AddNode(std::move(recv)));
    r->set_assigned_device(to);
    return r->output(0);
  }

  const Graph& graph_;
  const PassEnvironment& env_;
  int64_t serial_ = 0;
  FrameTree tree_;
  std::map<int, Node*> loop_cond_;  // by frame
  std::map<int, HashSet<const Node*>> seen_by_predicate_;
  std::map<std::pair<int, std::string>, ControlLoop> control_loops_;
  std::vector<std::pair<int, std::string>> open_;  // control loops that lack their predicate
  std::map<std::string, std::unique_ptr<Graph>> parts_;
  HashMap<const Node*, Node*> copies_;
  HashMap<std::pair<Output, std::string>, Output> received_;
  HashMap<std::pair<const Node*, std::string>, Node*> received_controls_;
};

}  // namespace

StatusOr<std::vector<Partition>> PartitionGraph(std::unique_ptr<Graph> graph, const PassEnvironment& env) {
  bool one = true;
  const std::vector<Node*>& nodes = graph->nodes();
  for (const Node* n : nodes) one = one && n->assigned_device() == nodes.front()->assigned_device();
  if (one) {
    std::vector<Partition> result;
    std::string device = nodes.empty() ? env.devices[env.client].ToString() : nodes.front()->assigned_device();
    result.push_back({std::move(device), std::move(graph)});
    return result;
  }
  return Partitioner(*graph, env).Run();
}

}  // namespace millrace
