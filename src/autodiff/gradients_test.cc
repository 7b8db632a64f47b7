// SPDX-License-Identifier: Apache-2.0
#include "autodiff/gradients.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "graph/graph_def.h"

namespace millrace {
namespace {

Status LikeFirst(ShapeContext& c) { return UnchangedShape(c); }

// A few ops with the simplest gradients: this folder does not know src/ops.
const OpRegistry& Ops() {
  static const OpRegistry* registry = [] {
    auto* r = new OpRegistry;
    r->Add("Const() -> (output:dtype) | value:tensor; dtype:type")
        .Traits({OpTrait::kConstant})
        .Shape([](ShapeContext& c) -> Status {
          MR_ASSIGN_OR_RETURN(Tensor t, c.Attr<Tensor>("value"));
          c.set_output(0, t.shape());
          return absl::OkStatus();
        });
    r->Add("Placeholder() -> (output:dtype) | dtype:type; shape:shape=?").Shape([](ShapeContext& c) -> Status {
      MR_ASSIGN_OR_RETURN(PartialShape s, c.Attr<PartialShape>("shape"));
      c.set_output(0, s);
      return absl::OkStatus();
    });
    r->Add("OnesLike(x:T) -> (y:T) | T:type").Shape(LikeFirst);
    r->Add("ZerosLike(x:T) -> (y:T) | T:type").Shape(LikeFirst);
    r->Add("Neg(x:T) -> (y:T) | T:type").Shape(LikeFirst).Gradient([](GradContext& c) {
      c.set_dx(0, c.b().Neg(c.dy()));
      return c.status();
    });
    r->Add("Mul(x:T, y:T) -> (z:T) | T:type | C").Shape(LikeFirst).Gradient([](GradContext& c) {
      c.set_dx(0, c.b().Mul(c.dy(), c.x(1)));
      c.set_dx(1, c.b().Mul(c.dy(), c.x(0)));
      return c.status();
    });
    r->Add("AddN(inputs:N*T) -> (sum:T) | N:int>=1; T:type | CA").Shape(LikeFirst);
    r->Add("ConcatV2(values:N*T, axis:Tidx) -> (output:T) | N:int>=2; T:type; Tidx:type");
    r->Add(
        "StridedSlice(input:T, begin:Index, end:Index, strides:Index) -> (output:T) | T:type; Index:type; "
        "begin_mask:int=0; "
        "end_mask:int=0; ellipsis_mask:int=0; new_axis_mask:int=0; shrink_axis_mask:int=0");
    r->Add("UnsortedSegmentSum(data:T, segment_ids:I, num_segments:N) -> (output:T) | T:type; I:type; N:type");
    r->Add("Cast(x:SrcT) -> (y:DstT) | SrcT:type; DstT:type; Truncate:bool=false");
    r->Add("Two(x:T) -> (a:T, b:T) | T:type").Gradient([](GradContext& c) {
      EXPECT_EQ(c.num_outputs(), 2);
      c.set_dx(0, c.b().Mul(c.dy(0), c.dy(1)));
      return c.status();
    });
    r->Add("Rows(x:T, i:i32) -> (y:T) | T:type").Gradient([](GradContext& c) {
      c.set_dx(0, IndexedSlices{c.dy(), c.x(1), c.b().Vector<int32_t>({4, 2})});
      return c.status();
    });
    r->Add("NoOp() -> ()");
    r->Add("Floor(x:T) -> (y:T) | T:type").NotDifferentiable("flat");
    r->Add("Hard(x:T) -> (y:T) | T:type").NoGradient("nobody knows");
    r->Add("BadType(x:T) -> (y:T) | T:type").Gradient([](GradContext& c) {
      c.set_dx(0, c.b().Scalar<double>(1));
      return c.status();
    });
    r->Add("Merge(inputs:N*T) -> (output:T, value_index:i32) | T:type; N:int>=1");
    r->Add("Identity(input:T) -> (output:T) | T:type")
        .Traits({OpTrait::kPassesOn})
        .Shape(LikeFirst)
        .Gradient([](GradContext& c) {
          c.set_dx(0, c.dy());
          return c.status();
        });
    r->Add("Exit(data:T) -> (output:T) | T:type");
    return r;
  }();
  return *registry;
}

class GradientsTest : public ::testing::Test {
 protected:
  Output Input(const char* name, DType t = DType::kFloat) {
    return b_.WithName(name).Op("Placeholder", {}, {{"dtype", t}});
  }
  Output Apply(const char* op, std::initializer_list<Arg> in) {
    const Output o = b_.Op(op, in);
    EXPECT_TRUE(o) << b_.status();
    return o;
  }
  Status ErrorOf(Output y, Output x) { return AddGradients(GraphBuilder(&graph_), {y}, {x}).status(); }

