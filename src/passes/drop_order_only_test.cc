// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "passes/pipeline.h"

namespace millrace {
namespace {

Status AnyShape(ShapeContext&) { return absl::OkStatus(); }

class DropOrderOnly : public ::testing::Test {
 protected:
  DropOrderOnly() {
    for (const char* schema : {"Source() -> (y:f32) | | S", "Work(x:f32) -> (y:f32)", "Effect(x:f32) -> (y:f32) | | S",
                               "NoOp() -> ()", "Switch(x:f32) -> (a:f32, b:f32)"}) {
      registry_.Add(schema).Shape(AnyShape);
    }
    registry_.Add("Check(x:f32) -> (y:f32)").Traits({OpTrait::kChecks}).Shape(AnyShape);
    registry_.Add("Write(x:f32) -> (flow:f32)").Traits({OpTrait::kKeepsState}).Shape(AnyShape);
    EXPECT_TRUE(registry_.status().ok()) << registry_.status();
    graph_ = std::make_unique<Graph>(&registry_);
    source_ = Add("Source", "source", {});
  }
  Node* Add(const char* op, const char* name, std::vector<Output> inputs, std::vector<Node*> control = {}) {
    NodeSpec spec;
    spec.op = op;
    spec.name = name;
    spec.inputs = std::move(inputs);
    spec.control_inputs = std::move(control);
    auto node = graph_->AddNode(std::move(spec));
    EXPECT_TRUE(node.ok()) << node.status();
    return node.ok() ? *node : nullptr;
  }
  bool Has(const char* name) const { return graph_->Find(name) != nullptr; }
  void Run() { EXPECT_TRUE(DropOrderOnlyWork(*graph_).ok()); }

  OpRegistry registry_;
  std::unique_ptr<Graph> graph_;
  Node* source_ = nullptr;
};

// The form that a tuple of gradients has.
TEST_F(DropOrderOnly, DropsAChainThatOnlyAGroupWaitsFor) {
  Node* first = Add("Work", "first", {source_->output(0)});
  Node* second = Add("Work", "second", {first->output(0)});
  Node* wanted = Add("Work", "wanted", {source_->output(0)});
  Node* group = Add("NoOp", "group", {}, {second, wanted});
  Add("Effect", "update", {wanted->output(0)}, {group});
  Run();
  EXPECT_FALSE(Has("first"));
  EXPECT_FALSE(Has("second"));
  EXPECT_TRUE(Has("wanted"));
  // The order with respect to what has effects stays.
  const auto& before = group->control_inputs();
  EXPECT_NE(std::find(before.begin(), before.end(), source_), before.end());
}

TEST_F(DropOrderOnly, KeepsWhatATargetGroups) {
  Node* work = Add("Work", "work", {source_->output(0)});
  Add("NoOp", "target", {}, {work});
  Run();
  EXPECT_TRUE(Has("work"));
}

TEST_F(DropOrderOnly, KeepsEffectsChecksAndBranches) {
  Node* effect = Add("Effect", "effect", {source_->output(0)});
  Node* check = Add("Check", "check", {source_->output(0)});
  Node* branch = Add("Switch", "branch", {source_->output(0)});
  Node* work = Add("Work", "in_branch", {branch->output(1)});
  Node* write = Add("Write", "write", {source_->output(0)});
  Node* group = Add("NoOp", "group", {}, {effect, check, work, write});
  Add("Effect", "after", {source_->output(0)}, {group});
  Run();
  EXPECT_TRUE(Has("write"));
  EXPECT_TRUE(Has("effect"));
  EXPECT_TRUE(Has("check"));
  EXPECT_TRUE(Has("in_branch"));
}

}  // namespace
}  // namespace millrace
