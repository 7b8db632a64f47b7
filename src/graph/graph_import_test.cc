// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>

#include "absl/strings/match.h"
#include "graph/graph_def.h"
#include "graph/test_ops.h"
#include "graph/verify.h"

namespace millrace {
namespace {

wire::GraphDef Parse(absl::string_view text) {
  wire::GraphDef def;
  const Status s = wire::DecodeText(text, &def);
  EXPECT_TRUE(s.ok()) << s << "\n" << text;
  return def;
}

constexpr absl::string_view kFloat = "attr { key: 'T' value { type: DT_FLOAT } }";
std::string Placeholder(absl::string_view name) {
  return absl::StrCat("node { name: '", name, "' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } } ");
}
std::string NodeText(absl::string_view name, absl::string_view op, std::vector<std::string> inputs,
                     absl::string_view attrs = kFloat) {
  std::string out = absl::StrCat("node { name: '", name, "' op: '", op, "' ");
  for (const std::string& in : inputs) absl::StrAppend(&out, "input: '", in, "' ");
  return absl::StrCat(out, attrs, " } ");
}

class ImportTest : public ::testing::Test {
 protected:
  StatusOr<ImportResult> Import(absl::string_view text, const ImportOptions& options = {}) {
    return ImportGraphDef(Parse(text), options, &graph_);
  }
  // The error of an import that must leave no trace.
  std::string ErrorOf(absl::string_view text, const ImportOptions& options = {},
                      absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    auto before = GraphToProto(graph_);
    auto result = Import(text, options);
    EXPECT_EQ(result.status().code(), code) << result.status() << "\n" << text;
    auto after = GraphToProto(graph_);
    EXPECT_TRUE(before.ok() && after.ok() && wire::Equal(*before, *after)) << "a failed import changed the graph";
    return std::string(result.status().message());
  }

  Graph graph_{&TestOps()};
};

TEST_F(ImportTest, TakesNodesInAnyOrderAndFillsDefaults) {
  ASSERT_TRUE(Import(NodeText("c", "MatMul", {"a", "b:0", "^d"}) + NodeText("d", "NoOp", {}, "") + Placeholder("b") +
                     Placeholder("a"))
                  .ok());
  Node* c = graph_.Find("c");
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->input(0).node, graph_.Find("a"));
  EXPECT_EQ(c->control_inputs(), std::vector<Node*>{graph_.Find("d")});
  EXPECT_FALSE(*c->Attr<bool>("transpose_b"));
  EXPECT_TRUE(VerifyGraph(graph_).ok());
}

TEST_F(ImportTest, ExportsWhatItImported) {
  ASSERT_TRUE(
      Import(Placeholder("a") +
             NodeText("s", "Split", {"i", "a"}, absl::StrCat(kFloat, "attr { key: 'num_split' value { i: 3 } }")) +
             "node { name: 'i' op: 'Const' device: '/cpu:0' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: "
             "'value' value "
             "{ tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }" +
             NodeText("p", "AddN", {"s:2", "s", "^i"},
                      absl::StrCat(kFloat,
                                   "attr { key: 'N' value { i: 2 } } attr { key: '_mine' value { s: 'x' } } "
                                   "attr { key: 'strange' value { b: true } }")) +
             NodeText("u", "Martian", {"p", "q:1"}) + NodeText("q", "Venusian", {}) + "versions { producer: 24 }")
          .ok());
  auto def = GraphToProto(graph_);
  ASSERT_TRUE(def.ok()) << def.status();
  EXPECT_EQ(def->versions->producer, 24);
  Graph again(&TestOps());
  ASSERT_TRUE(ImportGraphDef(*def, {}, &again).ok());
  auto def2 = GraphToProto(again);
  ASSERT_TRUE(def2.ok());
  EXPECT_TRUE(wire::Equal(*def, *def2));
  const Node* p = again.Find("p");
  auto node = NodeToProto(*p);
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->input, (std::vector<std::string>{"s:2", "s", "^i"}));
  EXPECT_TRUE(node->attr.contains("_mine") && node->attr.contains("strange"));
  EXPECT_EQ(again.Find("i")->device(), "/cpu:0");
}

