// SPDX-License-Identifier: Apache-2.0
#include "graph/inline_calls.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "graph/graph_def.h"
#include "graph/test_ops.h"
#include "graph/verify.h"

namespace millrace {
namespace {

constexpr absl::string_view kFunctions =
    // Outer(x) = Sum3(x, x, Inner(x)); Inner(x) = x * x
    "library { function { signature { name: 'Inner' input_arg { name: 'x' type_attr: 'T' } output_arg { name: 'y' "
    "type_attr: "
    "'T' } attr { name: 'T' type: 'type' } } node_def { name: 'm' op: 'Mul' input: 'x' input: 'x' attr { key: 'T' "
    "value { "
    "placeholder: 'T' } } } node_def { name: 'unused' op: 'Identity' input: 'x' attr { key: 'T' value { placeholder: "
    "'T' } } } "
    "ret { key: 'y' value: 'm:z:0' } } "
    "function { signature { name: 'Outer' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT "
    "} "
    "output_arg { name: 'same' type: DT_FLOAT } } node_def { name: 'i' op: 'Inner' input: 'x' attr { key: 'T' value { "
    "type: "
    "DT_FLOAT } } } node_def { name: 'l' op: 'IdentityN' input: 'x' input: 'i:y:0' attr { key: 'T' value { list { "
    "type: "
    "DT_FLOAT type: DT_FLOAT } } } } node_def { name: 's' op: 'AddN' input: 'l:output' input: 'x' attr { key: 'T' "
    "value { type: "
    "DT_FLOAT } } attr { key: 'N' value { i: 3 } } } ret { key: 'y' value: 's:sum:0' } ret { key: 'same' value: 'x' } "
    "} } ";

class InlineCallsTest : public ::testing::Test {
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

TEST_F(InlineCallsTest, ExpandsNestedCalls) {
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

// name(args) -> (results) with a body in the notation of GraphDef text. "x:f" is a float argument; results are
// "y:f=ref".
std::string Function(absl::string_view name, std::vector<std::string> args, std::vector<std::string> results,
                     absl::string_view nodes) {
  const auto type = [](char c) { return c == 'f' ? "DT_FLOAT" : c == 'i' ? "DT_INT32" : "DT_BOOL"; };
  std::string signature, ret;
  for (const std::string& a : args) {
    absl::StrAppend(&signature, " input_arg { name: '", a.substr(0, a.find(':')), "' type: ", type(a.back()), " }");
  }
  for (const std::string& r : results) {
    const size_t colon = r.find(':'), equals = r.find('=');
    absl::StrAppend(&signature, " output_arg { name: '", r.substr(0, colon), "' type: ", type(r[colon + 1]), " }");
    absl::StrAppend(&ret, " ret { key: '", r.substr(0, colon), "' value: '", r.substr(equals + 1), "' }");
  }
  return absl::StrCat(" function { signature { name: '", name, "'", signature, " } ", nodes, ret, " }");
}
std::string NodeText(absl::string_view name, absl::string_view op, std::vector<std::string> inputs,
                     absl::string_view type, absl::string_view more = "") {
  std::string text = absl::StrCat(" node_def { name: '", name, "' op: '", op, "'");
  for (const std::string& in : inputs) absl::StrAppend(&text, " input: '", in, "'");
  if (!type.empty()) absl::StrAppend(&text, " attr { key: 'T' value { type: ", type, " } }");
  return absl::StrCat(text, more, " }");
}
std::string ConstText(absl::string_view name, absl::string_view type, absl::string_view value) {
  return NodeText(
      name, "Const", {}, "",
      absl::StrCat(" attr { key: 'dtype' value { type: ", type,
                   " } } attr { key: 'value' value { tensor { dtype: ", type, " tensor_shape {} ", value, " } } }"));
}

const std::string& Library() {
  static const auto* text = new std::string(absl::StrCat(
      "library {", Function("Double", {"x:f"}, {"y:f=a:z:0"}, NodeText("a", "AddV2", {"x", "x"}, "DT_FLOAT")),
      Function("Five", {"x:f"}, {"y:f=c:output:0"}, ConstText("c", "DT_FLOAT", "float_val: 5")),
      Function("Acts", {"x:f"}, {"y:f=x"}, NodeText("e", "Effect", {"x"}, "")),
      Function("TwoResults", {"x:f"}, {"y:f=x", "z:f=x"}, ""),
      Function("IntResult", {"x:f"}, {"y:i=c:output:0"}, ConstText("c", "DT_INT32", "int_val: 1")),
      Function("Small", {"i:i", "x:f", "k:f"}, {"ok:b=l:z:0"},
               ConstText("n", "DT_INT32", "int_val: 10") + NodeText("l", "Less", {"i", "n:output:0"}, "DT_INT32")),
      Function("Step", {"i:i", "x:f", "k:f"}, {"i2:i=a:z:0", "x2:f=m:z:0", "k2:f=id:output:0"},
               ConstText("one", "DT_INT32", "int_val: 1") + NodeText("a", "AddV2", {"i", "one:output:0"}, "DT_INT32") +
                   NodeText("m", "Mul", {"x", "k"}, "DT_FLOAT") + NodeText("id", "Identity", {"k"}, "DT_FLOAT")),
      Function("WrongStep", {"i:i", "x:f", "k:f"}, {"i2:i=i", "x2:i=i", "k2:f=k"}, ""),
      Function("Always", {}, {"ok:b=c:output:0"}, ConstText("c", "DT_BOOL", "bool_val: true")),
      Function(
          "Nothing", {}, {}, ConstText("c", "DT_FLOAT", "float_val: 1") + NodeText("e", "Effect", {"c:output:0"}, "")),
      Function("ForBody", {"i:i", "x:f"}, {"y:f=a:z:0"}, NodeText("a", "AddV2", {"x", "x"}, "DT_FLOAT")), "}"));
  return *text;
}

class FormsTest : public InlineCallsTest {
 protected:
  void SetUp() override {
    Import(Library());
    x_ = TestInput(b_, "x", DType::kFloat, PartialShape::Of({2}));
    i_ = TestInput(b_, "i", DType::kInt32, PartialShape::Scalar());
    p_ = TestInput(b_, "p", DType::kBool, PartialShape::Scalar());
  }
  static AttrValue F(const char* name) { return FuncAttr{name, {}}; }
  static AttrValue Types(std::vector<DType> t) { return t; }
  Node* MakeIf(const char* then_branch, const char* else_branch, Output condition) {
    return b_.WithName("if").OpNode(
        "If", {condition, std::vector<Output>{x_}},
        {{"Tout", Types({DType::kFloat})}, {"then_branch", F(then_branch)}, {"else_branch", F(else_branch)}});
  }
  Node* MakeWhile(const char* body) {
    const Output k = TestInput(b_, "k", DType::kFloat, PartialShape::Scalar());
    return b_.WithName("loop").OpNode(
        "While", {std::vector<Output>{i_, x_, k}}, {{"cond", F("Small")}, {"body", F(body)}});
  }
  void Inline() {
    ASSERT_TRUE(b_.status().ok()) << b_.status();
    const Status s = InlineCalls(graph_, &graph_);
    ASSERT_TRUE(s.ok()) << s;
    const Status v = VerifyGraph(graph_);
    EXPECT_TRUE(v.ok()) << v;
    for (const Node* n : graph_.nodes()) EXPECT_FALSE(IsCall(graph_, *n)) << n->Describe();
  }
  std::string Error() {
    EXPECT_TRUE(b_.status().ok()) << b_.status();
    return std::string(InlineCalls(graph_, &graph_).message());
  }
  int Count(absl::string_view op) const {
    int n = 0;
    for (const Node* node : graph_.nodes()) n += node->op_name() == op;
    return n;
  }
  Output x_, i_, p_;
};

TEST_F(FormsTest, IfBecomesSwitchAndMerge) {
  const Output y = b_.WithName("y").Identity(MakeIf("Double", "Five", p_)->output(0));
  Inline();
  const Node* merge = y.node->input(0).node;
  EXPECT_EQ(merge->op_name(), "Merge");
  ASSERT_NE(graph_.Find("if/then/a"), nullptr);
  EXPECT_EQ(graph_.Find("if/then/a")->input(0).node->op_name(), "Switch");
  EXPECT_EQ(graph_.Find("if/then/a")->input(0).index, 1);
  const Node* five = graph_.Find("if/else/c");  // without inputs: waits for the branch
  ASSERT_NE(five, nullptr);
  ASSERT_EQ(five->control_inputs().size(), 1u);
  EXPECT_EQ(five->control_inputs()[0]->input(0).node->op_name(), "Switch");
  EXPECT_EQ(five->control_inputs()[0]->input(0).index, 0);
  EXPECT_EQ(graph_.Find("if/done"), nullptr);  // nobody waits
}

TEST_F(FormsTest, WhoWaitsForAnIfWaitsForItsEffects) {
  Node* call = MakeIf("Acts", "Double", b_.WithName("half").Identity(x_));
  Node* after = b_.WithName("after").WithControl({call}).OpNode("NoOp", {});
  Inline();
  EXPECT_EQ(Count("ToBool"), 1);
  ASSERT_NE(graph_.Find("if/then/e"), nullptr);
  ASSERT_EQ(after->control_inputs().size(), 1u);
  EXPECT_EQ(after->control_inputs()[0]->name(), "if/done");
  EXPECT_NE(graph_.Find("if/over"), nullptr);
}

TEST_F(FormsTest, EffectsRunThoughNobodyReads) {
  MakeIf("Acts", "Double", p_);
  Inline();
  EXPECT_NE(graph_.Find("if/then/e"), nullptr);
  EXPECT_EQ(graph_.Find("if/else/a"), nullptr);
  EXPECT_EQ(Count("Merge"), 0);
}

TEST_F(FormsTest, CaseSearchesItsBranch) {
  Node* call = b_.WithName("case").OpNode(
      "Case", {i_, std::vector<Output>{x_}},
      {{"Tout", Types({DType::kFloat})}, {"branches", std::vector<FuncAttr>(9, FuncAttr{"Double", {}})}});
  b_.WithName("y").Identity(call->output(0));
  Inline();
  EXPECT_EQ(Count("Merge"), 8);
  EXPECT_NE(graph_.Find("case/branch_8/a"), nullptr);
}

TEST_F(FormsTest, WhileBecomesALoop) {
  Node* call = MakeWhile("Step");
  const Output y = b_.WithName("y").Identity(call->output(1)), k = b_.WithName("k_out").Identity(call->output(2));
  Node* after = b_.WithName("after").WithControl({call}).OpNode("NoOp", {});
  Inline();
  EXPECT_EQ(Count("Merge"), 2);
  EXPECT_EQ(Count("Enter"), 3);
  EXPECT_EQ(Count("NextIteration"), 2);
  EXPECT_EQ(Count("LoopCond"), 1);
  EXPECT_EQ(y.node->input(0).node->op_name(), "Exit");
  EXPECT_EQ(y.node->input(0).shape().ToString(), x_.shape().ToString());
  EXPECT_EQ(k.node->input(0).node->name(), "k");  // does not change
  EXPECT_EQ(after->control_inputs().size(), 1u);
}

TEST_F(FormsTest, UnreadVariablesOfALoopGo) {
  b_.WithName("y").Identity(MakeWhile("Step")->output(0));
  Inline();
  EXPECT_EQ(Count("Merge"), 1);
  EXPECT_EQ(graph_.Find("loop/body/m"), nullptr);
}

TEST_F(FormsTest, WhileWithoutVariablesTurns) {
  b_.WithName("loop").OpNode("While", {std::vector<Output>{}}, {{"cond", F("Always")}, {"body", F("Nothing")}});
  Inline();
  EXPECT_EQ(Count("Merge"), 1);
  EXPECT_NE(graph_.Find("loop/body/e"), nullptr);
}

TEST_F(FormsTest, ForCounts) {
  Node* call = b_.WithName("for").OpNode("For", {i_, i_, i_, std::vector<Output>{x_}}, {{"body", F("ForBody")}});
  b_.WithName("y").Identity(call->output(0));
  Inline();
  EXPECT_EQ(Count("Merge"), 2);  // the index is not read
  EXPECT_EQ(Count("Assert"), 1);
}

TEST_F(FormsTest, RemoteCallNamesTheDevice) {
  const Output target = b_.Const(Tensor::Scalar(TString("/device:CPU:3")));
  Node* call = b_.WithName("call").OpNode(
      "RemoteCall", {target, std::vector<Output>{x_}}, {{"Tout", Types({DType::kFloat})}, {"f", F("Double")}});
  b_.WithName("y").Identity(call->output(0));
  Inline();
  EXPECT_EQ(graph_.Find("call/a")->device(), "/device:CPU:3");
}

TEST_F(FormsTest, RemoteCallOfANameThatIsNotKnownYetHasABodyForEachDevice) {
  Node* call = b_.WithName("call").OpNode(
      "RemoteCall", {TestInput(b_, "t", DType::kString, PartialShape::Scalar()), std::vector<Output>{x_}},
      {{"Tout", Types({DType::kFloat})}, {"f", F("Double")}});
  b_.WithName("y").Identity(call->output(0));
  EXPECT_TRUE(absl::StrContains(Error(), "its target t:0 is not a constant"));
  ExpandOptions options;
  options.devices = {"/device:CPU:0", "/device:CPU:1"};
  const Status s = InlineCalls(graph_, &graph_, options);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(graph_.Find("call/on_device_0/a")->device(), "/device:CPU:0");
  EXPECT_EQ(graph_.Find("call/on_device_1/a")->device(), "/device:CPU:1");
  EXPECT_EQ(Count("Merge"), 1);
}

TEST_F(FormsTest, RefusesWhatDoesNotFit) {
  MakeIf("Double", "TwoResults", p_);
  EXPECT_TRUE(absl::StrContains(Error(), "function 'TwoResults' (else_branch) returns 2 values, wanted 1"));
}
TEST_F(FormsTest, RefusesBranchesOfOtherTypes) {
  MakeIf("IntResult", "Double", p_);
  EXPECT_TRUE(absl::StrContains(Error(), "(then_branch) returns int32 as value 0, wanted float"));
}
TEST_F(FormsTest, RefusesABodyThatChangesTypes) {
  MakeWhile("WrongStep");
  EXPECT_TRUE(absl::StrContains(Error(), "(body) returns int32 as value 1, wanted float"));
}
TEST_F(FormsTest, RefusesAMissingFunction) {
  MakeIf("Double", "Absent", p_);
  EXPECT_TRUE(absl::StrContains(Error(), "'Absent'"));
}
TEST_F(FormsTest, RefusesGradientsWithoutAWayToTakeThem) {
  b_.WithName("g").OpNode(
      "SymbolicGradient", {std::vector<Output>{x_, x_}}, {{"Tout", Types({DType::kFloat})}, {"f", F("Double")}});
  EXPECT_TRUE(absl::StrContains(Error(), "gradients cannot be taken here"));
}

TEST_F(FormsTest, RecursionStaysACall) {
  Import(absl::StrCat(
      "library {",
      Function("Again", {"x:f"}, {"y:f=c:output:0"},
               NodeText("c", "PartitionedCall", {"x"}, "",
                        " attr { key: 'f' value { func { name: 'Again' } } } attr { key: 'Tin' value { list { type: "
                        "DT_FLOAT } } } attr { key: 'Tout' value { list { type: DT_FLOAT } } }")),
      "}"));
  const Output called = b_.OpNode("Again", {x_})->output(0);
  const Output after = b_.Identity(called);
  Inline();
  ASSERT_EQ(Count("StatefulPartitionedCall"), 1);
  const Node* call = after.node->input(0).node;
  EXPECT_EQ(call->op_name(), "StatefulPartitionedCall");
  EXPECT_EQ(call->input(0), x_);
  EXPECT_EQ(call->Attr<FuncAttr>("f")->name, "Again");
}

// Recursion that no signature shows: the function to call is an attribute.
TEST_F(FormsTest, RefusesEndlessCallsThroughAttributes) {
  const std::string types =
      " attr { key: 'Tin' value { list { type: DT_FLOAT } } } attr { key: 'Tout' value { list { type: DT_FLOAT } } }";
  std::string applies =
      Function("Apply", {"x:f"}, {"y:f=c:output:0"},
               NodeText("c", "PartitionedCall", {"x"}, "", " attr { key: 'f' value { placeholder: 'g' } }" + types));
  applies = absl::StrReplaceAll(applies, {{"name: 'Apply'", "name: 'Apply' attr { name: 'g' type: 'func' }"}});
  const std::string loops =
      Function("Loops", {"x:f"}, {"y:f=c:y:0"},
               NodeText("c", "Apply", {"x"}, "", " attr { key: 'g' value { func { name: 'Hidden' } } }"));
  const std::string hidden = Function("Hidden", {"x:f"}, {"y:f=x"}, "");
  Import(absl::StrCat("library {", applies, hidden, loops, "}"));
  b_.OpNode("Loops", {x_});
  Inline();
}

}  // namespace
}  // namespace millrace
