// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "passes/pipeline.h"

namespace millrace {
namespace {

Status AnyShape(ShapeContext&) { return absl::OkStatus(); }

class FoldConstantsTest : public ::testing::Test {
 protected:
  FoldConstantsTest() {
    registry_.Add("Const() -> (output:dtype) | value:tensor; dtype:type").Traits({OpTrait::kConstant}).Shape(AnyShape);
    registry_.Add("Source() -> (y:f32) | | S").Shape(AnyShape);
    registry_.Add("Double(x:f32) -> (y:f32)").Shape(AnyShape);
    registry_.Add("Use(x:f32) -> (y:f32) | | S").Shape(AnyShape);
    registry_.Add("NoOp() -> ()").Traits({OpTrait::kDoesNothing}).Shape(AnyShape);
    EXPECT_TRUE(registry_.status().ok()) << registry_.status();
    graph_ = std::make_unique<Graph>(&registry_);
    env_.evaluate = [this](const Node&, const std::vector<Tensor>& in, auto) -> StatusOr<std::vector<Tensor>> {
      ++evaluated_;
      return std::vector<Tensor>{Tensor::Scalar(2 * *in[0].data<float>())};
    };
  }
  Node* Add(const char* op, const char* name, std::vector<Output> inputs = {}, std::vector<Node*> control = {}) {
    NodeSpec spec;
    spec.op = op;
    spec.name = name;
    spec.inputs = std::move(inputs);
    spec.control_inputs = std::move(control);
    if (spec.op == "Const") spec.attrs = {{"value", Tensor::Scalar(3.0f)}, {"dtype", DType::kFloat}};
    auto node = graph_->AddNode(std::move(spec));
    EXPECT_TRUE(node.ok()) << node.status();
    return node.ok() ? *node : nullptr;
  }
  Status Fold() {
    return FoldConstants(*graph_, env_, [this] { return keep_going_; });
  }
  void Run() { EXPECT_TRUE(Fold().ok()); }

  OpRegistry registry_;
  std::unique_ptr<Graph> graph_;
  PassEnvironment env_;
  Status keep_going_;
  int evaluated_ = 0;
};

TEST_F(FoldConstantsTest, FoldsAChain) {
  Node* c = Add("Const", "c");
  Node* first = Add("Double", "first", {c->output(0)});
  Node* second = Add("Double", "second", {first->output(0)});
  Node* use = Add("Use", "use", {second->output(0)});
  Run();
  EXPECT_EQ(evaluated_, 2);
  ASSERT_EQ(use->input(0).node->op_name(), "Const");
  EXPECT_EQ(*use->input(0).node->Attr<Tensor>("value")->data<float>(), 12.0f);
  EXPECT_EQ(graph_->Find("c"), nullptr);
  EXPECT_EQ(graph_->Find("first"), nullptr);
  EXPECT_EQ(graph_->nodes().size(), 2u);  // no constant is left that nobody reads
}

// They may be large: the initial values of a model's weights.
TEST_F(FoldConstantsTest, KeepsNoValueOnTheWay) {
  std::vector<Tensor> alive;
  const auto evaluate = env_.evaluate;
  env_.evaluate = [&](const Node& n, const std::vector<Tensor>& in, absl::FunctionRef<Status()> keep_going) {
    auto made = evaluate(n, in, keep_going);
    alive.insert(alive.end(), made->begin(), made->end());
    int elsewhere = 0;
    for (const Tensor& t : alive) elsewhere += !t.OwnsBufferAlone();
    EXPECT_LE(elsewhere, 2) << n.name();  // what this node reads, and what it makes
    return made;
  };
  for (const char* chain : {"a", "b"}) {
    Output value = Add("Const", chain)->output(0);
    for (int i = 0; i < 4; ++i) value = Add("Double", absl::StrCat(chain, i).c_str(), {value})->output(0);
    if (*chain == 'a') Add("Double", "last", {value});
  }
  Run();
  EXPECT_EQ(evaluated_, 9);
}

// A kernel says only that it was left in the middle; why, says who was asked.
TEST_F(FoldConstantsTest, EndsWhenItMayNotGoOn) {
  Node* c = Add("Const", "c");
  Node* first = Add("Double", "first", {c->output(0)});
  Add("Double", "second", {first->output(0)});
  const auto evaluate = env_.evaluate;
  env_.evaluate = [&](const Node& n, const std::vector<Tensor>& in,
                      absl::FunctionRef<Status()> keep_going) -> StatusOr<std::vector<Tensor>> {
    keep_going_ = DeadlineExceeded("late");
    EXPECT_EQ(keep_going(), keep_going_);
    evaluate(n, in, keep_going).IgnoreError();
    return Cancelled("the step was stopped");
  };
  EXPECT_EQ(Fold(), DeadlineExceeded("late"));
  EXPECT_EQ(evaluated_, 1);
  EXPECT_EQ(Fold(), DeadlineExceeded("late"));
  EXPECT_EQ(evaluated_, 1) << "none is begun";
}

// The form that a tuple of gradients has.
TEST_F(FoldConstantsTest, FoldsWhatWaitsForConstantsOnly) {
  Node* c = Add("Const", "c");
  Node* first = Add("Double", "first", {c->output(0)});
  Node* group = Add("NoOp", "group", {}, {first, c});
  Node* second = Add("Double", "second", {first->output(0)}, {group});
  Node* use = Add("Use", "use", {second->output(0)});
  Run();
  EXPECT_EQ(use->input(0).node->op_name(), "Const");
  EXPECT_EQ(graph_->Find("first"), nullptr);
  EXPECT_EQ(graph_->Find("second"), nullptr);
}

TEST_F(FoldConstantsTest, KeepsWhatWaitsForSomething) {
  Node* c = Add("Const", "c");
  Node* source = Add("Source", "source");
  Node* group = Add("NoOp", "group", {}, {source, c});
  Node* after = Add("Double", "after", {c->output(0)}, {group});
  Add("Use", "use", {after->output(0)});
  Run();
  EXPECT_EQ(evaluated_, 0);
  EXPECT_EQ(after->control_inputs(), std::vector<Node*>{group});
  EXPECT_EQ(group->control_inputs(), std::vector<Node*>{source});
}

}  // namespace
}  // namespace millrace