TEST_F(ImportTest, RefusesBadEdgesAndNames) {
  const std::string a = Placeholder("a");
  EXPECT_EQ(ErrorOf(a + NodeText("b", "Identity", {"a:7"})),
            "Node 'b': Connecting to invalid output 7 of source node a which has 1 outputs.");
  for (const char* bad : {"a:-1", "^missing", "missing", "a:0:0"}) {
    EXPECT_TRUE(absl::StrContains(ErrorOf(a + NodeText("b", "Identity", {bad})), "Unknown input node")) << bad;
  }
  EXPECT_TRUE(absl::StrContains(ErrorOf(a + NodeText("b", "Identity", {"a:99999999999"})), "too large"));
  EXPECT_TRUE(absl::StrContains(ErrorOf(a + NodeText("b", "Identity", {""})), "not a tensor name"));
  EXPECT_TRUE(absl::StrContains(ErrorOf(a + NodeText("b", "Identity", {"^a", "a"})), "must come after"));
  EXPECT_EQ(ErrorOf(a + a), "Node 'a' is not unique");
  for (const char* bad : {"", "_SOURCE", "_x", "a b", "\\377", "/a", "a:0", "^a"}) {
    EXPECT_TRUE(absl::StrContains(ErrorOf(Placeholder(bad)), "invalid characters")) << bad;
  }
  EXPECT_TRUE(absl::StrContains(ErrorOf(Placeholder(std::string(100000, 'x'))), "exceeds the limit"));
  EXPECT_TRUE(absl::StrContains(ErrorOf("node { name: 'r' op: '_Recv' }"), "internal"));
  EXPECT_TRUE(absl::StrContains(ErrorOf("node { name: 'r' op: 'NoOp' device: '/job:x/task:-1' }"), "Malformed device"));
}

TEST_F(ImportTest, RefusesBadAttributes) {
  const std::string a = Placeholder("a");
  EXPECT_EQ(ErrorOf(a + NodeText("b", "Identity", {"a"}, "")), "NodeDef 'b': missing attribute 'T' of op Identity");
  EXPECT_TRUE(absl::StrContains(
      ErrorOf(a + NodeText("b", "Identity", {"a"}, "attr { key: 'T' value { i: 1 } }")), "when type expected"));
  EXPECT_TRUE(absl::StrContains(
      ErrorOf(a + NodeText("b", "Identity", {"a"}, "attr { key: 'T' value { list {} } }")), "when type expected"));
  EXPECT_TRUE(absl::StrContains(ErrorOf(a + NodeText("b", "Identity", {"a"}, "attr { key: 'T' value { type: 101 } }")),
                                "invalid data type number 101"));
  EXPECT_TRUE(absl::StrContains(
      ErrorOf(a + NodeText("b", "Pack", {"a", "a"}, absl::StrCat(kFloat, "attr { key: 'N' value { i: 250000000 } }"))),
      "needs 250000000 inputs, got 2"));
  EXPECT_TRUE(absl::StrContains(ErrorOf(a + NodeText("b", "Mul", {})), "takes 2 inputs, got 0"));
  const auto constant = [](absl::string_view dtype, absl::string_view tensor) {
    return absl::StrCat("node { name: 'k' op: 'Const' attr { key: 'dtype' value { type: ", dtype,
                        " } } attr { key: 'value' value { tensor { ", tensor, " } } } }");
  };
  ErrorOf(constant("DT_FLOAT", "dtype: DT_INVALID"));
  ErrorOf(constant("DT_FLOAT", "dtype: 9999 tensor_shape { dim { size: 0 } }"));
  ErrorOf(constant("101", "dtype: 101"));
  ErrorOf(constant("DT_FLOAT", "dtype: DT_FLOAT tensor_shape { dim { size: -2 } }"));
  ErrorOf(constant("DT_FLOAT", "dtype: DT_FLOAT tensor_shape { dim { size: 4294967296 } dim { size: 4294967296 } }"));
  EXPECT_TRUE(absl::StrContains(
      ErrorOf(constant("DT_FLOAT", "dtype: DT_INT64 int64_val: 1 tensor_shape {}")), "attribute 'dtype' says float"));
  for (const char* dims : {"dim { size: -2 }", "dim { size: 4294967296 } dim { size: 4294967296 }"}) {
    ErrorOf(absl::StrCat(
        "node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: "
        "'shape' value { shape { ",
        dims, " } } } }"));
  }
}

