// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace millrace {
namespace {

class Waiting final : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext&, DoneCallback done) override { std::move(done)(absl::OkStatus()); }
};

class PlanCutTest : public ::testing::Test {
 protected:
  PlanCutTest() { graph_.frames.resize(1); }

  // Of one output; a node's name is its number.
  int Add(std::vector<int> inputs, std::vector<int> controls = {}) {
    PlannedNode n;
    n.info.name = absl::StrCat(graph_.nodes.size());
    n.info.signature.output_types = {DType::kFloat};
    for (const int i : inputs) n.inputs.push_back({i, 0, false});
    n.controls = std::move(controls);
    graph_.nodes.push_back(std::move(n));
    return static_cast<int>(graph_.nodes.size()) - 1;
  }
  int Wait(std::vector<int> inputs = {}, std::vector<int> controls = {}) {
    const int k = Add(std::move(inputs), std::move(controls));
    graph_.nodes.back().async = &waiting_;
    return k;
  }
  int Control(ControlOp op, std::vector<int> inputs, int frame = 0, int output_frame = 0) {
    const int k = Add(std::move(inputs));
    PlannedNode& n = graph_.nodes.back();
    n.control = op;
    n.frame = frame;
    n.output_frame = output_frame;
    return k;
  }
  int Argument() {
    const int k = Add({});
    graph_.nodes.back().kind = PlannedNode::Kind::kArgument;
    return k;
  }
  int Send(int of) {
    const int k = Add({of});
    graph_.nodes.back().is_transfer = true;
    graph_.nodes.back().info.signature.output_types.clear();
    return k;
  }

  // "[2 3] 0 [1]": segments in brackets.
  std::string Cut() const {
    std::vector<std::string> units;
    for (const PlanUnit& u : CutByWaits(graph_).units) {
      const std::string nodes = absl::StrJoin(u.nodes, " ");
      units.push_back(u.is_segment ? absl::StrCat("[", nodes, "]") : nodes);
    }
    return absl::StrJoin(units, " ");
  }

  Waiting waiting_;
  PlanGraph graph_;
};

TEST_F(PlanCutTest, NothingIsCutWhereNothingWaits) {
  const int a = Argument();
  const int b = Add({a});
  const int s = Control(ControlOp::kSwitch, {b});
  Send(Control(ControlOp::kMerge, {Add({s}), Add({s})}));
  EXPECT_EQ(Cut(), "[1 2 3 4 5 6]");
}

TEST_F(PlanCutTest, AnEmptyGraphHasNoUnits) {
  Argument();
  EXPECT_EQ(Cut(), "");
}

TEST_F(PlanCutTest, WhatFollowsAWaitIsOneSegment) {
  const int before = Add({});
  const int wait = Wait();
  const int a = Add({wait}), b = Add({wait, before}), c = Add({a, b});
  Add({}, {c});
  EXPECT_EQ(Cut(), "1 [0] [2 3 4 5]");
}

TEST_F(PlanCutTest, WhatWaitsForLessDoesNotWaitForMore) {
  const int x = Wait(), y = Wait();
  const int after_x = Add({x}), after_y = Add({y}), both = Add({after_x, after_y});
  Add({after_x});
  Add({both, after_x});
  EXPECT_EQ(Cut(), "0 1 [2 5] [3] [4 6]");
}

TEST_F(PlanCutTest, WhatLeadsToAWaitRunsFirst) {
  const int a = Add({}), b = Add({a}), c = Add({a});
  const int wait = Wait({c});
  Add({b});
  Add({wait, b});
  EXPECT_EQ(Cut(), "[0 2] 3 [1 4] [5]");
}

TEST_F(PlanCutTest, WhatIsSentGoesFirstToo) {
  const int a = Add({}), b = Add({a});
  Send(a);
  const int wait = Wait();
  Add({wait, b});
  EXPECT_EQ(Cut(), "3 [0 2] [1] [4]");
}

TEST_F(PlanCutTest, AMergeOfDifferentWaitsGoesOnWithTheFirst) {
  const int x = Wait();
  const int a = Add({}), merge = Control(ControlOp::kMerge, {Add({x}), a});
  Add({merge});
  EXPECT_EQ(Cut(), "0 [1] [2] 3 [4]");
}

TEST_F(PlanCutTest, AMergeOfEqualWaitsIsPartOfItsSegment) {
  const int s = Control(ControlOp::kSwitch, {Wait()});
  Control(ControlOp::kMerge, {Add({s}), Add({s})});
  EXPECT_EQ(Cut(), "0 [1 2 3 4]");
}

TEST_F(PlanCutTest, NodesOfLoopsStandByThemselves) {
  graph_.frames.resize(2);
  const int a = Add({}), enter = Control(ControlOp::kEnter, {a}, 0, 1);
  const int merge = Control(ControlOp::kMerge, {enter}, 1, 1);
  const int s = Control(ControlOp::kSwitch, {merge}, 1, 1);
  const int exit = Control(ControlOp::kExit, {s}, 1, 0);
  const int next = Control(ControlOp::kNextIteration, {s}, 1, 1);
  graph_.nodes[static_cast<size_t>(merge)].inputs.push_back({next, 0, false});
  Add({Add({exit})});
  Add({a});
  EXPECT_EQ(Cut(), "[0] 1 2 3 4 5 [6 7] [8]");
}

TEST_F(PlanCutTest, ManyWaitsCostNoMoreThanTheirLimit) {
  // Each node has a set of its own; with all of them looked into, these would be a gigabyte.
  int last = Add({});
  for (int i = 0; i < 40000; ++i) last = Add({last, Wait()});
  EXPECT_EQ(CutByWaits(graph_).units.size(), graph_.nodes.size());
}

TEST_F(PlanCutTest, RandomCutsKeepOrderAndReadiness) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    graph_.nodes.clear();
    const size_t n = 2 + random() % 60;
    for (size_t k = 0; k < n; ++k) {
      std::vector<int> inputs;
      for (uint32_t i = k == 0 ? 0 : random() % 3; i > 0; --i) inputs.push_back(static_cast<int>(random() % k));
      random() % 5 == 0 ? Wait(inputs) : Add(inputs);
    }
    // The waits that each node depends on.
    std::vector<std::vector<bool>> waits(n, std::vector<bool>(n));
    for (size_t k = 0; k < n; ++k) {
      for (const auto& in : graph_.nodes[k].inputs) {
        const auto from = static_cast<size_t>(in.node);
        for (size_t w = 0; w < n; ++w) waits[k][w] = waits[k][w] || waits[from][w];
        if (graph_.nodes[from].async) waits[k][from] = true;
      }
    }
    std::vector<int> place(n, -1);
    int next = 0;
    for (const PlanUnit& u : CutByWaits(graph_).units) {
      EXPECT_TRUE(u.is_segment || u.nodes.size() == 1);
      for (const int k : u.nodes) {
        EXPECT_EQ(place[static_cast<size_t>(k)], -1) << seed;
        place[static_cast<size_t>(k)] = next++;
        EXPECT_EQ(waits[static_cast<size_t>(k)], waits[static_cast<size_t>(u.nodes.front())]) << seed;
        EXPECT_EQ(graph_.nodes[static_cast<size_t>(k)].async != nullptr, !u.is_segment) << seed;
      }
    }
    EXPECT_EQ(next, static_cast<int>(n)) << seed;
    for (size_t k = 0; k < n; ++k) {
      for (const auto& in : graph_.nodes[k].inputs) EXPECT_LT(place[static_cast<size_t>(in.node)], place[k]) << seed;
    }
  }
}

}  // namespace
}  // namespace millrace
