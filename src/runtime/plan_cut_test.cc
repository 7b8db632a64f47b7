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
  int Uses(StateUse use, std::vector<int> inputs, int state = 1) {
    const int k = Add(std::move(inputs));
    graph_.nodes.back().state_use = use;
    graph_.nodes.back().state = state;
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

TEST_F(PlanCutTest, AReadBeforeAnUpdateThatLeadsToAWaitRunsFirstToo) {
  const int read = Uses(StateUse::kReads, {}), other = Uses(StateUse::kReads, {}, /*state=*/2);
  Wait({Uses(StateUse::kChanges, {})});
  Add({read, other});
  EXPECT_EQ(Cut(), "[0 2] 3 [1 4]");
}

using Order = std::vector<std::pair<int, int>>;

TEST_F(PlanCutTest, AnUpdateWaitsForAReadBeforeItThatLeadsToAWait) {
  const int read = Uses(StateUse::kReads, {}), update = Uses(StateUse::kChanges, {});
  Uses(StateUse::kChanges, {}, /*state=*/2);
  Wait({read});
  EXPECT_EQ(Cut(), "[0] 3 [1 2]");
  EXPECT_EQ(CutByWaits(graph_).order, (Order{{read, update}}));
}

TEST_F(PlanCutTest, AUseThatWaitsForLessGoesFirst) {
  const int x = Wait(), y = Wait();
  const int after_x = Uses(StateUse::kChanges, {x}), before = Uses(StateUse::kReads, {});
  Uses(StateUse::kChanges, {y});
  const int after_both = Uses(StateUse::kReads, {Add({x, y})});
  const Order want = {{before, 4}, {before, after_x}, {after_x, after_both}, {4, after_both}};
  const auto sorted = [](Order order) {
    std::sort(order.begin(), order.end());
    return order;
  };
  EXPECT_EQ(sorted(CutByWaits(graph_).order), sorted(want));
  EXPECT_EQ(sorted(CutIntoNodes(graph_).order), sorted(want));
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

TEST_F(PlanCutTest, AChainOfChangesBehindWaitsHasAnOrderForEach) {
  constexpr int kLength = 1000;
  int last = Wait();
  for (int i = 0; i < kLength; ++i) last = Wait({Uses(StateUse::kChanges, {last})});
  EXPECT_EQ(CutByWaits(graph_).order.size(), kLength - 1);
  EXPECT_EQ(CutIntoNodes(graph_).order.size(), kLength - 1);
}

// Values, and the order of the uses of states, in all that waits and leads to waits.
TEST_F(PlanCutTest, RandomCutsKeepOrderAndReadiness) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    graph_.nodes.clear();
    const size_t n = 2 + random() % 60;
    for (size_t k = 0; k < n; ++k) {
      std::vector<int> inputs;
      for (uint32_t i = k == 0 ? 0 : random() % 3; i > 0; --i) inputs.push_back(static_cast<int>(random() % k));
      if (random() % 5 == 0) {
        Wait(inputs);
      } else {
        Uses(static_cast<StateUse>(random() % 6 < 3 ? 0 : random() % 3), inputs, static_cast<int>(random() % 2));
      }
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
    const auto waits_for_less = [&](size_t a, size_t b) {
      bool less = false;
      for (size_t w = 0; w < n; ++w) {
        if (waits[a][w] && !waits[b][w]) return false;
        less |= waits[b][w] && !waits[a][w];
      }
      return less;
    };
    for (const PlanCut& cut : {CutByWaits(graph_), SortedCut(graph_, CutIntoNodes(graph_))}) {
      std::vector<int> place(n, -1), unit(n, -1);
      int next = 0;
      for (size_t u = 0; u < cut.units.size(); ++u) {
        EXPECT_TRUE(cut.units[u].is_segment || cut.units[u].nodes.size() == 1);
        for (const int node : cut.units[u].nodes) {
          const auto k = static_cast<size_t>(node);
          EXPECT_EQ(place[k], -1) << seed;
          place[k] = next++;
          unit[k] = static_cast<int>(u);
          EXPECT_EQ(waits[k], waits[static_cast<size_t>(cut.units[u].nodes.front())]) << seed;
          EXPECT_FALSE(cut.units[u].is_segment && graph_.nodes[k].async != nullptr) << seed;
        }
      }
      EXPECT_EQ(next, static_cast<int>(n)) << seed;
      for (size_t k = 0; k < n; ++k) {
        for (const auto& in : graph_.nodes[k].inputs) EXPECT_LT(place[static_cast<size_t>(in.node)], place[k]) << seed;
      }
      // Which units have run when another one begins.
      const std::vector<std::vector<int>> followers = FollowersOf(graph_, cut);
      std::vector<std::vector<bool>> before(followers.size(), std::vector<bool>(followers.size()));
      for (size_t u = 0; u < followers.size(); ++u) {
        for (const int f : followers[u]) {
          ASSERT_GT(f, static_cast<int>(u)) << seed;
          for (size_t e = 0; e < u; ++e)
            before[static_cast<size_t>(f)][e] = before[static_cast<size_t>(f)][e] || before[u][e];
          before[static_cast<size_t>(f)][u] = true;
        }
      }
      for (size_t b = 0; b < n; ++b) {
        for (size_t a = 0; a < n; ++a) {
          const PlannedNode &x = graph_.nodes[a], &y = graph_.nodes[b];
          if (a == b || x.state != y.state || x.state_use == StateUse::kNone || y.state_use == StateUse::kNone)
            continue;
          if (x.state_use == StateUse::kReads && y.state_use == StateUse::kReads) continue;
          if (!waits_for_less(a, b) && !(waits[a] == waits[b] && a < b)) continue;
          EXPECT_TRUE(unit[a] == unit[b] ? place[a] < place[b]
                                         : before[static_cast<size_t>(unit[b])][static_cast<size_t>(unit[a])])
              << "seed " << seed << ": " << a << " goes before " << b;
        }
      }
    }
  }
}

}  // namespace
}  // namespace millrace
