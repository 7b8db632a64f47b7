// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

namespace millrace {

StatusOr<Node*> Graph::CopyNode(const Node& from, absl::Span<const Output> inputs,
                                absl::Span<Node* const> control_inputs) {
  if (inputs.size() != from.inputs_.size()) {
    return Internal("copy of ", from.Describe(), " has ", inputs.size(), " inputs, wants ", from.inputs_.size());
  }
  if (by_name_.contains(from.name_)) return AlreadyExists("node name '", from.name_, "' is taken");
  auto node = std::make_unique<Node>();
  node->id_ = next_id_++;
  node->name_ = from.name_;
  node->op_name_ = from.op_name_;
  node->control_op_ = from.control_op_;
  node->traits_ = from.traits_;
  node->device_ = from.device_;
  node->assigned_device_ = from.assigned_device_;
  node->location_ = from.location_;
  node->op_ = from.op_ != nullptr && from.op_->schema.empty() ? FindOp(from.op_name_) : from.op_;
  node->attrs_ = from.attrs_;
  node->signature_ = from.signature_;
  node->shapes_ = from.shapes_;
  node->handles_ = from.handles_;
  node->as_shape_ = from.as_shape_;
  node->inputs_.assign(inputs.begin(), inputs.end());
  Node* raw = node.get();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]) inputs[i].node->consumers_.push_back({raw, static_cast<int>(i)});
  }
  storage_.push_back(std::move(node));
  live_.push_back(raw);
  by_name_.emplace(raw->name_, raw);
  for (Node* c : control_inputs) AddControlEdge(c, raw);
  return raw;
}

}  // namespace millrace