TEST_F(ImportTest, RefusesCyclesButTakesLoops) {
  EXPECT_TRUE(absl::StrContains(
      ErrorOf(Placeholder("p") + NodeText("a", "AddV2", {"p", "b"}) + NodeText("b", "Identity", {"a"}) +
              NodeText("z", "Identity", {"b"})),
      "contains a cycle"));
  const std::string loop =
      Placeholder("x") +
      NodeText("enter", "Enter", {"x"}, absl::StrCat(kFloat, "attr { key: 'frame_name' value { s: 'f' } }")) +
      NodeText("merge", "Merge", {"enter", "next"}, absl::StrCat(kFloat, "attr { key: 'N' value { i: 2 } }")) +
      NodeText("less", "Less", {"merge", "merge"}) + NodeText("cond", "LoopCond", {"less"}, "") +
      NodeText("switch", "Switch", {"merge", "cond"}) + NodeText("exit", "Exit", {"switch"}) +
      NodeText("next", "NextIteration", {"switch:1"});
  ASSERT_TRUE(Import(loop).ok());
  EXPECT_EQ(graph_.Find("merge")->input(1).node, graph_.Find("next"));
  EXPECT_TRUE(VerifyGraph(graph_).ok()) << VerifyGraph(graph_);
  auto def = GraphToProto(graph_);
  ASSERT_TRUE(def.ok());
  Graph again(&TestOps());
  EXPECT_TRUE(ImportGraphDef(*def, {}, &again).ok());
}

TEST_F(ImportTest, VerifierFindsBrokenFrames) {
  const auto frame = [](const char* f) {
    return absl::StrCat(kFloat, "attr { key: 'frame_name' value { s: '", f, "' } }");
  };
  const auto verify = [&](absl::string_view text) {
    Graph g(&TestOps());
    auto r = ImportGraphDef(Parse(text), {}, &g);
    EXPECT_TRUE(r.ok()) << r.status();
    return std::string(VerifyGraph(g).message());
  };
  const std::string x = Placeholder("x");
  EXPECT_TRUE(absl::StrContains(verify(x + NodeText("e", "Exit", {"x"})), "no Enter"));
  EXPECT_TRUE(absl::StrContains(verify(x + NodeText("e", "NextIteration", {"x"})), "in no loop"));
  EXPECT_TRUE(absl::StrContains(
      verify(x + NodeText("a", "Enter", {"x"}, frame("f")) + NodeText("m", "Mul", {"a", "x"})), "different frames"));
  EXPECT_TRUE(absl::StrContains(
      verify(x + NodeText("a", "Enter", {"x"}, frame("f")) + NodeText("b", "Enter", {"a"}, frame("g")) +
             NodeText("c", "Enter", {"x"}, frame("g"))),
      "lies in"));
}

