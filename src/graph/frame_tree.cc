// SPDX-License-Identifier: Apache-2.0
#include "graph/frame_tree.h"

#include <algorithm>

namespace millrace {
namespace {

constexpr int kMaxDepth = 256;

}  // namespace

StatusOr<FrameTree> FrameTree::Of(const std::vector<Node*>& order, int num_ids) {
  FrameTree tree;
  tree.runs_in_.assign(static_cast<size_t>(num_ids), 0);
  tree.outputs_in_.assign(static_cast<size_t>(num_ids), 0);
  for (const Node* n : order) MR_RETURN_IF_ERROR(tree.Visit(*n));
  return tree;
}

Status FrameTree::Visit(const Node& n) {
  int frame = -1;
  const Node* first = nullptr;
  const auto meet = [&](const Node* from) -> Status {
    const int f = OutputsIn(from);
    if (first != nullptr && f != frame) {
      return InvalidArgument(
          n.Describe(), " has inputs from different frames: '", first->name(), "' is in '",
          frames_[static_cast<size_t>(frame)].name, "', '", from->name(), "' is in '",
          frames_[static_cast<size_t>(f)].name, "'");
    }
    first = from;
    frame = f;
    return absl::OkStatus();
  };
  for (const Output& o : n.inputs()) {
    if (o && !IsBackEdge(o.node->control_op(), n.control_op())) MR_RETURN_IF_ERROR(meet(o.node));
  }
  for (const Node* c : n.control_inputs()) MR_RETURN_IF_ERROR(meet(c));
  frame = std::max(frame, 0);
  const size_t id = static_cast<size_t>(n.id());
  runs_in_[id] = outputs_in_[id] = frame;
  if (n.control_op() == ControlOp::kEnter) {
    MR_ASSIGN_OR_RETURN(outputs_in_[id], Child(n, frame));
  } else if (n.control_op() == ControlOp::kExit) {
    if (frame == 0) return InvalidArgument(n.Describe(), " leaves a loop that no Enter has entered");
    outputs_in_[id] = frames_[static_cast<size_t>(frame)].parent;
  } else if (n.control_op() == ControlOp::kNextIteration && frame == 0) {
    return InvalidArgument(n.Describe(), " is in no loop");
  }
  return absl::OkStatus();
}

StatusOr<int> FrameTree::Child(const Node& enter, int parent) {
  MR_ASSIGN_OR_RETURN(std::string name, enter.Attr<std::string>("frame_name"));
  MR_ASSIGN_OR_RETURN(const int64_t parallel, enter.Attr<int64_t>("parallel_iterations"));
  const auto [it, fresh] = by_name_.try_emplace(name, static_cast<int>(frames_.size()));
  if (fresh) {
    const int depth = frames_[static_cast<size_t>(parent)].depth + 1;
    if (depth > kMaxDepth) return InvalidArgument(enter.Describe(), ": loops are nested deeper than ", kMaxDepth);
    frames_.push_back({name, parent, depth, std::max<int64_t>(1, parallel)});
  } else if (const int other = frames_[static_cast<size_t>(it->second)].parent; other != parent) {
    return InvalidArgument(enter.Describe(), ": frame '", name, "' lies in '", frames_[static_cast<size_t>(other)].name,
                           "' and in '", frames_[static_cast<size_t>(parent)].name, "'");
  }
  return it->second;
}

}  // namespace millrace
