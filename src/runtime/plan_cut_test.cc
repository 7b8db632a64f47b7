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

// A loop over a counter and a sum: what decides runs by itself, what waits is waited for alone.
TEST_F(PlanCutTest, BodiesOfLoopsAreSegments) {
  graph_.frames.resize(2);
  const auto inside = [&](int k) {
    graph_.nodes[static_cast<size_t>(k)].frame = graph_.nodes[static_cast<size_t>(k)].output_frame = 1;
    return k;
  };
  const int zero = Add({}), limit = Control(ControlOp::kEnter, {zero}, 0, 1);  // 0 1
  graph_.nodes[static_cast<size_t>(limit)].enters_constant = true;
  const int i = Control(ControlOp::kMerge, {Control(ControlOp::kEnter, {zero}, 0, 1)}, 1, 1);    // 2 3
  const int sum = Control(ControlOp::kMerge, {Control(ControlOp::kEnter, {zero}, 0, 1)}, 1, 1);  // 4 5
  const int more = Control(ControlOp::kLoopCond, {inside(Add({i, limit}))}, 1, 1);               // 6 7
  const int this_i = Control(ControlOp::kSwitch, {i, more}, 1, 1);                               // 8
  const int this_sum = Control(ControlOp::kSwitch, {sum, more}, 1, 1);                           // 9
  const int next_i = Control(ControlOp::kNextIteration, {inside(Add({this_i}))}, 1, 1);          // 10 11
  const int square = inside(Add({inside(Add({this_i}))}));                                       // 12 13
  const int wait = inside(Wait({this_i}));                                                       // 14
  const int added = inside(Add({inside(Add({this_sum, square})), wait}));                        // 15 16
  const int next_sum = Control(ControlOp::kNextIteration, {added}, 1, 1);                        // 17
  graph_.nodes[static_cast<size_t>(i)].inputs.push_back({next_i, 0, false});
  graph_.nodes[static_cast<size_t>(sum)].inputs.push_back({next_sum, 0, false});
  Add({Control(ControlOp::kExit, {this_sum}, 1, 0)});  // 18 19
  EXPECT_EQ(Cut(), "[0] 1 2 3 4 5 [6 7 8 10] 11 14 [12 13] [9 15] 18 [16] 17 [19]");
}

TEST_F(PlanCutTest, WhatEntersALoopBehindAWaitIsNotWaitedForBefore) {
  graph_.frames.resize(2);
  const int early = Control(ControlOp::kEnter, {Add({})}, 0, 1), late = Control(ControlOp::kEnter, {Wait()}, 0, 1);
  for (const int k : {early, late}) graph_.nodes[static_cast<size_t>(k)].enters_constant = true;
  const int a = Add({early}), b = Add({early, late}), c = Add({late}), d = Add({a});
  for (const int k : {a, b, c, d}) {
    graph_.nodes[static_cast<size_t>(k)].frame = graph_.nodes[static_cast<size_t>(k)].output_frame = 1;
  }
  EXPECT_EQ(Cut(), "2 3 [0] 1 [4 7] [5 6]");
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