TEST_F(ImportTest, PrefixesMapsAndReturns) {
  ASSERT_TRUE(Import(Placeholder("x") + NodeText("before", "NoOp", {}, "")).ok());
  const std::string text =
      Placeholder("a") + NodeText("b", "Identity", {"a", "^a"}) +
      NodeText("c", "Identity", {"b"}, absl::StrCat(kFloat, "attr { key: '_class' value { list { s: 'loc:@b' } } }"));
  ImportOptions options;
  options.prefix = "in";
  options.input_map["a:0"] = graph_.Find("x")->output(0);
  options.input_map["unused:1"] = graph_.Find("x")->output(0);
  options.control_map["^a"] = graph_.Find("before");
  options.control_dependencies = {graph_.Find("before")};
  options.return_outputs = {"c", "a:0"};
  options.return_nodes = {"b"};
  options.default_device = "/cpu:0";
  auto r = Import(text, options);
  ASSERT_TRUE(r.ok()) << r.status();
  const Node* b = graph_.Find("in/b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->input(0).node, graph_.Find("x"));
  EXPECT_EQ(b->control_inputs(), std::vector<Node*>{graph_.Find("before")});
  EXPECT_EQ(b->device(), "/cpu:0");
  EXPECT_EQ(r->return_outputs[0].node, graph_.Find("in/c"));
  EXPECT_EQ(r->return_outputs[1].node, graph_.Find("x"));
  EXPECT_EQ(r->return_nodes[0], b);
  EXPECT_EQ(r->unused_input_map, std::vector<std::string>{"unused:1"});
  EXPECT_EQ((*graph_.Find("in/c")->Attr<std::vector<std::string>>("_class"))[0], "loc:@in/b");
  EXPECT_EQ(graph_.Find("in/a")->control_inputs().size(), 1u);
  EXPECT_TRUE(graph_.Find("in/c")->control_inputs().empty());

  EXPECT_TRUE(absl::StrContains(ErrorOf(text, options), "already exists"));
  options.uniquify_names = true;
  r = Import(text, options);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->return_nodes[0]->name(), "in/b_1");
  EXPECT_EQ((*graph_.Find("in/c_1")->Attr<std::vector<std::string>>("_class"))[0], "loc:@in/b_1");
  options.uniquify_prefix = true;
  r = Import(text, options);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->return_nodes[0]->name(), "in_1/b");

  ImportOptions beside;
  beside.uniquify_names = true;
  r = Import(Placeholder("in") + Placeholder("in_2/in") + Placeholder("b"), beside);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_NE(graph_.Find("in_2"), nullptr);  // not "in", of which "in/b" would seem to be a part, nor "in_1"
  EXPECT_NE(graph_.Find("b"), nullptr);
  EXPECT_EQ(graph_.Find("in"), nullptr);

  ImportOptions wrong;
  wrong.return_outputs = {"zzz:0"};
  wrong.prefix = "other";
  EXPECT_TRUE(absl::StrContains(ErrorOf(text, wrong), "not found"));
  wrong.return_outputs = {"c:4"};
  EXPECT_TRUE(absl::StrContains(ErrorOf(text, wrong), "Invalid return output 4"));
  ImportOptions bad;
  bad.prefix = "a b";
  EXPECT_TRUE(absl::StrContains(ErrorOf(text, bad), "prefix"));
}

TEST_F(ImportTest, HonoursVersions) {
  EXPECT_TRUE(absl::StrContains(ErrorOf("versions { producer: 30 min_consumer: 99999 }"), "min consumer"));
  EXPECT_TRUE(absl::StrContains(ErrorOf("versions { bad_consumers: 134 }"), "disallows"));
  const std::string old = Placeholder("a") + NodeText("o", "Old", {"a"}, "");
  EXPECT_TRUE(
      absl::StrContains(ErrorOf(old + "versions { producer: 9 }", {}, absl::StatusCode::kUnimplemented), "New"));
  EXPECT_TRUE(Import(old + "versions { producer: 8 }").ok());
  const std::string scalar =
      "node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { "
      "shape {} "
      "} } } ";
  Graph g21(&TestOps()), g22(&TestOps());
  ASSERT_TRUE(ImportGraphDef(Parse(scalar + "versions { producer: 21 }"), {}, &g21).ok());
  ASSERT_TRUE(ImportGraphDef(Parse(scalar + "versions { producer: 22 }"), {}, &g22).ok());
  EXPECT_FALSE(g21.Find("p")->shape(0).has_rank());
  EXPECT_EQ(g22.Find("p")->shape(0).rank(), 0);
}

TEST_F(ImportTest, ReadsShapesAndOldSpellings) {
  const std::string shapes =
      absl::StrCat(kFloat, "attr { key: '_output_shapes' value { list { shape { dim { size: 4 } } } } }");
  ASSERT_TRUE(
      Import(
          Placeholder("a") + NodeText("b", "Identity", {"a"}, shapes) +
          NodeText(
              "s", "StridedSlice", {"i", "i", "i", "i"},
              "attr { key: 'T' value { type: DT_INT32 } } attr { key: 'Index' value { type: DT_INT32 } } attr { key: "
              "'ellipse_mask' value { i: 1 } }") +
          "node { name: 'i' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT32 } } }")
          .ok());
  EXPECT_EQ(graph_.Find("b")->shape(0).ToString(), "[4]");
  EXPECT_FALSE(graph_.Find("b")->attrs().contains("_output_shapes"));
  EXPECT_EQ(*graph_.Find("s")->Attr<int64_t>("ellipsis_mask"), 1);
  const std::string handle =
      "attr { key: 'dtype' value { type: DT_RESOURCE } } attr { key: '_output_shapes' value { list { shape { dim { "
      "size: 2 } } } } } attr { key: 'shape' value { shape {} } }";
  EXPECT_TRUE(Import(NodeText("h", "Placeholder", {}, handle) + "versions { producer: 27 }").ok());  // it is a scalar
  const std::string two = absl::StrCat(kFloat, "attr { key: '_output_shapes' value { list { shape {} shape {} } } }");
  EXPECT_TRUE(absl::StrContains(ErrorOf(Placeholder("q") + NodeText("r", "Identity", {"q"}, two)), "1 outputs"));
}

