// SPDX-License-Identifier: Apache-2.0
// A few ops, and graphs of them, for the tests of this folder: it does not know src/ops.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "passes/pipeline.h"

namespace millrace {

class PassTest : public ::testing::Test {
 protected:
  PassTest() {
    const auto any = [](ShapeContext&) { return absl::OkStatus(); };
    const auto add = [&](const char* schema, std::initializer_list<OpTrait> traits = {}) {
      registry_.Add(schema).Traits(traits).Shape(any);
    };
    add("Const() -> (output:dtype) | value:tensor; dtype:type", {OpTrait::kConstant});
    add("Placeholder() -> (output:f32)", {OpTrait::kPlaceholder});
    add("Identity(input:T) -> (output:T) | T:type", {OpTrait::kPassesOn});
    add("ShapeOf(input:T) -> (output:i32) | T:type", {OpTrait::kReadsShape});
    add("NoOp() -> ()", {OpTrait::kDoesNothing});
    add("Work(x:f32) -> (y:f32) | kind:int=0");
    add("Join(x:f32, y:f32) -> (z:f32)");
    add("Random(x:f32) -> (y:f32) | | S");
    add("Variable() -> (ref:&f32) | | S", {OpTrait::kMakesVariable});
    add("Assign(ref:&f32, value:f32) -> (output_ref:&f32)");
    add("_Arg() -> (output:T) | T:type; index:int>=0 | S", {OpTrait::kArgument});
    add("_Retval(input:T) -> () | T:type; index:int>=0 | S", {OpTrait::kResult});
    add("_Send(tensor:T) -> () | T:type; tensor_name:string; send_device:string; send_device_incarnation:int; "
        "recv_device:string; client_terminated:bool=false | S",
        {OpTrait::kTransfer});
    add("_Recv() -> (tensor:tensor_type) | tensor_type:type; tensor_name:string; send_device:string; "
        "send_device_incarnation:int; recv_device:string; client_terminated:bool=false | S",
        {OpTrait::kTransfer, OpTrait::kWaits});
    EXPECT_TRUE(registry_.status().ok()) << registry_.status();
    graph_ = std::make_unique<Graph>(&registry_);
    for (int i : {0, 1}) {
      env_.devices.push_back(*DeviceName::Parse(absl::StrCat("/job:localhost/replica:0/task:0/device:CPU:", i)));
      env_.incarnations.push_back(static_cast<uint64_t>(i) + 7);
    }
    env_.has_kernel = [](const Node&, const std::string&) { return true; };
    env_.cost_of = [](const Node& n, const std::string&) {
      const auto of_idle = {OpTrait::kPlaceholder, OpTrait::kMakesVariable, OpTrait::kTransfer, OpTrait::kDoesNothing};
      const bool idle = std::any_of(of_idle.begin(), of_idle.end(), [&](OpTrait t) { return n.Is(t); });
      return idle ? &NoCost : &ElementCost;
    };
  }

  Node* Add(const char* op, const char* name, std::vector<Output> inputs = {}, std::vector<Node*> control = {},
            AttrMap attrs = {}) {
    auto node = graph_->AddNode(
        {.name = name,
         .op = op,
         .inputs = std::move(inputs),
         .control_inputs = std::move(control),
         .attrs = std::move(attrs)});
    EXPECT_TRUE(node.ok()) << node.status();
    return node.ok() ? *node : nullptr;
  }
  Node* On(int device, Node* n) {
    n->set_device(absl::StrCat("/device:CPU:", device));
    return n;
  }
  std::string Device(size_t i) const { return env_.devices[i].ToString(); }
  static int64_t Count(const Graph& graph, absl::string_view op) {
    return std::count_if(
        graph.nodes().begin(), graph.nodes().end(), [op](const Node* n) { return n->op_name() == op; });
  }

  OpRegistry registry_;
  std::unique_ptr<Graph> graph_;
  PassEnvironment env_;
};

}  // namespace millrace
