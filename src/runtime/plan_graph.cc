// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan_graph.h"

#include <algorithm>

#include "base/hash_map.h"
#include "base/stopwatch.h"
#include "graph/unknown_op.h"
#include "kernel/device.h"
#include "kernel/device_memory.h"
#include "kernel/edge_key.h"
#include "kernel/random_stream.h"
#include "runtime/node_run.h"
#include "runtime/update_order.h"

namespace millrace {
namespace {

bool IsArg(const Node& n) { return n.Is(OpTrait::kArgument); }
bool IsRetval(const Node& n) { return n.Is(OpTrait::kResult); }

// The position of an _Arg or _Retval, checked against `limit` so that a bad index cannot size anything.
StatusOr<size_t> IndexOf(const Node& n, size_t limit) {
  MR_ASSIGN_OR_RETURN(const int64_t index, n.Attr<int64_t>("index"));
  if (index < 0 || static_cast<uint64_t>(index) >= limit) {
    return InvalidArgument(n.Describe(), " has index ", index, ", want one in [0, ", limit, ")");
  }
  return static_cast<size_t>(index);
}

// Streams of random numbers have a state too, but each node its own; what a transfer changes is its step's.
StateUse StateUseOf(const Node& n, const Kernel& kernel) {
  if (!n.op()->stateful || n.Is(OpTrait::kTransfer) || dynamic_cast<const RandomStream*>(&kernel) != nullptr) {
    return UseOfInputs(n);
  }
  return n.Is(OpTrait::kReadsVariable) ? StateUse::kReads : StateUse::kChanges;
}

bool IsSend(const Node& n) { return n.Is(OpTrait::kTransfer) && n.num_outputs() == 0; }

// What leads to a Send goes first: another device waits for it. No read passes a change that stood before it, no change
// passes a read or a change of the same state: values are those of one device.
void MoveSendsUp(std::vector<Node*>& order, int num_ids, const StateNumbers& states) {
  if (std::none_of(order.begin(), order.end(), [](const Node* n) { return IsSend(*n); })) return;
  std::vector<bool> leads(static_cast<size_t>(num_ids));
  const auto leads_to_send = [&](const Node* n) -> std::vector<bool>::reference {
    return leads[static_cast<size_t>(n->id())];
  };
  struct Uses {
    bool reads = false, changes = false;
  };
  HashMap<int, Uses> going_first;  // by state, of those that stand later
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    const Node* const n = *at;
    const StateUse use = n->op() ? UseOfInputs(*n) : StateUse::kNone;
    const bool changes = use == StateUse::kChanges;
    Uses* const later = use != StateUse::kNone ? &going_first[states.Of(*n)] : nullptr;
    if (IsSend(*n) || (later && (later->changes || (changes && later->reads)))) leads_to_send(n) = true;
    if (!leads_to_send(n)) continue;
    if (later) (changes ? later->changes : later->reads) = true;
    for (const Output in : n->inputs()) {
      if (in && !IsBackEdge(in.node->control_op(), n->control_op())) leads_to_send(in.node) = true;
    }
    for (const Node* c : n->control_inputs()) leads_to_send(c) = true;
  }
  std::stable_partition(order.begin(), order.end(), leads_to_send);
}

class GraphReader {
 public:
  GraphReader(const Graph& graph, Device* device, const PlanGraph::MakeKernel& make_kernel, bool updates_early)
      : graph_(graph), device_(device), make_kernel_(make_kernel), updates_early_(updates_early) {}

  StatusOr<std::shared_ptr<const PlanGraph>> Read() {
    MR_ASSIGN_OR_RETURN(order_, TopologicalOrder(graph_));
    if (updates_early_) {
      const int64_t start = RealNanos();
      MoveUpdatesUp(order_);
      to_->order_nanos = RealNanos() - start;
    }
    const StateNumbers states(order_, graph_.num_node_ids());
    MoveSendsUp(order_, graph_.num_node_ids(), states);
    MR_ASSIGN_OR_RETURN(const FrameTree tree, FrameTree::Of(order_, graph_.num_node_ids()));
    to_->frames = tree.frames();
    for (const Node* n : order_) {
      args_ += IsArg(*n);
      retvals_ += IsRetval(*n);
      if (!IsRetval(*n)) index_.emplace(n, static_cast<int>(index_.size()));
    }
    to_->arguments.resize(args_);
    to_->results.resize(retvals_);
    to_->nodes.reserve(index_.size());
    for (const Node* n : order_) {
      if (IsRetval(*n)) {
        MR_RETURN_IF_ERROR(AddResult(*n));
      } else {
        MR_RETURN_IF_ERROR(AddNode(*n, tree, states));
      }
    }
    return std::shared_ptr<const PlanGraph>(std::move(to_));
  }

