// SPDX-License-Identifier: Apache-2.0
// The loops of a graph, and which of them each node runs in.
#pragma once

#include <string>
#include <vector>

#include "base/hash_map.h"
#include "graph/graph.h"

namespace millrace {

struct LoopFrame {
  std::string name;  // "" for what is outside of all loops
  int parent = -1;
  int depth = 0;
  int64_t parallel_iterations = 1;
};

class FrameTree {
 public:
  // `order` is topological (back edges aside). InvalidArgument when a node has inputs from different frames.
  static StatusOr<FrameTree> Of(const std::vector<Node*>& order, int num_ids);

  // Frame 0 is outside of all loops; parents come before their children.
  const std::vector<LoopFrame>& frames() const { return frames_; }
  // Where a node runs: an Enter outside of the frame that it enters, an Exit inside of the one that it leaves.
  int RunsIn(const Node* n) const { return runs_in_[static_cast<size_t>(n->id())]; }
  // Where its outputs are.
  int OutputsIn(const Node* n) const { return outputs_in_[static_cast<size_t>(n->id())]; }

 private:
  Status Visit(const Node& n);
  StatusOr<int> Child(const Node& enter, int parent);

  std::vector<LoopFrame> frames_{LoopFrame{}};
  std::vector<int> runs_in_, outputs_in_;
  HashMap<std::string, int> by_name_;
};

}  // namespace millrace
