// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_testutil.h"

namespace millrace {
namespace {

// CPU:1 plays a device with memory of its own, on which Random reads and gives host memory.
class CopyBetweenMemoriesTest : public PassTest {
 protected:
  CopyBetweenMemoriesTest() {
    for (const char* op : {"_CopyToHost", "_CopyFromHost"}) {
      registry_.Add(absl::StrCat(op, "(input:T) -> (output:T) | T:type")).Shape([](ShapeContext&) {
        return absl::OkStatus();
      });
    }
    env_.own_memory = {false, true};
    env_.memory_of = [](const Node& n, const std::string&) {
      const bool host = n.Is(OpTrait::kArgument) || n.Is(OpTrait::kResult) || n.op_name() == "Random";
      return ArgMemory{std::vector<bool>(static_cast<size_t>(n.num_inputs()), host),
                       std::vector<bool>(static_cast<size_t>(n.num_outputs()), host)};
    };
  }
  Status Run(size_t device) {
    partition_ = {Device(device), std::move(graph_), {}};
    return CopyBetweenMemories(partition_, env_);
  }
  Partition partition_;
};

TEST_F(CopyBetweenMemoriesTest, OneCopyServesAllWhoWantTheValueThere) {
  Node* x = Add("Work", "x", {Add("Placeholder", "in")->output(0)});
  Node* a = Add("Random", "a", {x->output(0)});
  Node* b = Add("Random", "b", {x->output(0)});
  Node* c = Add("Join", "c", {a->output(0), x->output(0)});
  ASSERT_TRUE(Run(1).ok());
  EXPECT_EQ(Count(*partition_.graph, "_CopyToHost"), 1);
  EXPECT_EQ(Count(*partition_.graph, "_CopyFromHost"), 1);
  EXPECT_EQ(a->input(0), b->input(0));
  EXPECT_EQ(a->input(0).node->op_name(), "_CopyToHost");
  EXPECT_EQ(a->input(0).node->input(0), x->output(0));
  EXPECT_EQ(a->input(0).node->assigned_device(), Device(1));
  EXPECT_EQ(c->input(0).node->op_name(), "_CopyFromHost");
  EXPECT_EQ(c->input(1), x->output(0));  // where it is wanted
}

TEST_F(CopyBetweenMemoriesTest, AReferenceIsNoValue) {
  Node* v = Add("Variable", "v");
  Node* assign = Add("Assign", "assign", {v->output(0), Add("Placeholder", "x")->output(0)});
  Node* out = Add("_Retval", "out", {assign->output(0)}, {}, {{"T", DType::kFloat}, {"index", int64_t{0}}});
  ASSERT_TRUE(Run(1).ok());
  EXPECT_EQ(assign->input(0), v->output(0));
  EXPECT_EQ(out->input(0).node->op_name(), "_CopyToHost");  // of its value
  EXPECT_EQ(out->input(0).dtype(), DType::kFloat);
}

TEST_F(CopyBetweenMemoriesTest, NothingIsCopiedOnADeviceThatWorksOnHostMemory) {
  Node* a = Add("Random", "a", {Add("Placeholder", "in")->output(0)});
  Add("Work", "x", {a->output(0)});
  ASSERT_TRUE(Run(0).ok());
  EXPECT_EQ(partition_.graph->nodes().size(), 3u);
}

}  // namespace
}  // namespace millrace
