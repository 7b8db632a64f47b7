// SPDX-License-Identifier: Apache-2.0
// Small graphs with conditionals and loops, as the constructors of the core build them, with what a step must give.
// Every schedule of each must give the same values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/graph_builder.h"
#include "tensor/tensor.h"

namespace millrace {

struct FlowStep {
  std::vector<Node*> init;  // to be run once before
  std::vector<Output> feeds;
  std::vector<Tensor> values;
  std::vector<Output> fetches;
  std::vector<Tensor> expected;  // one per fetch; float32 within 1e-5 relative, others equal

  void Feed(Output o, Tensor value) {
    feeds.push_back(o);
    values.push_back(std::move(value));
  }
  void Expect(Output o, Tensor value) {
    fetches.push_back(o);
    expected.push_back(std::move(value));
  }
};

struct FlowGraph {
  std::string name;
  std::function<Status(const GraphBuilder& b, FlowStep* step)> build;
};

const std::vector<FlowGraph>& FlowGraphs();          // forward only
const std::vector<FlowGraph>& VariableFlowGraphs();  // variables that are read where they are updated
const std::vector<FlowGraph>& FlowGradientGraphs();  // with gradients through them

}  // namespace millrace
