// SPDX-License-Identifier: Apache-2.0
// Partitioning (white paper 3.2.2): one graph per device; an edge that crosses becomes a Send and a Recv, one pair per
// tensor and destination device; a control edge that crosses sends an empty tensor.
#include <map>

#include "absl/container/flat_hash_map.h"
#include "passes/pipeline.h"

namespace millrace {
namespace {

class Partitioner {
 public:
  Partitioner(const Graph& graph, const PassEnvironment& env) : graph_(graph), env_(env) {}

  StatusOr<std::vector<Partition>> Run() {
    MR_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(graph_));
    for (Node* n : order) {
      Graph& part = GraphFor(n->assigned_device());
      std::vector<Output> inputs;
      for (Output in : n->inputs()) {
        MR_ASSIGN_OR_RETURN(const Output here, Import(in, n->assigned_device()));
        inputs.push_back(here);
      }
      std::vector<Node*> controls;
      for (Node* c : n->control_inputs()) {
        MR_ASSIGN_OR_RETURN(Node * here, ImportControl(c, n->assigned_device()));
        controls.push_back(here);
      }
      MR_ASSIGN_OR_RETURN(Node * copy, part.CopyNode(*n, inputs, controls));
      copies_.emplace(n, copy);
    }
    std::vector<Partition> result;
    for (auto& [device, graph] : parts_) result.push_back({device, std::move(graph)});
    return result;
  }

 private:
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
    if (!o) return Internal("a loop's back edge reached partitioning");
    const std::string& from = o.node->assigned_device();
    if (from == device) return Output{copies_.at(o.node), o.index};
    Output& recv = received_[{o, device}];
    if (!recv) {
      // A reference cannot travel; its value does.
      MR_ASSIGN_OR_RETURN(recv, AddPair({copies_.at(o.node), o.index}, BaseType(o.dtype()), o.ToString(), from, device));
      recv.node->set_shape(0, o.shape());
    }
    return recv;
  }

  StatusOr<Node*> ImportControl(Node* c, const std::string& device) {
    const std::string& from = c->assigned_device();
    if (from == device) return copies_.at(c);
    Node*& here = received_controls_[{c, device}];
    if (!here) {
      NodeSpec token;
      token.op = "Const";
      token.name = TokenName(c->name(), device);
      token.attrs["dtype"] = DType::kFloat;
      token.attrs["value"] = Tensor::Vector<float>({});
      token.control_inputs = {copies_.at(c)};
      MR_ASSIGN_OR_RETURN(Node * constant, GraphFor(from).AddNode(std::move(token)));
      constant->set_assigned_device(from);
      MR_ASSIGN_OR_RETURN(const Output recv, AddPair(constant->output(0), DType::kFloat,
                                                     absl::StrCat("^", c->name()), from, device));
      here = recv.node;
    }
    return here;
  }

  std::string TokenName(const std::string& base, const std::string& device) {
    return absl::StrCat("_edge_", serial_++, "_token_", base.substr(0, 256), "_", device.substr(device.rfind(':') + 1));
  }

  StatusOr<Output> AddPair(Output value, DType type, const std::string& tensor,
                           const std::string& from, const std::string& to) {
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
    MR_ASSIGN_OR_RETURN(Node * r, GraphFor(to).AddNode(std::move(recv)));
    r->set_assigned_device(to);
    return r->output(0);
  }

  const Graph& graph_;
  const PassEnvironment& env_;
  int64_t serial_ = 0;
  std::map<std::string, std::unique_ptr<Graph>> parts_;
  absl::flat_hash_map<const Node*, Node*> copies_;
  absl::flat_hash_map<std::pair<Output, std::string>, Output> received_;
  absl::flat_hash_map<std::pair<const Node*, std::string>, Node*> received_controls_;
};

}  // namespace

StatusOr<std::vector<Partition>> PartitionGraph(std::unique_ptr<Graph> graph, const PassEnvironment& env) {
  bool one = true;
  const std::vector<Node*>& nodes = graph->nodes();
  for (const Node* n : nodes) one = one && n->assigned_device() == nodes.front()->assigned_device();
  if (one) {
    std::vector<Partition> result;
    std::string device = nodes.empty() ? env.devices.front().ToString() : nodes.front()->assigned_device();
    result.push_back({std::move(device), std::move(graph)});
    return result;
  }
  return Partitioner(*graph, env).Run();
}

}  // namespace millrace
