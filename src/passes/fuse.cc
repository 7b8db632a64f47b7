// SPDX-License-Identifier: Apache-2.0
// A convolution or a product of matrices and what follows it at once (a bias or a normalisation by given moments, a
// sum, an activation) become one node, whose kernel does all of it while what was made is in the cache.
//
// What is between has no other reader and nobody waits for it. No input is a reference: what it would read could
// change until the fused node runs, which is later than the convolution would.
#include <algorithm>
#include <map>

#include "absl/strings/str_join.h"
#include "base/hash_map.h"
#include "op/op_fusion.h"
#include "passes/pipeline.h"

namespace millrace {
namespace {

bool HasText(const Node& n, absl::string_view attr, absl::string_view wanted) {
  const StatusOr<std::string> value = n.Attr<std::string>(attr);
  return value.ok() && *value == wanted;
}

bool IsOfFloats(const Node& n) {
  return n.op() != nullptr && n.num_inputs() > 0 && n.num_outputs() > 0 && n.output_type(0) == DType::kFloat &&
         std::all_of(n.inputs().begin(), n.inputs().end(), [](Output in) { return in && in.dtype() == DType::kFloat; });
}

// May stand in a fused node as this part.
bool Fits(const Node& n, FusionPart part) {
  if (FusionPartOf(n.op_name()) != part || !IsOfFloats(n)) return false;
  switch (part) {
    case FusionPart::kConvolution:
    case FusionPart::kBias: return HasText(n, "data_format", "NHWC");
    case FusionPart::kNormalization: {
      const StatusOr<bool> training = n.Attr<bool>("is_training");
      return training.ok() && !*training && HasText(n, "data_format", "NHWC") &&
             n.consumers().size() == n.ConsumersOf(0).size();  // of the image alone
    }
    default: return true;
  }
}

// What the others follow.
bool IsHead(const Node& n) { return Fits(n, FusionPart::kConvolution) || Fits(n, FusionPart::kProduct); }

class Fuser {
 public:
  Fuser(Partition& partition, const PassEnvironment& env, std::vector<std::string>* notes)
      : graph_(*partition.graph), env_(env), notes_(notes) {
    const StatusOr<DeviceName> device = DeviceName::Parse(partition.device);
    if (device.ok()) device_type_ = device->type;
  }

  Status Run() {
    FindWhatWaits();
    std::vector<Node*> heads;
    for (Node* n : graph_.nodes()) {
      if (IsHead(*n)) heads.push_back(n);
    }
    // Of two that are added, the later one takes in the sum: the other is there by then.
    std::reverse(heads.begin(), heads.end());
    for (Node* head : heads) {
      const std::vector<Node*> followers = Followers(*head);
      if (!followers.empty()) MR_RETURN_IF_ERROR(Replace(head, followers));
    }
    return absl::OkStatus();
  }

 private:
  void FindWhatWaits() {
    std::vector<const Node*> open;
    const auto add = [&](const Node* n) {
      if (waits_.insert(n).second) open.push_back(n);
    };
    for (const Node* n : graph_.nodes()) {
      if (n->Is(OpTrait::kWaits)) add(n);
    }
    while (!open.empty()) {
      const Node* const n = open.back();
      open.pop_back();
      for (const auto& reader : n->consumers()) add(reader.node);
      for (const Node* after : n->control_outputs()) add(after);
    }
  }
  // What else than `last` it reads, or is run after, may be there later than what the head needs.
  bool WouldWait(const Node& head, const Node& last, const Node& next) const {
    if (waits_.contains(&head)) return false;
    const auto waits = [&](const Node* n) { return n != &last && waits_.contains(n); };
    return std::any_of(next.inputs().begin(), next.inputs().end(), [&](Output in) { return waits(in.node); }) ||
           std::any_of(next.control_inputs().begin(), next.control_inputs().end(), waits);
  }

