// SPDX-License-Identifier: Apache-2.0
// The order of a partition's nodes.
#include "runtime/plan_graph.h"

#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "runtime/device_for_tests.h"

namespace millrace {
namespace {

class Nothing final : public Kernel {
 public:
  Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

class PlanGraphTest : public ::testing::Test {
 protected:
  PlanGraphTest() {
    const auto any = [](ShapeContext&) { return absl::OkStatus(); };
    registry_.Add("Make() -> (y:float)").Shape(any);
    registry_.Add("Work(x:float) -> (y:float)").Shape(any);
    registry_.Add("Variable() -> (v:&float) | | S").Shape(any);
    registry_.Add("Read(v:float) -> (y:float)").Shape(any);
    registry_.Add("Update(v:&float) -> (y:&float)").Shape(any);
    registry_.Add("UpdateBoth(v:&float, w:&float) -> ()").Shape(any);
    registry_.Add("Print(x:float) -> () | | S").Shape(any);
    registry_.Add("_Arg() -> (v:&float)").Shape(any);
    registry_.Add("_Send(tensor:float) -> () | | S").Traits({OpTrait::kTransfer}).Shape(any);
  }
  Output Add(const char* op, std::vector<Output> inputs, std::vector<Node*> controls = {}) {
    auto node = graph_.AddNode(
        {.name = absl::StrCat(op, graph_.nodes().size()),
         .op = op,
         .inputs = std::move(inputs),
         .control_inputs = std::move(controls)});
    EXPECT_TRUE(node.ok()) << node.status();
    return {*node, 0};
  }
  std::vector<std::string> Order() {
    const auto read = PlanGraph::Read(graph_, &device_, [](const Node&) { return std::make_shared<Nothing>(); });
    EXPECT_TRUE(read.ok()) << read.status();
    std::vector<std::string> names;
    for (const PlannedNode& n : (*read)->nodes) names.push_back(std::string(n.info.name));
    return names;
  }

  // "1 1 2": of the nodes that use one.
  std::string States() {
    const auto read = PlanGraph::Read(graph_, &device_, [](const Node&) { return std::make_shared<Nothing>(); });
    EXPECT_TRUE(read.ok()) << read.status();
    std::vector<int> states;
    for (const PlannedNode& n : (*read)->nodes) {
      if (n.state_use != StateUse::kNone && n.info.op->name != "Variable") states.push_back(n.state);
    }
    return absl::StrJoin(states, " ");
  }

  OpRegistry registry_;
  Graph graph_{&registry_};
  TestDevice device_;
};

TEST_F(PlanGraphTest, NodesStandAsTheyWereMade) {
  const Output x = Add("Make", {});
  Add("Work", {x});
  Add("Make", {});
  EXPECT_EQ(Order(), (std::vector<std::string>{"Make0", "Work1", "Make2"}));
}

// Another device waits for what is sent, so what is not needed for it comes after.
TEST_F(PlanGraphTest, WhatIsSentComesBeforeOtherWork) {
  const Output x = Add("Make", {});
  const Output work = Add("Work", {x});
  Add("Work", {work});
  const Output early = Add("Make", {});
  const Output sent = Add("Work", {x}, {early.node});
  Add("_Send", {sent});
  EXPECT_EQ(Order(), (std::vector<std::string>{"Make0", "Make3", "Work4", "_Send5", "Work1", "Work2"}));
}

TEST_F(PlanGraphTest, WhatIsSentPassesNoUpdateAndNoReadBeforeAnUpdate) {
  const Output v = Add("Variable", {});
  const Output read = Add("Read", {v});
  Add("Work", {read});
  Add("Update", {v});
  Add("_Send", {Add("Read", {v})});
  EXPECT_EQ(Order(), (std::vector<std::string>{"Variable0", "Read1", "Update3", "Read4", "_Send5", "Work2"}));
}

TEST_F(PlanGraphTest, WhatIsSentPassesReadsThatNoUpdateFollows) {
  const Output v = Add("Variable", {});
  Add("Work", {Add("Read", {v})});
  Add("_Send", {Add("Read", {v})});
  EXPECT_EQ(Order(), (std::vector<std::string>{"Variable0", "Read3", "_Send4", "Read1", "Work2"}));
}

TEST_F(PlanGraphTest, WhatIsSentPassesUpdatesOfOtherStates) {
  const Output v = Add("Variable", {}), w = Add("Variable", {});
  Add("Work", {Add("Read", {w})});
  Add("Update", {w});
  Add("Update", {v});
  Add("_Send", {Add("Read", {v})});
  EXPECT_EQ(
      Order(),
      (std::vector<std::string>{"Variable0", "Update5", "Read6", "_Send7", "Variable1", "Read2", "Work3", "Update4"}));
}

TEST_F(PlanGraphTest, StatesAreToldApart) {
  const Output v = Add("Variable", {}), w = Add("Variable", {});
  Add("Print", {Add("Read", {Add("Update", {v})})});
  Add("Update", {w});
  Add("Update", {v});
  EXPECT_EQ(States(), "1 1 2 0 1");
}

TEST_F(PlanGraphTest, StatesThatOneNodeTakesAreOne) {
  const Output v = Add("Variable", {}), w = Add("Variable", {}), other = Add("Variable", {});
  Add("Read", {w});
  Add("UpdateBoth", {v, w});
  Add("Read", {other});
  EXPECT_EQ(States(), "1 1 3");
}

TEST_F(PlanGraphTest, AHandleFromOutsideMayLeadToAnyState) {
  const Output v = Add("Variable", {}), w = Add("Variable", {});
  for (const Output handle : {v, w, Add("_Arg", {})}) Add("Update", {handle});
  EXPECT_EQ(States(), "1 1 1");
}

}  // namespace
}  // namespace millrace
