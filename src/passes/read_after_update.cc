// SPDX-License-Identifier: Apache-2.0
// Reads of variables that TensorFlow's programs expect to see an update.
//
// `v.read` is one Identity node, made with the variable and used everywhere. There its output shares the variable's buffer,
// and an update writes into that buffer; so a node that is ordered behind the update (by a control edge, as moving averages
// are behind the training step) finds the new value although it reads by way of an Identity that ran before. Here a read
// keeps the value that it read. So that such programs mean the same, a reader that is ordered behind an update of the
// variable takes the variable itself, and reads it when it runs; all others keep the snapshot.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "passes/pipeline.h"

namespace millrace {
namespace {

bool IsRead(const Node& n) {
  return n.op_name() == "Identity" && IsRef(n.input(0).dtype()) && n.control_inputs().empty();
}

bool MayReadItself(const Node& reader, const Node& read) {
  return reader.op() != nullptr && !reader.op_name().starts_with("_") && reader.control_op() == ControlOp::kNone &&
         reader.assigned_device() == read.assigned_device();
}

// Everything that cannot run before one of the updates.
absl::flat_hash_set<const Node*> Behind(const std::vector<Node*>& updates) {
  absl::flat_hash_set<const Node*> behind;
  std::vector<const Node*> stack(updates.begin(), updates.end());
  const auto push = [&](const Node* n) {
    if (behind.insert(n).second) stack.push_back(n);
  };
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    for (const Consumer& c : n->consumers()) push(c.node);
    for (const Node* to : n->control_outputs()) push(to);
  }
  return behind;
}

}  // namespace

Status ReadAfterUpdates(Graph& graph) {
  absl::flat_hash_map<Output, std::vector<Node*>> reads;  // by reference
  for (Node* n : graph.nodes()) {
    if (IsRead(*n)) reads[n->input(0)].push_back(n);
  }
  for (const auto& [ref, list] : reads) {
    std::vector<Node*> updates;
    for (const Consumer& c : ref.node->consumers()) {
      if (c.node->input(c.input) == ref && IsRef(c.node->input_type(c.input)) && c.node->control_op() == ControlOp::kNone) {
        updates.push_back(c.node);
      }
    }
    if (updates.empty()) continue;
    const absl::flat_hash_set<const Node*> behind = Behind(updates);
    if (behind.empty()) continue;
    for (Node* read : list) {
      const std::vector<Consumer> readers = read->consumers();
      for (const Consumer& c : readers) {
        if (!behind.contains(c.node) || !MayReadItself(*c.node, *read) || IsRef(c.node->input_type(c.input))) continue;
        MR_RETURN_IF_ERROR(graph.SetInput(c.node, c.input, ref));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace millrace