  // The only reader of n, if nobody waits for n and the reader is on the same device.
  static Node* OnlyReader(const Node& n) {
    if (n.consumers().size() != 1 || !n.control_outputs().empty()) return nullptr;
    Node* const reader = n.consumers().front().node;
    return reader->assigned_device() == n.assigned_device() ? reader : nullptr;
  }
  std::vector<Node*> Followers(const Node& head) const {
    std::vector<Node*> followers;
    const Node* last = &head;
    const bool of_images = FusionPartOf(head.op_name()) == FusionPart::kConvolution;
    for (FusionPart part :
         {FusionPart::kBias, FusionPart::kNormalization, FusionPart::kAddition, FusionPart::kActivation}) {
      if (part == FusionPart::kNormalization && !of_images) continue;
      Node* const next = OnlyReader(*last);
      if (next == nullptr) break;
      // Where it is added to itself, it has two readers.
      const bool either = part == FusionPart::kAddition;
      if (!Fits(*next, part) || (!either && next->input(0).node != last)) continue;
      if (WouldWait(head, *last, *next)) break;
      followers.push_back(next);
      last = next;
    }
    return followers;
  }

  // Whether there is such an op, and a kernel for it. Asked once an op: kernels look at the op and its types.
  StatusOr<bool> CanRun(const NodeSpec& spec, const std::string& device) {
    const auto [at, is_new] = can_run_.emplace(spec.op, false);
    if (!is_new || graph_.registry().Find(spec.op) == nullptr) return at->second;
    NodeSpec trial = spec;
    trial.name = graph_.UniqueName(absl::StrCat(spec.name, "/fused"));
    MR_ASSIGN_OR_RETURN(Node * node, graph_.AddNode(std::move(trial)));
    node->set_assigned_device(device);
    at->second = env_.has_kernel(*node, device_type_);
    graph_.RemoveNode(node);
    return at->second;
  }

  // The fused node takes the place and the name of the last.
  Status Replace(Node* head, const std::vector<Node*>& followers) {
    Node* const last = followers.back();
    NodeSpec spec;
    spec.name = last->name();
    spec.op = absl::StrCat("_Fused", head->op_name());
    spec.inputs = head->inputs();
    spec.control_inputs = head->control_inputs();
    spec.attrs = head->attrs();
    spec.device = head->device();
    spec.location = head->location();
    std::vector<std::string> ops, names{head->name()};
    const Node* before = head;
    for (const Node* n : followers) {
      ops.emplace_back(FusedName(n->op_name()));
      names.push_back(n->name());
      for (Output in : n->inputs()) {
        if (in.node != before) spec.inputs.push_back(in);
      }
      spec.control_inputs.insert(spec.control_inputs.end(), n->control_inputs().begin(), n->control_inputs().end());
      if (const StatusOr<float> epsilon = n->Attr<float>("epsilon"); epsilon.ok()) spec.attrs["epsilon"] = *epsilon;
      before = n;
    }
    spec.attrs["num_args"] = static_cast<int64_t>(spec.inputs.size() - 2);
    spec.attrs["fused_ops"] = ops;
    spec.attrs["fused_names"] = names;
    MR_ASSIGN_OR_RETURN(const bool can_run, CanRun(spec, head->assigned_device()));
    if (!can_run) return absl::OkStatus();
    if (notes_ != nullptr) {
      notes_->push_back(absl::StrCat(
          head->name(), " (", head->op_name(), ") does ", absl::StrJoin(ops, ", "), " too, as ", spec.name));
    }
    const PartialShape shape = last->shape(0);
    const std::vector<Node*> waiting = last->control_outputs();
    MR_RETURN_IF_ERROR(graph_.ReplaceUses(last->output(0), head->output(0)));  // until the name is free
    for (Node* to : waiting) graph_.RemoveControlEdge(last, to);
    for (auto n = followers.rbegin(); n != followers.rend(); ++n) {
      waits_.erase(*n);
      graph_.RemoveNode(*n);
    }
    MR_ASSIGN_OR_RETURN(Node * fused, graph_.AddNode(std::move(spec)));
    fused->set_assigned_device(head->assigned_device());
    fused->set_shape(0, shape);
    MR_RETURN_IF_ERROR(graph_.ReplaceUses(head->output(0), fused->output(0)));
    for (Node* to : waiting) graph_.AddControlEdge(fused, to);
    if (waits_.contains(head)) waits_.insert(fused);
    waits_.erase(head);
    graph_.RemoveNode(head);
    return absl::OkStatus();
  }

  Graph& graph_;
  const PassEnvironment& env_;
  std::vector<std::string>* const notes_;
  std::string device_type_;
  HashSet<const Node*> waits_;           // what waits, and what depends on it
  std::map<std::string, bool> can_run_;  // by op
};

}  // namespace

Status Fuse(Partition& partition, const PassEnvironment& env, std::vector<std::string>* notes) {
  return Fuser(partition, env, notes).Run();
}

}  // namespace millrace
