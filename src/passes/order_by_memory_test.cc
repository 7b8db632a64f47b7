// SPDX-License-Identifier: Apache-2.0
#include "graph/verify.h"
#include "passes/pass_testutil.h"
#include "passes/report.h"
#include "passes/value_memory.h"

namespace millrace {
namespace {

constexpr int64_t kMany = 1 << 20;  // 4 MB

class OrderByMemoryTest : public PassTest {
 protected:
  Node* Made(const char* op, const std::string& name, std::vector<Output> inputs, int64_t elements) {
    Node* n = Add(op, name.c_str(), std::move(inputs));
    n->set_shape(0, PartialShape::Of({elements}));
    return n;
  }
  // Large values first, what makes small ones of them after all of these.
  Node* WideGraph(int width, const char* op = "Work") {
    Node* x = Made("Placeholder", "x", {}, 1);
    std::vector<Node*> large;
    for (int i = 0; i < width; ++i) large.push_back(Made(op, absl::StrCat("large", i), {x->output(0)}, kMany));
    Node* sum = x;
    for (int i = 0; i < width; ++i) {
      Node* small = Made("Work", absl::StrCat("small", i), {large[static_cast<size_t>(i)]->output(0)}, 1);
      sum = Made("Join", absl::StrCat("sum", i), {sum->output(0), small->output(0)}, 1);
    }
    return sum;
  }
  Partition Ordered(std::vector<std::string>* notes = nullptr) {
    Partition p{Device(0), std::move(graph_), {}};
    const Status s = OrderByMemory(p, env_, notes);
    EXPECT_TRUE(s.ok()) << s;
    return p;
  }
  double PeakOf(const std::vector<Node*>& order) { return ValueMemory(order, env_, 0).PeakOf(order).bytes; }
  static std::vector<std::string> Names(const std::vector<Node*>& order, const char* prefix) {
    std::vector<std::string> names;
    for (const Node* n : order) {
      if (n->name().starts_with(prefix)) names.push_back(n->name());
    }
    return names;
  }
};

TEST_F(OrderByMemoryTest, EndsAValueBeforeItMakesTheNext) {
  WideGraph(8);
  std::vector<std::string> notes;
  Partition p = Ordered(&notes);
  EXPECT_EQ(p.graph->nodes().size(), 25u);
  EXPECT_TRUE(VerifyGraph(*p.graph, GraphExtent::kPartition).ok());
  EXPECT_LE(PeakOf(*TopologicalOrder(*p.graph)), 1.1 * 4 * kMany);
  std::vector<Partition> partitions;
  partitions.push_back({Device(0), std::move(p.graph), {}});
  const auto told = MemoryOf(partitions, env_);
  ASSERT_TRUE(told.ok() && told->size() == 1) << told.status();
  EXPECT_LE(told->front().peak_bytes, 1.1 * 4 * kMany);
  ASSERT_FALSE(told->front().holders.empty());
  EXPECT_EQ(told->front().holders[0].bytes, 4 * kMany);
  double held = 0;
  for (const MemoryReport::Holder& h : told->front().holders) held += h.bytes;
  EXPECT_DOUBLE_EQ(held, told->front().peak_bytes) << "all who hold something then are named";
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("33.55 MB in construction order, 4.19 MB in the order chosen by memory"), std::string::npos)
      << notes[0];
}

TEST_F(OrderByMemoryTest, WhatHasAStateStaysInTurn) {
  WideGraph(8, "Random");
  const std::vector<std::string> before = Names(*TopologicalOrder(*graph_), "large");
  const Graph* const graph = graph_.get();
  const Partition p = Ordered();
  EXPECT_NE(p.graph.get(), graph);
  EXPECT_EQ(Names(*TopologicalOrder(*p.graph), "large"), before);
}

TEST_F(OrderByMemoryTest, NothingChangesWhereItIsNotWorthIt) {
  Node* x = Made("Placeholder", "x", {}, kMany);
  for (int i = 0; i < 8; ++i) x = Made("Work", absl::StrCat("chain", i), {x->output(0)}, kMany);
  const Graph* const graph = graph_.get();
  EXPECT_EQ(Ordered().graph.get(), graph);
}

TEST_F(OrderByMemoryTest, SwitchedOffItLeavesTheOrder) {
  WideGraph(8);
  env_.memory.reorder = false;
  const Graph* const graph = graph_.get();
  EXPECT_EQ(Ordered().graph.get(), graph);
}

// A value that is passed on lives as long as all that reads it under any name.
TEST_F(OrderByMemoryTest, PassingAValueOnIsNoCopy) {
  Node* x = Made("Placeholder", "x", {}, 1);
  Node* a = Made("Work", "a", {x->output(0)}, kMany);
  Node* same = Add("Identity", "same", {a->output(0)}, {}, {{"T", DType::kFloat}});
  same->set_shape(0, PartialShape::Of({kMany}));
  Node* b = Made("Work", "b", {x->output(0)}, kMany);
  Made("Join", "c", {same->output(0), b->output(0)}, 1);
  const std::vector<Node*> order = *TopologicalOrder(*graph_);
  EXPECT_LE(PeakOf(order), 2.1 * 4 * kMany);
  EXPECT_GE(PeakOf(order), 2 * 4.0 * kMany);
}

}  // namespace
}  // namespace millrace
