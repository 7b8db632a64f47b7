// SPDX-License-Identifier: Apache-2.0
#include "passes/prune.h"

#include <map>
#include <queue>

#include "absl/strings/strip.h"
#include "base/hash_map.h"
#include "graph/unknown_op.h"
#include "graph/variable_use.h"
#include "op/device_name.h"

namespace millrace {
namespace {

bool IsPlaceholder(const Node& n) { return n.Is(OpTrait::kPlaceholder) && n.num_inputs() == 0; }
bool IsBackEdge(const Output& from, const Node& to) {
  return from.node && millrace::IsBackEdge(from.node->control_op(), to.control_op());
}

class Pruner {
 public:
  Pruner(const Graph& source, const RunSignature& signature, const PruneOptions& options)
      : source_(source), sig_(signature), options_(options), graph_(std::make_unique<Graph>(&source.registry())) {}

  StatusOr<std::unique_ptr<Graph>> Prune() {
    graph_->set_versions(source_.versions());
    MR_RETURN_IF_ERROR(AddFeeds());
    MR_RETURN_IF_ERROR(FindNeeded());
    MR_RETURN_IF_ERROR(CopyLibrary());
    MR_RETURN_IF_ERROR(CopyNeeded());
    MR_RETURN_IF_ERROR(CloseLoops());
    MR_RETURN_IF_ERROR(AddFetches());
    return std::move(graph_);
  }

 private:
  Status CheckOutput(Output o, const char* what) const {
    if (o.node && !o.node->op()) {
      return Annotate(UnknownOp(*o.node), absl::StrCat(what, " ", o.ToString(), ": "));
    }
    if (!o.node || o.index < 0 || o.index >= o.node->num_outputs()) {
      return InvalidArgument(what, " ", o.node ? o.ToString() : "(null)", " does not exist: the node has ",
                             o.node ? o.node->num_outputs() : 0, " outputs");
    }
    return absl::OkStatus();
  }

  // What stands for `o` in the step: where a call has been expanded for its gradient, the expansion.
  Output Meant(Output o) const {
    while (o) {
      const Expansion* e = source_.FindExpansion(o.node);
      if (e == nullptr) break;
      o = e->outputs[static_cast<size_t>(o.index)];
    }
    return o;
  }
  Node* Meant(Node* n) const {
    while (const Expansion* e = source_.FindExpansion(n)) n = e->done;
    return n;
  }

  NodeSpec ClientNode(const char* op, const char* what, Output o, DType type, size_t i) const {
    NodeSpec spec;
    spec.op = op;
    if (options_.through_rendezvous) {
      const bool is_feed = std::string_view(what) == "feed";
      spec.name = absl::StrCat(is_feed ? "_recv_" : "_send_", o.node->name(), "_", o.index, "_", i);
      spec.attrs[is_feed ? "tensor_type" : "T"] = type;
      spec.attrs["tensor_name"] = ClientTensorName(what, o);
      spec.attrs["send_device"] = options_.client_device;
      spec.attrs["recv_device"] = options_.client_device;
      spec.attrs["send_device_incarnation"] = static_cast<int64_t>(options_.client_incarnation);
      spec.attrs["client_terminated"] = true;
    } else {
      spec.name = absl::StrCat(op, "_", o.node->name(), "_", o.index, "_", i);
      spec.attrs["T"] = type;
      spec.attrs["index"] = static_cast<int64_t>(i);
    }
    return spec;
  }

  // Arguments lie where they are used; what crosses the rendezvous, on the client's device.
  std::string ClientNodeDevice(const Node& user) const {
    return options_.through_rendezvous ? options_.client_device : user.device();
  }

  Status AddFeeds() {
    for (size_t i = 0; i < sig_.feeds.size(); ++i) {
      const Output o = sig_.feeds[i];
      MR_RETURN_IF_ERROR(CheckOutput(o, "feed"));
      const DType type = BaseType(o.dtype());
      const char* op = options_.through_rendezvous ? "_Recv" : "_Arg";
      MR_ASSIGN_OR_RETURN(Node * arg, graph_->AddNode(ClientNode(op, "feed", o, type, i)));
      arg->set_assigned_device(o.node->assigned_device());
      arg->set_device(ClientNodeDevice(*o.node));
      if (!fed_.emplace(o, arg->output(0)).second) {
        return InvalidArgument("tensor ", o.ToString(), " is fed twice");
      }
      fed_.emplace(Meant(o), arg->output(0));
    }
    return absl::OkStatus();
  }

  bool ControlIsFed(const Node* n) const { return IsPlaceholder(*n) && fed_.contains(Output{const_cast<Node*>(n), 0}); }

