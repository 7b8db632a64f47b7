// SPDX-License-Identifier: Apache-2.0
// On a device with memory of its own an op may give a value in one memory that another op of the device wants in the
// other: an edge between them gets a copy. One copy serves all who want the value there. What comes in, goes out or
// crosses to another device is in host memory, so this pass makes every transfer: a value that leaves for another
// device is copied to the host and sent, and copied from the host where it is received.
#include <map>

#include "base/hash_map.h"
#include "passes/pipeline.h"

namespace millrace {
namespace {

class Copier {
 public:
  Copier(Graph& graph, const PassEnvironment& env, const std::string& device, const std::string& type)
      : graph_(graph), env_(env), device_(device), type_(type) {}

  Status Run() {
    const std::vector<Node*> nodes = graph_.nodes();  // without the copies
    for (const Node* n : nodes) memory_[n] = env_.memory_of(*n, type_);
    for (Node* n : nodes) {
      for (int i = 0; i < n->num_inputs(); ++i) {
        const Output in = n->input(i);
        if (!in || IsRef(n->input_type(i))) continue;  // a reference is no value
        const bool from_host = memory_.at(in.node).host_outputs[static_cast<size_t>(in.index)];
        const bool to_host = memory_.at(n).host_inputs[static_cast<size_t>(i)];
        if (from_host == to_host) continue;
        MR_ASSIGN_OR_RETURN(const Output copy, CopyOf(in, to_host));
        MR_RETURN_IF_ERROR(graph_.SetInput(n, i, copy));
      }
    }
    return absl::OkStatus();
  }

 private:
  StatusOr<Output> CopyOf(Output value, bool to_host) {
    Output& copy = copies_[value];
    if (copy) return copy;
    if (value.node->control_op() == ControlOp::kNextIteration) {
      return Unimplemented(value.node->Describe(), " gives its value in the wrong memory");
    }
    NodeSpec spec;
    spec.op = to_host ? "_CopyToHost" : "_CopyFromHost";
    spec.name =
        graph_.UniqueName(absl::StrCat("_", value.node->name(), "_", value.index, to_host ? "_to" : "_from", "_host"));
    spec.inputs = {value};
    spec.location = value.node->location();
    MR_ASSIGN_OR_RETURN(Node * node, graph_.AddNode(std::move(spec)));
    node->set_assigned_device(device_);
    node->set_shape(0, value.shape());
    return copy = node->output(0);
  }

  Graph& graph_;
  const PassEnvironment& env_;
  const std::string& device_;
  const std::string& type_;
  std::map<const Node*, ArgMemory> memory_;
  HashMap<Output, Output> copies_;
};

}  // namespace

Status CopyBetweenMemories(Partition& partition, const PassEnvironment& env) {
  for (size_t i = 0; i < env.own_memory.size(); ++i) {
    if (!env.own_memory[i] || env.devices[i].ToString() != partition.device) continue;
    return Copier(*partition.graph, env, partition.device, env.devices[i].type).Run();
  }
  return absl::OkStatus();
}

}  // namespace millrace
