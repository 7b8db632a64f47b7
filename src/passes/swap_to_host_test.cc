// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstring>

#include "absl/strings/str_join.h"
#include "graph/verify.h"
#include "passes/pass_testutil.h"

namespace millrace {
namespace {

constexpr int64_t kMany = 1 << 20;  // 4 MB

// CPU:1 plays a device with memory of its own.
class SwapToHostTest : public PassTest {
 protected:
  SwapToHostTest() {
    for (const char* op : {"_CopyToHost", "_CopyFromHost"}) {
      registry_.Add(absl::StrCat(op, "(input:T) -> (output:T) | T:type")).Shape([](ShapeContext&) {
        return absl::OkStatus();
      });
    }
    env_.own_memory = {false, true};
    env_.memory_limits = {0, 1 << 30};
    env_.memory_of = [](const Node& n, const std::string&) {
      const bool host = n.op_name() == "_CopyToHost";
      return ArgMemory{std::vector<bool>(static_cast<size_t>(n.num_inputs()), false),
                       std::vector<bool>(static_cast<size_t>(n.num_outputs()), host)};
    };
    env_.memory.by_hand = true;
  }
  Node* Made(const char* op, const std::string& name, std::vector<Output> inputs) {
    Node* n = Add(op, name.c_str(), std::move(inputs));
    n->set_shape(0, PartialShape::Of({kMany}));
    return n;
  }
  // f0 .. and back: g(i) reads g(i+1) and f(i).
  void Chain(int length) {
    Node* at = Made("Random", "x", {Made("Placeholder", "in", {})->output(0)});
    for (int i = 0; i < length; ++i) forward_.push_back(at = Made("Work", absl::StrCat("f", i), {at->output(0)}));
    for (int i = length - 1; i >= 0; --i) {
      backward_.push_back(
          at = Made("Join", absl::StrCat("g", i), {at->output(0), forward_[static_cast<size_t>(i)]->output(0)}));
    }
    std::reverse(backward_.begin(), backward_.end());
  }
  std::string Run(size_t device = 1) {
    std::vector<std::string> notes;
    partitions_.clear();
    partitions_.push_back({Device(device), std::move(graph_), {}});
    const Status s = SwapToHost(partitions_, env_, &notes);
    EXPECT_TRUE(s.ok()) << s;
    EXPECT_TRUE(VerifyGraph(graph()).ok()) << VerifyGraph(graph());
    return absl::StrJoin(notes, "\n");
  }
  const Graph& graph() const { return *partitions_[0].graph; }
  std::vector<Node*> forward_, backward_;
  std::vector<Partition> partitions_;
};

TEST_F(SwapToHostTest, AMarkedInputWaitsOnTheHost) {
  Chain(20);
  backward_[0]->SetAttr("_swap_to_host", std::vector<int64_t>{1});
  const std::string note = Run();
  Node* const in = backward_[0]->input(1).node;
  ASSERT_EQ(in->op_name(), "_CopyFromHost");
  ASSERT_EQ(in->input(0).node->op_name(), "_CopyToHost");
  EXPECT_EQ(in->input(0).node->input(0), forward_[0]->output(0));
  EXPECT_EQ(forward_[1]->input(0), forward_[0]->output(0));
  // It comes back shortly before it is read, and what runs ahead waits until it has gone.
  ASSERT_EQ(in->control_inputs().size(), 1u);
  EXPECT_EQ(in->control_inputs()[0]->name()[0], 'g');
  ASSERT_EQ(in->input(0).node->control_outputs().size(), 1u);
  EXPECT_EQ(in->input(0).node->control_outputs()[0]->name()[0], 'f');
  EXPECT_NE(note.find("1 values wait in host memory"), note.npos) << note;
}

TEST_F(SwapToHostTest, ReadersOfOneValueShareItsCopies) {
  Chain(20);
  Node* other = Made("Join", "other", {backward_[1]->output(0), forward_[0]->output(0)});
  backward_[0]->SetAttr("_swap_to_host", int64_t{1});
  other->SetAttr("_swap_to_host", int64_t{1});
  Run();
  EXPECT_EQ(Count(graph(), "_CopyToHost"), 1);
  EXPECT_EQ(other->input(1), backward_[0]->input(1));
}

TEST_F(SwapToHostTest, AnInputThatIsNotThereIsAnError) {
  Chain(3);
  backward_[0]->SetAttr("_swap_to_host", std::vector<int64_t>{7});
  partitions_.push_back({Device(1), std::move(graph_), {}});
  const Status s = SwapToHost(partitions_, env_, nullptr);
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  EXPECT_NE(s.message().find("'g0'"), s.message().npos) << s;
}

TEST_F(SwapToHostTest, NothingMovesWhereMemoryIsTheHosts) {
  Chain(20);
  backward_[0]->SetAttr("_swap_to_host", std::vector<int64_t>{1});
  Run(0);
  EXPECT_EQ(Count(graph(), "_CopyToHost"), 0);
}

TEST_F(SwapToHostTest, ByCostAsMuchGoesAsHasNoRoom) {
  env_.memory = {.swap_by_cost = true};
  Chain(20);
  env_.memory_limits[1] = 16 * 4 * kMany;  // nine tenths of it are for values
  const std::string note = Run();
  double before = 0, after = 0;
  int count = 0;
  const char* const numbers = std::strstr(note.c_str(), "CPU:1 ");
  ASSERT_NE(numbers, nullptr) << note;
  ASSERT_EQ(std::sscanf(numbers, "CPU:1 %lf MB, then %lf MB", &before, &after), 2) << note;
  ASSERT_EQ(std::sscanf(note.c_str(), "%d values", &count), 1) << note;
  EXPECT_GT(before, 20 * 4.1);
  EXPECT_LT(after, before - 3.9 * 4.1);  // the last ones leave just before the peak
  EXPECT_GE(count, 6);
  EXPECT_LE(count, 10);
}

TEST_F(SwapToHostTest, ByCostNothingMovesWhereThereIsRoom) {
  env_.memory = {.swap_by_cost = true};
  Chain(20);
  EXPECT_EQ(Run(), "");
}

}  // namespace
}  // namespace millrace