  Graph graph_{&Ops()};
  GraphBuilder b_{&graph_};
};

TEST_F(GradientsTest, SumsOverPathsUnderNamedScopes) {
  const Output x = Input("x");
  const Output square = Apply("Mul", {x, x}), y = Apply("Neg", {square});
  auto g = AddGradients(b_, {y}, {x, square});
  ASSERT_TRUE(g.ok()) << g.status();
  ASSERT_TRUE((*g)[0].dense);
  EXPECT_EQ((*g)[0].dense.node->op_name(), "AddN");
  EXPECT_EQ((*g)[1].dense.node->op_name(), "Neg");
  EXPECT_EQ((*g)[1].dense.node->name(), "gradients/Neg_grad/Neg");
  EXPECT_NE(graph_.Find("gradients/grad_ys_0"), nullptr);
}

TEST_F(GradientsTest, GivenGradientsAndNoPath) {
  const Output x = Input("x"), z = Input("z"), seed = Input("seed");
  const Output y = Apply("Neg", {x});
  auto g = AddGradients(b_, {y, y}, {x, z, y}, {seed, Output()});
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ((*g)[0].dense.node->input(0), (*g)[2].dense);
  EXPECT_EQ((*g)[2].dense.node->op_name(), "AddN");
  EXPECT_TRUE((*g)[1].none());
}

TEST_F(GradientsTest, StopsAndCuts) {
  const Output x = Input("x"), a = Apply("Neg", {x}), y = Apply("Mul", {a, x});
  GradientOptions options;
  options.stop_gradients = {a};
  auto g = AddGradients(b_, {y}, {x, a}, {}, options);
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ((*g)[0].dense.node->op_name(), "Mul") << "only the direct path counts";
  EXPECT_TRUE((*g)[1].dense);
  auto none = AddGradients(b_, {Apply("Floor", {x})}, {x});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE((*none)[0].none());
}

TEST_F(GradientsTest, ZerosForUnusedOutputs) {
  const Output x = Input("x");
  Node* two = b_.OpNode("Two", {x});
  ASSERT_NE(two, nullptr);
  auto g = AddGradients(b_, {Apply("Neg", {two->output(1)})}, {x});
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ((*g)[0].dense.node->input(0).node->op_name(), "ZerosLike");
}

TEST_F(GradientsTest, KeepsSparseOnesSparse) {
  const Output x = Input("x"), i = Input("i", DType::kInt32);
  const Output r = Apply("Rows", {x, i});
  auto one = AddGradients(b_, {r}, {x});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_TRUE((*one)[0].sparse && !(*one)[0].dense);
  const Output vector = b_.Vector<int32_t>({1});
  auto two = AddGradients(b_, {Apply("Rows", {x, vector}), Apply("Rows", {x, vector})}, {x});
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ((*two)[0].sparse->values.node->op_name(), "ConcatV2");
  auto mixed = AddGradients(b_, {r, Apply("Neg", {x})}, {x});
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_EQ((*mixed)[0].dense.node->op_name(), "AddN");
}

TEST_F(GradientsTest, NamesTheOpThatCannot) {
  const Output x = Input("x"), n = Input("n", DType::kInt32);
  Status s = ErrorOf(Apply("Hard", {x}), x);
  EXPECT_EQ(s.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(s.message(), "nobody knows") && absl::StrContains(s.message(), "Hard"));
  EXPECT_EQ(ErrorOf(Apply("Neg", {n}), n).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf(Apply("BadType", {x}), x).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ErrorOf(Apply("Exit", {x}), x).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AddGradients(b_, {Apply("Neg", {x})}, {x}, {n}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AddGradients(b_, {Apply("Neg", {x})}, {x}, {x, x}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AddGradients(b_, {Output()}, {x}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(GradientsTest, OverridesByName) {
  const Output x = Input("x");
  const auto with_type = [&](const char* type) { return b_.Op("Hard", {x}, {{"_gradient_op_type", AttrValue(type)}}); };
  auto g = AddGradients(b_, {with_type("Neg")}, {x});
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ((*g)[0].dense.node->op_name(), "Neg");
  EXPECT_EQ(ErrorOf(with_type("Unheard"), x).code(), absl::StatusCode::kNotFound);
  GradientOptions options;
  options.custom["Unheard"] = [](GradContext& c) {
    c.set_dx(0, c.dy());
    return c.status();
  };
  g = AddGradients(b_, {with_type("Unheard")}, {x}, {}, options);
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ((*g)[0].dense.node->op_name(), "OnesLike");
}

TEST_F(GradientsTest, GoesThroughFunctionCalls) {
  wire::GraphDef def;
  ASSERT_TRUE(
      wire::DecodeText(
          "library { function { signature { name: 'F' input_arg { name: 'x' type: DT_FLOAT } "
          "output_arg { name: 'y' type: DT_FLOAT } } "
          "node_def { name: 'm' op: 'Mul' input: 'x' input: 'x' attr { key: 'T' value { type: "
          "DT_FLOAT } } } ret { key: 'y' value: "
          "'m:z:0' } } function { signature { name: 'G' input_arg { name: 'x' type: DT_FLOAT } "
          "output_arg { name: 'y' type: DT_FLOAT } } "
          "ret { key: 'y' value: 'x' } } function { signature { name: 'GGrad' input_arg { name: "
          "'x' type: DT_FLOAT } input_arg { name: "
          "'dy' type: DT_FLOAT } output_arg { name: 'dx' type: DT_FLOAT } } node_def { name: 'n' "
          "op: 'Neg' input: 'dy' attr { key: 'T' "
          "value { type: DT_FLOAT } } } ret { key: 'dx' value: 'n:y:0' } } gradient { "
          "function_name: 'G' gradient_func: 'GGrad' } }",
          &def)
          .ok());
  ASSERT_TRUE(ImportGraphDef(def, {}, &graph_).ok());
  const Output x = Input("x");
  auto g = AddGradients(b_, {Apply("F", {x})}, {x});
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ((*g)[0].dense.node->op_name(), "AddN");
  g = AddGradients(b_, {Apply("G", {x})}, {x});
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ((*g)[0].dense.node->op_name(), "GGrad");
}

TEST_F(GradientsTest, DeepGraphsDoNotRecurse) {
  const Output x = Input("x");
  Output y = x;
  for (int i = 0; i < 20000; ++i) y = b_.Neg(y);
  auto g = AddGradients(b_, {y}, {x});
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ(graph_.nodes().size(), 1u + 20000 + 1 + 20000);
}

}  // namespace
}  // namespace millrace
