// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "passes/pass_testutil.h"

namespace millrace {
namespace {

class FuseTest : public PassTest {
 protected:
  FuseTest() {
    const auto any = [](ShapeContext&) { return absl::OkStatus(); };
    for (const char* schema :
         {"Conv2D(input:f32, filter:f32) -> (output:f32) | data_format:string=\"NHWC\"",
          "_FusedConv2D(input:f32, filter:f32, args:num_args*f32) -> (output:f32) | data_format:string=\"NHWC\"; "
          "num_args:int>=0; fused_ops:list(string)=[]; epsilon:float=0.0001; fused_names:list(string)=[]",
          "DepthwiseConv2dNative(input:f32, filter:f32) -> (output:f32) | data_format:string=\"NHWC\"",
          "MatMul(a:f32, b:f32) -> (product:f32)",
          "_FusedMatMul(a:f32, b:f32, args:num_args*f32) -> (product:f32) | num_args:int>=0; "
          "fused_ops:list(string)=[]; epsilon:float=0.0001; fused_names:list(string)=[]",
          "BiasAdd(value:f32, bias:f32) -> (output:f32) | data_format:string=\"NHWC\"",
          "FusedBatchNorm(x:f32, scale:f32, offset:f32, mean:f32, variance:f32) -> (y:f32, m:f32) | "
          "data_format:string=\"NHWC\"; is_training:bool=true; epsilon:float=0.5",
          "Add(x:f32, y:f32) -> (z:f32)", "Relu(x:f32) -> (y:f32)"}) {
      registry_.Add(schema).Shape(any);
    }
    EXPECT_TRUE(registry_.status().ok()) << registry_.status();
    for (int i = 0; i < 5; ++i) in_.push_back(Add("Placeholder", absl::StrCat("in", i).c_str())->output(0));
  }
  Node* Conv(const char* name) { return Add("Conv2D", name, {in_[0], in_[1]}); }
  Node* Norm(const char* name, Node* x, bool training = false) {
    return Add("FusedBatchNorm", name, {x->output(0), in_[1], in_[2], in_[3], in_[4]}, {}, {{"is_training", training}});
  }
  Node* Read(Node* x) { return Add("Random", absl::StrCat("read_", x->name()).c_str(), {x->output(0)}); }
  // Names and parts of what there is after the pass.
  std::vector<std::string> Fused() {
    Partition p;
    p.device = env_.devices.front().ToString();
    p.graph = std::move(graph_);
    EXPECT_TRUE(Fuse(p, env_, &notes_).ok());
    graph_ = std::move(p.graph);
    std::vector<std::string> found;
    for (const Node* n : graph_->nodes()) {
      if (!absl::StartsWith(n->op_name(), "_Fused")) continue;
      const auto ops = n->Attr<std::vector<std::string>>("fused_ops");
      found.push_back(absl::StrCat(n->name(), ":", ops.ok() ? absl::StrJoin(*ops, "+") : ops.status().ToString()));
    }
    return found;
  }
  std::vector<Output> in_;
  std::vector<std::string> notes_;
};
using Strings = std::vector<std::string>;

TEST_F(FuseTest, AllPartsInOrder) {
  Node* conv = Conv("conv");
  Node* bias = Add("BiasAdd", "bias", {conv->output(0), in_[2]});
  Node* norm = Norm("norm", bias);
  Node* sum = Add("Add", "sum", {in_[3], norm->output(0)});
  Node* relu = Add("Relu", "relu", {sum->output(0)});
  Node* read = Read(relu);
  EXPECT_EQ(Fused(), Strings{"relu:BiasAdd+FusedBatchNorm+Add+Relu"});
  const Node* fused = graph_->Find("relu");
  ASSERT_EQ(fused->num_inputs(), 8);
  for (int i : {0, 1, 2}) EXPECT_EQ(fused->input(i), in_[static_cast<size_t>(i)]);
  EXPECT_EQ(fused->input(7), in_[3]);
  EXPECT_EQ(*fused->Attr<float>("epsilon"), 0.5f);
  EXPECT_EQ(read->input(0).node, fused);
  EXPECT_EQ(graph_->Find("conv"), nullptr);
  EXPECT_EQ(notes_.size(), 1u);
}

TEST_F(FuseTest, TheLaterConvolutionTakesInTheSum) {
  Node* first = Norm("first_norm", Conv("first"));
  Node* second = Norm("second_norm", Conv("second"));
  Read(Add("Add", "sum", {first->output(0), second->output(0)}));
  EXPECT_EQ(Fused(), (Strings{"sum:FusedBatchNorm+Add", "first_norm:FusedBatchNorm"}));
  EXPECT_EQ(graph_->Find("sum")->input(6).node, graph_->Find("first_norm"));
}

TEST_F(FuseTest, WhatIsReadElsewhereStays) {
  Node* conv = Conv("conv");
  Read(conv);
  Read(Add("Relu", "relu", {conv->output(0)}));
  EXPECT_EQ(Fused(), Strings{});
}

TEST_F(FuseTest, AddedToItself) {
  Node* conv = Conv("conv");
  Read(Add("Add", "twice", {conv->output(0), conv->output(0)}));
  EXPECT_EQ(Fused(), Strings{});
}

TEST_F(FuseTest, TrainingAndMomentsThatAreReadStay) {
  Read(Norm("training", Conv("conv"), true));
  Node* norm = Norm("norm", Conv("conv2"));
  Read(norm);
  Add("Random", "moment", {norm->output(1)});
  EXPECT_EQ(Fused(), Strings{});
}

TEST_F(FuseTest, ReferencesStay) {
  Node* variable = Add("Variable", "variable");
  Node* conv = Add("Conv2D", "conv", {in_[0], variable->output(0)});
  Read(Add("Relu", "relu", {conv->output(0)}));
  EXPECT_EQ(Fused(), Strings{});
}

TEST_F(FuseTest, WhoIsWaitedForStays) {
  Node* conv = Conv("conv");
  Read(Add("Relu", "relu", {conv->output(0)}));
  Add("NoOp", "after", {}, {conv});
  EXPECT_EQ(Fused(), Strings{});
}

TEST_F(FuseTest, ControlEdgesOfTheLastAreKept) {
  Node* before = Add("NoOp", "before");
  Node* conv = Conv("conv");
  Node* relu = Add("Relu", "relu", {conv->output(0)}, {before});
  Read(relu);
  Node* after = Add("NoOp", "after", {}, {relu});
  EXPECT_EQ(Fused(), Strings{"relu:Relu"});
  ASSERT_EQ(after->control_inputs().size(), 1u);
  EXPECT_EQ(after->control_inputs()[0]->op_name(), "_FusedConv2D");
  EXPECT_EQ(after->control_inputs()[0]->control_inputs(), std::vector<Node*>{before});
}

TEST_F(FuseTest, AnotherLayoutAndAnotherDeviceStay) {
  Node* conv = Conv("conv");
  Read(Add("BiasAdd", "bias", {conv->output(0), in_[2]}, {}, {{"data_format", std::string("NCHW")}}));
  Node* conv2 = Conv("conv2");
  conv2->set_assigned_device("/device:CPU:1");
  Read(Add("Relu", "relu", {conv2->output(0)}));
  EXPECT_EQ(Fused(), Strings{});
}

TEST_F(FuseTest, Products) {
  Node* product = Add("MatMul", "product", {in_[0], in_[1]});
  Node* bias = Add("BiasAdd", "bias", {product->output(0), in_[2]});
  Node* sum = Add("Add", "sum", {bias->output(0), in_[3]});
  Read(Add("Relu", "relu", {sum->output(0)}));
  EXPECT_EQ(Fused(), Strings{"relu:BiasAdd+Add+Relu"});
  EXPECT_EQ(graph_->Find("relu")->op_name(), "_FusedMatMul");
}

TEST_F(FuseTest, ProductsAreNoImages) {
  Read(Norm("norm", Add("MatMul", "product", {in_[0], in_[1]})));
  EXPECT_EQ(Fused(), Strings{});
}

TEST_F(FuseTest, NobodyWaitsWhoDidNot) {
  registry_.Add("Wait() -> (x:f32)").Traits({OpTrait::kWaits}).Shape([](ShapeContext&) { return absl::OkStatus(); });
  const Output late = Add("Relu", "late", {Add("Wait", "wait")->output(0)})->output(0);
  Node* early = Add("BiasAdd", "bias", {Conv("early")->output(0), in_[2]});
  Read(Add("Add", "sum", {early->output(0), late}));
  Node* both = Add("Conv2D", "both", {late, in_[1]});
  Read(Add("Add", "sum2", {both->output(0), late}));
  EXPECT_EQ(Fused(), (Strings{"sum2:Add", "bias:BiasAdd"}));
}

TEST_F(FuseTest, WithoutAKernelOrAnOp) {
  Read(Add("Relu", "relu", {Conv("conv")->output(0)}));
  Read(Add("Relu", "relu2", {Add("DepthwiseConv2dNative", "d", {in_[0], in_[1]})->output(0)}));
  env_.has_kernel = [](const Node&, const std::string&) { return false; };
  EXPECT_EQ(Fused(), Strings{});
  EXPECT_NE(graph_->Find("conv"), nullptr);
}

}  // namespace
}  // namespace millrace
