// SPDX-License-Identifier: Apache-2.0
// While it lives, the calls between xs and ys are replaced by what they compute, so that the backward walk meets
// primitives alone and gradients read the values of the forward pass itself. The graph remembers the expansions
// (Graph::SetExpansion); the edges that led to a call are put back when this goes.
#pragma once

#include <string>
#include <vector>

#include "autodiff/gradients.h"
#include "graph/inline_calls.h"

namespace millrace {

// The gradient function that the library names for a call; empty where there is none.
std::string LibraryGradient(const Graph& graph, const Node& call);

class ExpandedCalls {
 public:
  ExpandedCalls(Graph& graph, const GradientOptions& options) : options_(options), graph_(graph) {}
  ~ExpandedCalls();
  ExpandedCalls(const ExpandedCalls&) = delete;
  ExpandedCalls& operator=(const ExpandedCalls&) = delete;

  // Calls that have a gradient of their own (the client's, or one in the library) stay. Fails where a call cannot be
  // expanded.
  Status Expand(const std::vector<Output>& ys, const std::vector<Output>& xs);
  // What stands for an output now.
  Output Meant(Output o) const;
  std::vector<Output> Meant(std::vector<Output> list) const;

 private:
  struct Redirected {
    Consumer consumer;
    Output original;
  };

  bool HasOwnGradient(const Node& call) const;
  std::vector<Node*> CallsBetween(const std::vector<Output>& ys, const std::vector<Output>& xs) const;
  Status ExpandOne(Node* call);
  void LayBeside(const Node* call, int mark);
  Status Redirect(Node* call, const Expansion& expansion);

  const GradientOptions& options_;
  Graph& graph_;
  int first_new_ = 0;
  std::vector<bool> inside_;  // by node id: in a conditional or loop
  std::vector<Redirected> redirected_;
};

}  // namespace millrace