  Status FindNeeded() {
    needed_.assign(static_cast<size_t>(source_.num_node_ids()), false);
    std::vector<Node*> stack;
    auto visit = [&](Node* n) {
      if (needed_[static_cast<size_t>(n->id())]) return;
      needed_[static_cast<size_t>(n->id())] = true;
      stack.push_back(n);
    };
    for (Output o : sig_.fetches) {
      MR_RETURN_IF_ERROR(CheckOutput(o, "fetch"));
      if (const Output meant = Meant(o); !fed_.contains(meant)) visit(meant.node);
    }
    for (Node* n : sig_.targets) {
      if (!n) return InvalidArgument("a target is null");
      if (!ControlIsFed(n)) visit(Meant(n));
    }
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      for (Output in : n->inputs()) {
        in = Meant(in);
        if (in && !fed_.contains(in)) visit(in.node);
      }
      for (Node* c : n->control_inputs()) {
        if (!ControlIsFed(c)) visit(Meant(c));
      }
    }
    return absl::OkStatus();
  }

  // All functions, where one is named.
  Status CopyLibrary() {
    if (source_.Functions().empty()) return absl::OkStatus();
    const auto names_one = [this](const Node* n) {
      return needed_[static_cast<size_t>(n->id())] && (IsCall(source_, *n) || !FunctionsOf(*n).empty());
    };
    if (std::none_of(source_.nodes().begin(), source_.nodes().end(), names_one)) return absl::OkStatus();
    for (const wire::FunctionDef* f : source_.Functions()) MR_RETURN_IF_ERROR(graph_->AddFunction(*f));
    for (const wire::GradientDef& g : source_.gradient_defs()) MR_RETURN_IF_ERROR(graph_->AddGradientDef(g));
    return absl::OkStatus();
  }

  // In topological order, ties by the source's construction order, so that plan order follows the user's.
  Status CopyNeeded() {
    std::vector<int> pending(needed_.size(), 0);
    auto id = [](const Node* n) { return static_cast<size_t>(n->id()); };
    using Entry = std::pair<int, Node*>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    size_t wanted = 0, copied = 0;
    for (Node* n : source_.nodes()) {
      if (source_.FindExpansion(n) != nullptr) {
        for (int i = 0; i < n->num_outputs(); ++i) stands_for_.emplace(Meant(n->output(i)).node, n->output(i));
        stands_for_.emplace(Meant(n), Output{n, -1});
      }
      if (!needed_[id(n)]) continue;
      ++wanted;
      for (Output in : n->inputs()) {
        in = Meant(in);
        if (in && !fed_.contains(in) && !IsBackEdge(in, *n)) ++pending[id(n)];
      }
      for (Node* c : n->control_inputs()) pending[id(n)] += needed_[id(Meant(c))];
      if (pending[id(n)] == 0) ready.emplace(n->id(), n);
    }
    while (!ready.empty()) {
      Node* n = ready.top().second;
      ready.pop();
      MR_RETURN_IF_ERROR(CopyOne(n));
      ++copied;
      auto arrived = [&](Node* to) {
        if (needed_[id(to)] && --pending[id(to)] == 0) ready.emplace(to->id(), to);
      };
      for (const Consumer& c : n->consumers()) {
        const Output from = c.node->input(c.input);
        if (!fed_.contains(from) && !IsBackEdge(from, *c.node)) arrived(c.node);
      }
      for (Node* to : n->control_outputs()) arrived(to);
      for (auto [it, end] = stands_for_.equal_range(n); it != end; ++it) {
        const Output o = it->second;
        if (o.index < 0) {
          for (Node* to : o.node->control_outputs()) arrived(to);
        } else if (!fed_.contains(Meant(o))) {
          for (const Consumer& c : o.node->ConsumersOf(o.index)) arrived(c.node);
        }
      }
    }
    if (copied != wanted) {
      return InvalidArgument(
          "Graph is invalid, contains a cycle with ", wanted - copied, " nodes, including: ", FirstBlocked(pending));
    }
    return absl::OkStatus();
  }

  std::string FirstBlocked(const std::vector<int>& pending) const {
    for (Node* n : source_.nodes()) {
      if (needed_[static_cast<size_t>(n->id())] && pending[static_cast<size_t>(n->id())] > 0) return n->Describe();
    }
    return "?";
  }

  Status CopyOne(Node* n) {
    std::vector<Output> inputs;
    inputs.reserve(static_cast<size_t>(n->num_inputs()));
    for (int i = 0; i < n->num_inputs(); ++i) {
      const Output in = Meant(n->input(i));
      if (!in) return InvalidArgument(n->Describe(), " has no input ", i);
      auto fed = fed_.find(in);
      if (fed != fed_.end()) {
        if (IsRef(n->input_type(i))) {
          return InvalidArgument(
              "tensor ", in.ToString(), " is fed, but ", n->Describe(), " needs the variable itself there");
        }
        inputs.push_back(fed->second);
      } else {
        inputs.push_back(IsBackEdge(in, *n) ? Output{} : Output{copies_.at(in.node), in.index});
      }
    }
    std::vector<Node*> controls;
    for (Node* given : n->control_inputs()) {
      Node* c = Meant(given);
      if (auto it = copies_.find(c); it != copies_.end()) {
        controls.push_back(it->second);
      } else if (auto fed = fed_.find(c->output(0)); fed != fed_.end()) {
        controls.push_back(fed->second.node);
      }
    }
    MR_ASSIGN_OR_RETURN(Node * copy, graph_->CopyNode(*n, inputs, controls));
    copies_.emplace(n, copy);
    if (const auto* groups = GroupsOf(*n)) KeepPlace(*groups, copy);
    return absl::OkStatus();
  }