 private:
  Status AddResult(const Node& n) {
    MR_ASSIGN_OR_RETURN(const size_t i, IndexOf(n, retvals_));
    const Output from = n.input(0);
    to_->results[i] = {index_.at(from.node), from.index, from.ToString()};
    return absl::OkStatus();
  }

  Status AddNode(const Node& n, const FrameTree& tree, const StateNumbers& states) {
    PlannedNode p;
    p.frame = tree.RunsIn(&n);
    p.output_frame = tree.OutputsIn(&n);
    p.info = {n.name(), n.op(), n.signature(), n.location(), device_};
    if (IsArg(n)) {
      p.kind = PlannedNode::Kind::kArgument;
      MR_ASSIGN_OR_RETURN(const size_t i, IndexOf(n, args_));
      to_->arguments[i] = {index_.at(&n), n.output_type(0)};
    } else {
      MR_RETURN_IF_ERROR(Describe(n, &p));
      if (p.state_use != StateUse::kNone) p.state = states.Of(n);
    }
    to_->nodes.push_back(std::move(p));
    return absl::OkStatus();
  }

  void NoteSent(Output from) {
    const auto at = static_cast<size_t>(index_.at(from.node));
    if (at < to_->nodes.size() && from.index < 64) to_->nodes[at].info.sent_outputs |= uint64_t{1} << from.index;
  }

  Status Describe(const Node& n, PlannedNode* p) {
    if (!n.op()) return UnknownOp(n);
    MR_ASSIGN_OR_RETURN(p->kernel, make_kernel_(n));
    p->async = p->kernel->AsAsync();
    p->expensive = p->kernel->IsExpensive();
    p->may_stop = p->async == nullptr && ChangesOnlyItsOutputs(n.signature());
    p->control = n.control_op();
    p->state_use = StateUseOf(n, *p->kernel);
    p->is_transfer = n.Is(OpTrait::kTransfer);
    if (p->is_transfer) p->edge = n.Attr<int64_t>(kEdgeAttr).value_or(-1);
    if (IsSend(n) && SpaceOf(*device_) == nullptr) NoteSent(n.input(0));
    p->enters_constant = n.IsConstantEnter();
    const bool needs_nothing = n.num_inputs() == 0 && n.control_inputs().empty();
    if (needs_nothing && p->kernel->OutputsNeverChange()) p->kind = PlannedNode::Kind::kOnce;
    p->inputs.reserve(static_cast<size_t>(n.num_inputs()));
    for (int i = 0; i < n.num_inputs(); ++i) {
      const Output from = n.input(i);
      p->inputs.push_back({index_.at(from.node), from.index, IsRef(from.dtype()) && !IsRef(n.input_type(i))});
    }
    for (const Node* c : n.control_inputs()) {
      if (const auto at = index_.find(c); at != index_.end()) p->controls.push_back(at->second);
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  Device* const device_;
  const PlanGraph::MakeKernel& make_kernel_;
  const bool updates_early_;
  std::vector<Node*> order_;
  size_t args_ = 0, retvals_ = 0;
  HashMap<const Node*, int> index_;
  std::shared_ptr<PlanGraph> to_ = std::make_shared<PlanGraph>();
};

}  // namespace

StatusOr<std::shared_ptr<const PlanGraph>> PlanGraph::Read(
    const Graph& graph, Device* device, const MakeKernel& make_kernel, bool updates_early) {
  return GraphReader(graph, device, make_kernel, updates_early).Read();
}

std::shared_ptr<const TracedPlan> PlanGraph::Traced() const {
  absl::MutexLock lock(&mu_);
  if (traced_ != nullptr) return traced_;
  const auto made = std::make_shared<TracedPlan>();
  made->nodes.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const PlannedNode& n = nodes[i];
    TracedPlan::Node& told = made->nodes[i];
    if (n.info.device != nullptr) made->device = n.info.device->name();  // the same for all
    told.name = n.info.name;
    if (n.info.op != nullptr) told.op = n.info.op->name;
    for (const PlannedNode::Input& input : n.inputs) told.inputs.push_back(input.node);
    told.controls.assign(n.controls.begin(), n.controls.end());
    told.edge = n.edge;
  }
  made->MakeLabels().IgnoreError();  // its inputs are there
  return traced_ = made;
}

}  // namespace millrace
