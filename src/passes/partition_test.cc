// SPDX-License-Identifier: Apache-2.0
#include "graph/verify.h"
#include "passes/pass_testutil.h"

namespace millrace {
namespace {

class PartitionTest : public PassTest {
 protected:
  PartitionTest() {
    registry_.Add("_HostCast(x:SrcT) -> (y:DstT) | SrcT:type; DstT:type; Truncate:bool=false").Shape([](ShapeContext&) {
      return absl::OkStatus();
    });
    registry_.Add("Count() -> (n:i32)").Shape([](ShapeContext&) { return absl::OkStatus(); });
    registry_.Add("UseCount(n:i32) -> ()").Shape([](ShapeContext&) { return absl::OkStatus(); });
  }
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

// A group that is run, of groups on each device, as clients make them; not one for which others wait.
TEST_F(PartitionTest, NobodyIsToldThatAllHasRun) {
  Node* x = On(0, Add("Placeholder", "x"));
  Node* far = On(1, Add("Work", "far", {x->output(0)}));
  Node* near = On(0, Add("Work", "near", {x->output(0)}));
  Node* of_far = On(1, Add("NoOp", "of_far", {}, {far}));
  Node* of_both = On(0, Add("NoOp", "of_both", {}, {near, far}));
  On(0, Add("NoOp", "group", {}, {of_far, of_both}));
  Node* before = On(0, Add("NoOp", "before", {}, {far}));
  On(0, Add("Placeholder", "after", {}, {before}));
  const std::vector<Partition> parts = Partitioned();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].graph->Find("group"), nullptr);
  EXPECT_EQ(parts[0].graph->Find("of_both"), nullptr);
  EXPECT_NE(parts[0].graph->Find("before"), nullptr);
  EXPECT_NE(parts[1].graph->Find("of_far"), nullptr);
  EXPECT_EQ(Count(*parts[0].graph, "_Recv"), 1) << "that far has run, for who is to run after it";
  EXPECT_EQ(Count(*parts[1].graph, "_Send"), 1);
}

TEST_F(PartitionTest, AReferenceCrossesAsAValue) {
  Node* v = On(0, Add("Variable", "v"));
  On(1, Add("Work", "work", {v->output(0)}));
  const std::vector<Partition> parts = Partitioned();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].graph->Find("work")->input(0).dtype(), DType::kFloat);
}

// Where the session asks for it, floats that leave their task travel as the upper half of their bits.
TEST_F(PartitionTest, FloatsLoseBitsBetweenTasksWhenAsked) {
  const auto other = *DeviceName::Parse("/job:localhost/replica:0/task:1/device:CPU:0");
  for (const bool asked : {false, true}) {
    graph_ = std::make_unique<Graph>(&registry_);
    env_.devices.resize(2);
    env_.devices.push_back(other);
    env_.bfloat16_between_tasks = asked;
    Node* x = On(0, Add("Placeholder", "x"));
    x->set_device("/task:0/device:CPU:0");
    Node* n = Add("Count", "n");
    n->set_device("/task:0/device:CPU:0");
    for (const char* name : {"far", "far_too"}) Add("Work", name, {x->output(0)})->set_device("/task:1");
    Add("UseCount", "use", {n->output(0)})->set_device("/task:1");
    Add("Work", "near", {x->output(0)})->set_device("/task:0/device:CPU:1");
    const std::vector<Partition> parts = Partitioned();
    ASSERT_EQ(parts.size(), 3u);
    const Graph& from = *parts[0].graph;
    const Graph& near = *parts[1].graph;
    const Graph& far = *parts[2].graph;
    EXPECT_EQ(Count(from, "_HostCast"), asked ? 1 : 0);
    EXPECT_EQ(Count(far, "_HostCast"), asked ? 1 : 0);
    EXPECT_EQ(Count(near, "_HostCast"), 0);
    EXPECT_EQ(Count(far, "_Recv"), 2);  // one for each tensor, however many read it
    EXPECT_EQ(far.Find("far")->input(0), far.Find("far_too")->input(0));
    EXPECT_EQ(far.Find("use")->input(0).node->op_name(), "_Recv");
    if (!asked) continue;
    const Node& widen = *far.Find("far")->input(0).node;
    EXPECT_EQ(widen.output_type(0), DType::kFloat);
    EXPECT_EQ(widen.input(0).node->output_type(0), DType::kBFloat16);
    EXPECT_EQ(widen.input(0).node->op_name(), "_Recv");
  }
}

TEST_F(PartitionTest, ANodeMaySayWhetherItsOutputsLoseBits) {
  Node* lossy = On(0, Add("Placeholder", "lossy", {}, {}, {{"_bfloat16_sendrecv", true}}));
  Node* exact = On(0, Add("Placeholder", "exact"));
  On(1, Add("Join", "join", {lossy->output(0), exact->output(0)}));
  const std::vector<Partition> parts = Partitioned();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].graph->Find("join")->input(0).node->op_name(), "_HostCast");
  EXPECT_EQ(parts[1].graph->Find("join")->input(1).node->op_name(), "_Recv");
}

TEST_F(PartitionTest, ANodeMayKeepItsBits) {
  env_.devices[1] = *DeviceName::Parse("/job:localhost/replica:0/task:1/device:CPU:0");
  env_.bfloat16_between_tasks = true;
  Node* x = Add("Placeholder", "x", {}, {}, {{"_bfloat16_sendrecv", false}});
  x->set_device("/task:0");
  Add("Work", "far", {x->output(0)})->set_device("/task:1");
  const std::vector<Partition> parts = Partitioned();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(Count(*parts[0].graph, "_HostCast"), 0);
}

}  // namespace
}  // namespace millrace