TEST_F(ImportTest, CallsFunctions) {
  const std::string text =
      "library { function { signature { name: 'Twice' input_arg { name: 'x' type_attr: 'T' } output_arg { name: 'y' "
      "type_attr: 'T' "
      "} attr { name: 'T' type: 'type' } } node_def { name: 'm' op: 'AddV2' input: 'x' input: 'x' attr { key: 'T' "
      "value { "
      "placeholder: 'T' } } } ret { key: 'y' value: 'm:z:0' } } } " +
      Placeholder("a") + NodeText("f", "Twice", {"a"});
  ASSERT_TRUE(Import(text).ok());
  EXPECT_EQ(graph_.Find("f")->output_type(0), DType::kFloat);
  auto def = GraphToProto(graph_);
  ASSERT_TRUE(def.ok());
  EXPECT_EQ(def->library->function.size(), 1u);
  EXPECT_TRUE(VerifyGraph(graph_).ok());
}

TEST_F(ImportTest, VerifierBoundsChainsOfCallsAndTakesRecursion) {
  const auto function = [](absl::string_view name, absl::string_view callee) {
    return absl::StrCat("function { signature { name: '", name, "' } node_def { name: 'c' op: '", callee, "' } } ");
  };
  const auto verify = [&](const std::string& library) {
    Graph g(&TestOps());
    EXPECT_TRUE(ImportGraphDef(Parse(absl::StrCat("library { ", library, "}")), {}, &g).ok());
    return VerifyGraph(g);
  };
  EXPECT_TRUE(verify(function("F", "F")).ok());
  EXPECT_TRUE(verify(function("A", "B") + function("B", "A")).ok());
  std::string chain;
  for (int i = 0; i < 3000; ++i) chain += function(absl::StrCat("F", i), absl::StrCat("F", i + 1));
  EXPECT_TRUE(absl::StrContains(verify(chain).message(), "deep"));
  EXPECT_TRUE(verify(function("A", "B") + function("C", "B") + function("B", "NoOp")).ok());
}

TEST_F(ImportTest, IsLinear) {
  wire::GraphDef def;
  constexpr int kNodes = 100000;
  for (int i = kNodes - 1; i >= 0; --i) {  // worst order: every node after its reader
    wire::NodeDef& n = def.node.emplace_back();
    n.name = absl::StrCat("n", i);
    n.op = i == 0 ? "Placeholder" : "Identity";
    n.attr[i == 0 ? "dtype" : "T"].kind = wire::AttrValue::Kind::kType;
    n.attr[i == 0 ? "dtype" : "T"].type = 1;
    if (i > 0) n.input.push_back(absl::StrCat("n", i - 1));
  }
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(ImportGraphDef(def, {}, &graph_).ok());
  const double us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / kNodes;
  RecordProperty("us_per_node", std::to_string(us));
  EXPECT_LT(us, 500) << "something is quadratic";
}

TEST(TensorNameTest, SplitsPorts) {
  const auto name = [](absl::string_view text) {
    auto n = ParseTensorName(text);
    return n.ok() ? absl::StrCat(n->node, "|", n->port) : "error";
  };
  EXPECT_EQ(name("a"), "a|0");
  EXPECT_EQ(name("a:12"), "a|12");
  EXPECT_EQ(name("^a"), "a|-1");
  EXPECT_EQ(name("a/b:x"), "a/b:x|0");
  EXPECT_EQ(name("a1"), "a1|0");
  for (const char* bad : {"", "^", ":0", "a:99999999999"}) EXPECT_EQ(name(bad), "error") << bad;
}

}  // namespace
}  // namespace millrace
