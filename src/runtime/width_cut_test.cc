// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/plan_cut.h"

namespace millrace {
namespace {

constexpr double kMicro = 1e3;

class WidthCutTest : public ::testing::Test {
 protected:
  WidthCutTest() { graph_.frames.resize(1); }

  int Add(double micros, std::vector<int> inputs, std::vector<int> controls = {}) {
    PlannedNode n;
    n.info.signature.output_types = {DType::kFloat};
    n.expensive = micros > 0;
    for (const int i : inputs) n.inputs.push_back({i, 0, false});
    n.controls = std::move(controls);
    graph_.nodes.push_back(std::move(n));
    nanos_.push_back(micros * kMicro);
    return static_cast<int>(graph_.nodes.size()) - 1;
  }
  int Uses(StateUse use, double micros, std::vector<int> inputs = {}) {
    const int k = Add(micros, std::move(inputs));
    graph_.nodes.back().state_use = use;
    return k;
  }
  // Its first and last node.
  std::pair<int, int> Line(int nodes, double micros, int from) {
    const int first = Add(micros, {from});
    int last = first;
    for (int i = 1; i < nodes; ++i) last = Add(micros, {last});
    return {first, last};
  }
  double InOrder() const { return std::accumulate(nanos_.begin(), nanos_.end(), 0.0); }
  PlanCut Cut(int threads = 2) const { return CutByCost(graph_, nanos_, threads); }
  double Estimate(int threads = 2) const { return EstimateNanos(graph_, Cut(threads), nanos_, threads); }

  PlanGraph graph_;
  std::vector<double> nanos_;
};

TEST_F(WidthCutTest, TwoLinesAreTwoUnitsAndWhatJoinsThemAThird) {
  const int a = Add(1, {});
  const auto left = Line(50, 20, a), right = Line(50, 20, a);
  Add(1, {left.second, right.second});
  const PlanCut cut = Cut();
  EXPECT_LE(cut.units.size(), 4u);
  EXPECT_TRUE(MayHaveWidth(graph_));
  EXPECT_LT(Estimate(), 0.55 * InOrder());
}

// What both lines read comes from one of them, but is waited for once.
TEST_F(WidthCutTest, AValueThatALineReadsManyTimesIsWaitedForOnce) {
  const int a = Add(0, {}), b = Add(0, {});
  int left = a, right = b;
  for (int i = 0; i < 50; ++i) {
    left = Add(20, {left, a});
    right = Add(20, {right, b});
  }
  EXPECT_LE(Cut().units.size(), 5u);
}

TEST_F(WidthCutTest, AStraightLineIsOneUnit) {
  Line(20, 100, Add(100, {}));
  EXPECT_EQ(Cut().units.size(), 1u);
  EXPECT_FALSE(MayHaveWidth(graph_));
}

TEST_F(WidthCutTest, WhatIsShorterThanAHandOverStaysTogether) {
  const int a = Add(1, {});
  Add(1, {Line(5, 1, a).second, Line(5, 1, a).second});
  EXPECT_EQ(Cut().units.size(), 1u);
}

TEST_F(WidthCutTest, CheapNodesHaveNoWidth) {
  const int a = Add(0, {});
  Add(0, {Add(0, {a}), Add(0, {a})});
  EXPECT_FALSE(MayHaveWidth(graph_));
}

TEST_F(WidthCutTest, UsesOfAStateStayInOrder) {
  using Use = StateUse;
  Uses(Use::kReads, 100);
  Uses(Use::kReads, 100);
  Uses(Use::kChanges, 100);
  Uses(Use::kChanges, 100);
  Uses(Use::kReads, 100);
  const std::vector<std::pair<int, int>> want = {{0, 2}, {1, 2}, {2, 3}, {3, 4}};
  EXPECT_EQ(Cut().order, want);
  EXPECT_GT(Estimate(), 400 * kMicro);
}

// In whatever order units become ready, and on whatever threads, every edge is kept.
TEST_F(WidthCutTest, RandomCutsKeepAllEdges) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    graph_.nodes.clear();
    nanos_.clear();
    const size_t n = 1 + random() % 80;
    for (size_t k = 0; k < n; ++k) {
      std::vector<int> inputs;
      for (uint32_t i = k == 0 ? 0 : random() % 3; i > 0; --i) inputs.push_back(static_cast<int>(random() % k));
      const int node = Add(random() % 4 == 0 ? 100 : random() % 20, inputs);
      graph_.nodes[static_cast<size_t>(node)].state_use = static_cast<StateUse>(random() % 8 < 6 ? 0 : random() % 3);
    }
    const int threads = 2 + static_cast<int>(random() % 7);
    const PlanCut cut = Cut(threads);
    std::vector<int> unit_of(n, -1), place(n, -1);
    int next = 0;
    for (size_t u = 0; u < cut.units.size(); ++u) {
      EXPECT_TRUE(cut.units[u].is_segment);
      for (const int k : cut.units[u].nodes) {
        EXPECT_EQ(place[static_cast<size_t>(k)], -1);
        unit_of[static_cast<size_t>(k)] = static_cast<int>(u);
        place[static_cast<size_t>(k)] = next++;
      }
    }
    EXPECT_EQ(next, static_cast<int>(n)) << "seed " << seed;
    const auto keeps = [&](int from, size_t to) {
      EXPECT_LT(place[static_cast<size_t>(from)], place[to]) << "seed " << seed;
      EXPECT_LE(unit_of[static_cast<size_t>(from)], unit_of[to]) << "seed " << seed;
    };
    for (size_t k = 0; k < n; ++k) {
      for (const auto& in : graph_.nodes[k].inputs) keeps(in.node, k);
    }
    for (const auto& [from, to] : cut.order) keeps(from, static_cast<size_t>(to));
    EXPECT_GE(EstimateNanos(graph_, cut, nanos_, threads), InOrder() / threads);
  }
}

}  // namespace
}  // namespace millrace
