// SPDX-License-Identifier: Apache-2.0
#include "graph/function_call.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "graph/graph_def.h"
#include "graph/test_ops.h"
#include "graph/verify.h"

namespace millrace {
namespace {

constexpr absl::string_view kFunctions =
    // Outer(x) = Sum3(x, x, Inner(x)); Inner(x) = x * x
    "library { function { signature { name: 'Inner' input_arg { name: 'x' type_attr: 'T' } output_arg { name: 'y' type_attr: "
    "'T' } attr { name: 'T' type: 'type' } } node_def { name: 'm' op: 'Mul' input: 'x' input: 'x' attr { key: 'T' value { "
    "placeholder: 'T' } } } node_def { name: 'unused' op: 'Identity' input: 'x' attr { key: 'T' value { placeholder: 'T' } } } "
    "ret { key: 'y' value: 'm:z:0' } } "
    "function { signature { name: 'Outer' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } "
    "output_arg { name: 'same' type: DT_FLOAT } } node_def { name: 'i' op: 'Inner' input: 'x' attr { key: 'T' value { type: "
    "DT_FLOAT } } } node_def { name: 'l' op: 'IdentityN' input: 'x' input: 'i:y:0' attr { key: 'T' value { list { type: "
    "DT_FLOAT type: DT_FLOAT } } } } node_def { name: 's' op: 'AddN' input: 'l:output' input: 'x' attr { key: 'T' value { type: "
    "DT_FLOAT } } attr { key: 'N' value { i: 3 } } } ret { key: 'y' value: 's:sum:0' } ret { key: 'same' value: 'x' } } } ";

class FunctionCallTest : public ::testing::Test {
 protected:
  void Import(const std::string& text) {
    wire::GraphDef def;
    ASSERT_TRUE(wire::DecodeText(text, &def).ok()) << text;
    const Status s = ImportGraphDef(def, {}, &graph_).status();
    ASSERT_TRUE(s.ok()) << s;
  }
  Graph graph_{&TestOps()};
  GraphBuilder b_{&graph_};
};

TEST_F(FunctionCallTest, ExpandsNestedCalls) {
  Import(std::string(kFunctions));
  const Output x = TestInput(b_, "x", DType::kFloat, PartialShape::Of({2}));
  Node* call = b_.WithName("call").OpNode("Outer", {x});
  ASSERT_NE(call, nullptr) << b_.status();
  const Output y = b_.WithName("y").Identity(call->output(0)), same = b_.WithName("same").Identity(call->output(1));
  Node* after = b_.WithName("after").WithControl({call}).OpNode("NoOp", {});
  ASSERT_TRUE(b_.status().ok());
  const Status s = InlineCalls(graph_, &graph_);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(graph_.Find("call"), nullptr);
  EXPECT_EQ(y.node->input(0).ToString(), "call/s:0");
  EXPECT_EQ(same.node->input(0), x);
  const Node* list = graph_.Find("call/l");
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->input(1).ToString(), "call/i/m:0");
  EXPECT_EQ(graph_.Find("call/i/unused"), nullptr);
  EXPECT_EQ(graph_.Find("call/s")->input(0).ToString(), "call/l:0");
  EXPECT_EQ(graph_.Find("call/s")->input(1).ToString(), "call/l:1");
  ASSERT_EQ(after->control_inputs().size(), 1u);
  EXPECT_EQ(after->control_inputs()[0]->name(), "call/done");
  EXPECT_TRUE(VerifyGraph(graph_).ok()) << VerifyGraph(graph_);
}

TEST_F(FunctionCallTest, RefusesBrokenBodies) {
  const auto error = [&](absl::string_view node, absl::string_view ret) {
    Graph g(&TestOps());
    wire::GraphDef def;
    EXPECT_TRUE(wire::DecodeText(absl::StrCat("library { function { signature { name: 'F' input_arg { name: 'x' type: DT_FLOAT } "
                                              "output_arg { name: 'y' type: DT_FLOAT } } ", node, ret, " } }"), &def).ok());
    EXPECT_TRUE(ImportGraphDef(def, {}, &g).ok());
    GraphBuilder b(&g);
    const Output x = TestInput(b, "x", DType::kFloat);
    const int mark = g.num_node_ids();
    const Status s = InstantiateFunction({"F", {}, {x}, {}, "c", ""}, &g).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
    EXPECT_EQ(g.num_node_ids(), mark);
    return std::string(s.message());
  };
  constexpr absl::string_view kNode = "node_def { name: 'n' op: 'Identity' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }";
  EXPECT_TRUE(absl::StrContains(error(kNode, ""), "not returned"));
  EXPECT_TRUE(absl::StrContains(error(kNode, "ret { key: 'y' value: 'n:output:1' }"), "names no argument"));
  EXPECT_TRUE(absl::StrContains(error(kNode, "ret { key: 'y' value: 'n:wrong:0' }"), "names no argument"));
  EXPECT_TRUE(absl::StrContains(error("node_def { name: 'n' op: 'Identity' input: 'zzz' attr { key: 'T' value { type: DT_FLOAT } } }",
                                      "ret { key: 'y' value: 'x' }"), "names no argument"));
  EXPECT_TRUE(absl::StrContains(error("node_def { name: 'n' op: 'Identity' input: 'x' attr { key: 'T' value { placeholder: 'Q' } } }",
                                      "ret { key: 'y' value: 'x' }"), "does not give attribute 'Q'"));
  EXPECT_TRUE(absl::StrContains(error("node_def { name: 'n' op: 'Shape' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }",
                                      "ret { key: 'y' value: 'n:output:0' }"), "the signature says float"));
  EXPECT_TRUE(absl::StrContains(error("node_def { name: 'x' op: 'NoOp' }", "ret { key: 'y' value: 'x' }"), "name of an argument"));
}

}  // namespace
}  // namespace millrace