  static const std::vector<std::string>* GroupsOf(const Node& n) {
    const auto it = n.attrs().find("_class");
    return it == n.attrs().end() ? nullptr : it->second.get<std::vector<std::string>>();
  }

  // What is left out and had to be with `copy` asks for a device through it, in so far as the two agree.
  void KeepPlace(const std::vector<std::string>& groups, Node* copy) const {
    std::vector<const Node*> beside;  // left out, each once
    HashSet<const Node*> seen;
    const auto add = [&](const Node* n) {
      if (n == nullptr || needed_[static_cast<size_t>(n->id())]) return;
      if (seen.insert(n).second) beside.push_back(n);
    };
    const auto add_groups = [&](const std::vector<std::string>& names) {
      for (absl::string_view name : names) {
        if (absl::ConsumePrefix(&name, "loc:@")) add(source_.Find(name));
      }
    };
    add_groups(groups);
    StatusOr<DeviceName> place = DeviceName::Parse(copy->device());
    bool moved = false;
    for (size_t i = 0; i < beside.size(); ++i) {
      const Node& n = *beside[i];
      const StatusOr<DeviceName> asked = DeviceName::Parse(n.device());
      if (place.ok() && asked.ok() && !n.device().empty()) {
        if (StatusOr<DeviceName> both = place->Merge(*asked); both.ok()) {
          place = std::move(both);
          moved = true;
        }
      }
      if (const auto* names = GroupsOf(n)) add_groups(*names);
      for (int k = 0; k < n.num_inputs(); ++k) {
        if (IsRef(n.input_type(k)) || n.input_type(k) == DType::kResource) add(n.input(k).node);
      }
    }
    if (moved) copy->set_device(place->ToString());
  }

  Status CloseLoops() {
    for (const auto& [from, to] : copies_) {
      for (int i = 0; i < from->num_inputs(); ++i) {
        const Output in = Meant(from->input(i));
        if (!IsBackEdge(in, *from) || fed_.contains(in)) continue;
        MR_RETURN_IF_ERROR(graph_->SetInput(to, i, {copies_.at(in.node), in.index}));
      }
    }
    return absl::OkStatus();
  }

  Status AddFetches() {
    for (size_t i = 0; i < sig_.fetches.size(); ++i) {
      const Output o = sig_.fetches[i];
      const Output meant = Meant(o);
      auto fed = fed_.find(meant);
      const Output from = fed != fed_.end() ? fed->second : Output{copies_.at(meant.node), meant.index};
      NodeSpec spec = ClientNode(options_.through_rendezvous ? "_Send" : "_Retval", "fetch", o, BaseType(o.dtype()), i);
      spec.inputs = {from};
      if (!options_.through_rendezvous && ReadsVariable(*meant.node)) spec.attrs[kFetchesVariable] = true;
      MR_ASSIGN_OR_RETURN(Node * retval, graph_->AddNode(std::move(spec)));
      retval->set_device(ClientNodeDevice(*from.node));
    }
    return absl::OkStatus();
  }

  const Graph& source_;
  const RunSignature& sig_;
  const PruneOptions& options_;
  std::unique_ptr<Graph> graph_;
  HashMap<Output, Output> fed_;
  std::vector<bool> needed_;
  std::multimap<const Node*, Output>
      stands_for_;  // by node of an expansion: outputs of calls; index -1: the call itself
  HashMap<const Node*, Node*> copies_;
};

}  // namespace

std::string ClientTensorName(const char* what, Output o) { return absl::StrCat(what, ":", o.ToString()); }

StatusOr<std::unique_ptr<Graph>> PruneForRun(const Graph& source, const RunSignature& signature,
                                             const PruneOptions& options) {
  return Pruner(source, signature, options).Prune();
}

std::vector<std::vector<bool>> FeedsNeededBy(const std::vector<Output>& feeds, const std::vector<Output>& fetches) {
  HashMap<Output, size_t> feed_index;
  for (size_t i = 0; i < feeds.size(); ++i) feed_index.emplace(feeds[i], i);
  std::vector<std::vector<bool>> needed;
  for (Output fetch : fetches) {
    std::vector<bool> mine(feeds.size(), false);
    HashMap<const Node*, bool> seen;
    std::vector<Node*> stack;
    auto reach = [&](Output o) {
      if (auto it = feed_index.find(o); it != feed_index.end()) {
        mine[it->second] = true;
      } else if (o.node && seen.emplace(o.node, true).second) {
        stack.push_back(o.node);
      }
    };
    reach(fetch);
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      for (Output in : n->inputs()) reach(in);
      for (Node* c : n->control_inputs()) {
        if (seen.emplace(c, true).second) stack.push_back(c);
      }
    }
    needed.push_back(std::move(mine));
  }
  return needed;
}

}  // namespace millrace
