// SPDX-License-Identifier: Apache-2.0
#include "graph/verify.h"
#include "passes/pass_testutil.h"

namespace millrace {
namespace {

class PartitionTest : public PassTest {
 protected:
  std::vector<Partition> Partitioned() {
    EXPECT_TRUE(Place(*graph_, env_).ok());
    auto parts = PartitionGraph(std::move(graph_), env_);
    EXPECT_TRUE(parts.ok()) << parts.status();
    if (!parts.ok()) return {};
    for (const Partition& p : *parts) EXPECT_TRUE(VerifyGraph(*p.graph).ok()) << p.device;
    return *std::move(parts);
  }
  static std::vector<std::string> Keys(const Graph& graph, absl::string_view op) {
    std::vector<std::string> keys;
    for (const Node* n : graph.nodes()) {
      if (n->op_name() == op) keys.push_back(n->Attr<std::string>("tensor_name").value_or("?"));
    }
    std::sort(keys.begin(), keys.end());
    return keys;
  }
};

TEST_F(PartitionTest, OneDeviceTakesTheGraphAsItIs) {
  Node* x = Add("Placeholder", "x");
  Add("Work", "work", {x->output(0)});
  const Graph* before = graph_.get();
  const std::vector<Partition> parts = Partitioned();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].graph.get(), before);
  EXPECT_EQ(parts[0].device, Device(0));
}

// However many read it there.
TEST_F(PartitionTest, ATensorCrossesOnceForEachDevice) {
  Node* x = On(0, Add("Placeholder", "x"));
  Node* a = On(1, Add("Work", "a", {x->output(0)}));
  Node* b = On(1, Add("Join", "b", {x->output(0), x->output(0)}));
  On(1, Add("Join", "c", {a->output(0), b->output(0)}, {x}));
  On(0, Add("Work", "d", {x->output(0)}));
  const std::vector<Partition> parts = Partitioned();
  ASSERT_EQ(parts.size(), 2u);
  const Graph& from = *parts[0].graph;
  const Graph& to = *parts[1].graph;
  // The tensor, and that x has run.
  EXPECT_EQ(Count(from, "_Send"), 2);
  EXPECT_EQ(Count(to, "_Recv"), 2);
  EXPECT_EQ(Keys(from, "_Send"), Keys(to, "_Recv"));
  EXPECT_EQ(to.Find("b")->input(0), to.Find("b")->input(1));
  EXPECT_EQ(to.Find("b")->input(0), to.Find("a")->input(0));
  const Node& recv = *to.Find("a")->input(0).node;
  EXPECT_EQ(*recv.Attr<std::string>("send_device"), Device(0));
  EXPECT_EQ(*recv.Attr<std::string>("recv_device"), Device(1));
  EXPECT_EQ(*recv.Attr<int64_t>("send_device_incarnation"), 7);
}

TEST_F(PartitionTest, AReferenceCrossesAsAValue) {
  Node* v = On(0, Add("Variable", "v"));
  On(1, Add("Work", "work", {v->output(0)}));
  const std::vector<Partition> parts = Partitioned();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].graph->Find("work")->input(0).dtype(), DType::kFloat);
}

}  // namespace
}  // namespace millrace
