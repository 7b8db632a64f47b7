// SPDX-License-Identifier: Apache-2.0
// Conditionals and loops as the core builds them: what they compute, how their graphs look, what they refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "control_flow_graphs.h"
#include "graph/control_flow.h"
#include "graph/functional.h"
#include "graph/graph_def.h"
#include "graph/verify.h"
#include "system/system.h"

namespace millrace {
namespace {

using List = std::vector<Output>;

void ExpectSame(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.shape(), want.shape());
  const int64_t n = got.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    switch (got.dtype()) {
      case DType::kFloat: {
        const float g = got.data<float>()[i], w = want.data<float>()[i];
        EXPECT_NEAR(g, w, 1e-5f * std::max(1.0f, std::abs(w))) << "element " << i;
        break;
      }
      case DType::kInt32: EXPECT_EQ(got.data<int32_t>()[i], want.data<int32_t>()[i]) << "element " << i; break;
      case DType::kBool: EXPECT_EQ(got.data<bool>()[i], want.data<bool>()[i]) << "element " << i; break;
      default: FAIL() << "compare " << DTypeName(got.dtype());
    }
  }
}

class Built {
 public:
  explicit Built(const FlowGraph& graph) {
    const GraphLock lock(&shared_->mu);
    const GraphBuilder b(&shared_->graph);
    status_ = graph.build(b, &step_);
    status_.Update(b.status());
    if (status_.ok()) status_ = VerifyGraph(shared_->graph);
  }
  // A copy by export and import.
  Built(Built& other) : step_(other.step_) {
    const GraphReaderLock read(&other.shared_->mu);
    const GraphLock lock(&shared_->mu);
    const auto def = GraphToProto(other.shared_->graph);
    status_ = def.status();
    if (status_.ok()) status_ = ImportGraphDef(*def, {}, &shared_->graph).status();
    if (status_.ok()) status_ = VerifyGraph(shared_->graph);
    for (Node*& n : step_.init) n = shared_->graph.Find(n->name());
    for (auto* list : {&step_.feeds, &step_.fetches}) {
      for (Output& o : *list) o.node = shared_->graph.Find(o.node->name());
    }
  }
  const Status& status() const { return status_; }
  void RunAndCheck(const Determinism& determinism) {
    StatusOr<std::unique_ptr<Session>> session = System::Default().NewSession(shared_, {}, "", determinism);
    ASSERT_TRUE(session.ok()) << session.status();
    if (!step_.init.empty()) {
      std::vector<Tensor> none;
      const Status s = (*session)->Run(nullptr, {}, {}, {}, step_.init, &none, nullptr);
      ASSERT_TRUE(s.ok()) << s;
    }
    for (int run = 0; run < 2; ++run) {
      std::vector<Tensor> out;
      const Status s = (*session)->Run(nullptr, step_.feeds, step_.values, step_.fetches, {}, &out, nullptr);
      ASSERT_TRUE(s.ok()) << s;
      ASSERT_EQ(out.size(), step_.expected.size());
      for (size_t i = 0; i < out.size(); ++i) {
        SCOPED_TRACE(absl::StrCat("fetch ", i));
        ExpectSame(out[i], step_.expected[i]);
      }
    }
  }
  FlowStep& step() { return step_; }

 private:
  RefPtr<SharedGraph> shared_ = MakeRef<SharedGraph>(&System::Default().ops());
  FlowStep step_;
  Status status_;
};

class FlowGraphTest : public ::testing::TestWithParam<const FlowGraph*> {};

TEST_P(FlowGraphTest, GivesTheExpectedValues) {
  Built built(*GetParam());
  ASSERT_TRUE(built.status().ok()) << built.status();
  built.RunAndCheck({});
}

// MILLRACE_ORDER_SEEDS says how many orders to try.
TEST_P(FlowGraphTest, GivesThemInEveryOrder) {
  Built built(*GetParam());
  ASSERT_TRUE(built.status().ok()) << built.status();
  const char* wanted = std::getenv("MILLRACE_ORDER_SEEDS");
  const uint64_t seeds = wanted ? std::strtoull(wanted, nullptr, 10) : 20;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("order_seed ", seed));
    built.RunAndCheck({true, seed});
    if (HasFailure()) break;
  }
}

TEST_P(FlowGraphTest, SurvivesAsGraphDef) {
  Built built(*GetParam());
  ASSERT_TRUE(built.status().ok()) << built.status();
  Built again(built);
  ASSERT_TRUE(again.status().ok()) << again.status();
  again.RunAndCheck({});
}

std::vector<const FlowGraph*> Pointers(const std::vector<FlowGraph>& graphs) {
  std::vector<const FlowGraph*> list;
  for (const FlowGraph& g : graphs) list.push_back(&g);
  return list;
}
const auto kName = [](const ::testing::TestParamInfo<const FlowGraph*>& info) { return info.param->name; };
INSTANTIATE_TEST_SUITE_P(Forward, FlowGraphTest, ::testing::ValuesIn(Pointers(FlowGraphs())), kName);
INSTANTIATE_TEST_SUITE_P(Variables, FlowGraphTest, ::testing::ValuesIn(Pointers(VariableFlowGraphs())), kName);
INSTANTIATE_TEST_SUITE_P(Backward, FlowGraphTest, ::testing::ValuesIn(Pointers(FlowGradientGraphs())), kName);

class ConstructionTest : public ::testing::Test {
 protected:
  Output Placeholder(DType type, const PartialShape& shape = PartialShape::Scalar()) {
    return b_.Op("Placeholder", {}, {{"dtype", type}, {"shape", shape}});
  }
  // "name op input ^control", in the order of construction.
  std::vector<std::string> Lines(int from = 0) {
    std::vector<std::string> lines;
    for (const Node* node : graph_.nodes()) {
      if (node->id() < from) continue;
      std::string line = absl::StrCat(node->name(), " ", node->op_name());
      for (const Output& o : node->inputs()) absl::StrAppend(&line, " ", o.ToString());
      for (const Node* c : node->control_inputs()) absl::StrAppend(&line, " ^", c->name());
      lines.push_back(line);
    }
    return lines;
  }
  // Building fails with this text, and nothing is left behind.
  void ExpectRefusal(const StatusOr<List>& result, const std::string& text, int nodes) {
    ASSERT_FALSE(result.ok()) << "wanted: " << text;
    EXPECT_NE(result.status().message().find(text), absl::string_view::npos) << result.status();
    EXPECT_EQ(graph_.num_node_ids(), nodes);
    EXPECT_EQ(graph_.context(), nullptr);
  }
  static StatusOr<List> Nothing(const GraphBuilder&, const List&) { return List{}; }
  static StatusOr<List> Same(const GraphBuilder&, const List& v) { return v; }
  static StatusOr<List> Always(const GraphBuilder& b, const List&) { return List{b.Const(Tensor::Scalar(true))}; }

  Graph graph_{&System::Default().ops()};
  GraphBuilder b_{&graph_};
};

TEST_F(ConstructionTest, CondLooksLikeTensorFlows) {
  const Output p = Placeholder(DType::kBool), x = Placeholder(DType::kFloat);
  const int mark = graph_.num_node_ids();
  const auto r = Cond(
      b_, p, [&](const GraphBuilder& b, const List&) { return List{b.Add(x, b.Scalar(1.0f)), b.Scalar(2.0f)}; },
      [&](const GraphBuilder&, const List&) { return List{x, x}; });
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(
      Lines(mark),
      (std::vector<std::string>{
          "cond/Switch Switch Placeholder:0 Placeholder:0",
          "cond/switch_t Identity cond/Switch:1",
          "cond/switch_f Identity cond/Switch:0",
          "cond/pred_id Identity Placeholder:0",
          "cond/Const Const ^cond/switch_t",
          "cond/AddV2/Switch Switch Placeholder_1:0 cond/pred_id:0",
          "cond/AddV2 AddV2 cond/AddV2/Switch:1 cond/Const:0",
          "cond/Const_1 Const ^cond/switch_t",
          "cond/Switch_1 Switch Placeholder_1:0 cond/pred_id:0",
          "cond/Merge Merge cond/Switch_1:0 cond/AddV2:0",
          "cond/Merge_1 Merge cond/Switch_1:0 cond/Const_1:0",
      }));
  EXPECT_TRUE(VerifyGraph(graph_).ok());
}

TEST_F(ConstructionTest, WhileLooksLikeTensorFlows) {
  const Output n = Placeholder(DType::kInt32), w = Placeholder(DType::kInt32);
  const int mark = graph_.num_node_ids();
  LoopOptions options;
  options.parallel_iterations = 3;
  options.back_prop = false;
  options.swap_memory = true;
  const auto r = WhileLoop(
      b_, {n}, [&](const GraphBuilder& b, const List& v) { return List{b.Op("Less", {v[0], w})}; },
      [&](const GraphBuilder& b, const List& v) {
        const Output negative = b.Neg(w), sum = b.Add(v[0], b.Scalar<int32_t>(2));
        return List{b.Mul(sum, negative)};
      },
      options);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(
      Lines(mark),
      (std::vector<std::string>{
          "while/Enter Enter Placeholder:0",
          "while/Merge Merge while/Enter:0 while/NextIteration:0",
          "while/Less/Enter Enter Placeholder_1:0",
          "while/Less Less while/Merge:0 while/Less/Enter:0",
          "while/LoopCond LoopCond while/Less:0",
          "while/Switch Switch while/Merge:0 while/LoopCond:0",
          "while/Identity Identity while/Switch:1",
          "while/Neg Neg while/Less/Enter:0 ^while/Identity",
          "while/Const Const ^while/Identity",
          "while/AddV2 AddV2 while/Identity:0 while/Const:0",
          "while/Mul Mul while/AddV2:0 while/Neg:0",
          "while/NextIteration NextIteration while/Mul:0",
          "while/Exit Exit while/Switch:0",
      }));
  const Node* enter = graph_.Find("while/Enter");
  const Node* constant = graph_.Find("while/Less/Enter");
  for (const Node* node : {enter, constant}) {
    EXPECT_EQ(*node->Attr<std::string>("frame_name"), "while/while_context");
    EXPECT_EQ(*node->Attr<int64_t>("parallel_iterations"), 3);
    EXPECT_EQ(*node->Attr<bool>("is_constant"), node == constant);
  }
  const Node* cond = graph_.Find("while/LoopCond");
  EXPECT_FALSE(*cond->Attr<bool>(kBackPropAttr));
  EXPECT_TRUE(*cond->Attr<bool>(kSwapMemoryAttr));
  EXPECT_TRUE(VerifyGraph(graph_).ok());
}

TEST_F(ConstructionTest, NamesFramesApart) {
  const Output n = Placeholder(DType::kInt32);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(WhileLoop(b_, {n}, Always, Same).ok());
  EXPECT_EQ(*graph_.Find("while/Enter")->Attr<std::string>("frame_name"), "while/while_context");
  EXPECT_EQ(*graph_.Find("while_1/Enter")->Attr<std::string>("frame_name"), "while_1/while_context");
}

TEST_F(ConstructionTest, InfersShapesThroughLoopsAndBranches) {
  const Output p = Placeholder(DType::kBool), x = Placeholder(DType::kFloat, PartialShape::Of({-1, 3}));
  const Output y = Placeholder(DType::kFloat, PartialShape::Of({2, 3}));
  const auto merged = Cond(
      b_, p, [&](const GraphBuilder&, const List&) { return List{x}; },
      [&](const GraphBuilder&, const List&) { return List{y}; });
  EXPECT_EQ((*merged)[0].shape(), PartialShape::Of({-1, 3}));
  LoopOptions options;
  options.shape_invariants = {std::nullopt, PartialShape::Of({-1, 3})};
  const auto r = WhileLoop(
      b_, {x, y}, Always,
      [](const GraphBuilder& b, const List& v) {
        EXPECT_EQ(v[1].shape(), PartialShape::Of({-1, 3}));
        return List{v[0], b.Op("ConcatV2", {List{v[1], v[1]}, b.Scalar<int32_t>(0)})};
      },
      options);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ((*r)[0].shape(), PartialShape::Of({-1, 3}));
  EXPECT_EQ((*r)[1].shape(), PartialShape::Of({-1, 3}));
}

TEST_F(ConstructionTest, RefusesBranchesThatDoNotFit) {
  const Output p = Placeholder(DType::kBool), x = Placeholder(DType::kFloat);
  const Output vector = Placeholder(DType::kBool, PartialShape::Of({2}));
  const int nodes = graph_.num_node_ids();
  const auto floats = [](const GraphBuilder& b, const List&) -> StatusOr<List> { return List{b.Scalar(1.0f)}; };
  const auto ints = [](const GraphBuilder& b, const List&) -> StatusOr<List> { return List{b.Scalar<int32_t>(1)}; };
  ExpectRefusal(Cond(b_, p, floats, ints), "result 0 of 'cond' is float in the true branch", nodes);
  ExpectRefusal(Cond(b_, p, floats, Nothing), "the true branch has 1, the false branch 0", nodes);
  ExpectRefusal(Cond(b_, x, floats, floats), "must be bool, got float", nodes);
  ExpectRefusal(Cond(b_, vector, floats, floats), "must be a scalar, got shape [2]", nodes);
  ExpectRefusal(Cond(b_, Output(), floats, floats), "is missing", nodes);
  ExpectRefusal(Cond(b_, p, floats, [](const GraphBuilder&, const List&) { return List{Output()}; }),
                "the false branch returns nothing as its result 0", nodes);
  ExpectRefusal(Cond(b_, p, floats, [&](const GraphBuilder&, const List&) { return List{Output{x.node, 3}}; }),
                "returns output 3", nodes);
  ExpectRefusal(Cond(b_, p, floats, [](const GraphBuilder&, const List&) -> StatusOr<List> { return Aborted("no"); }),
                "no", nodes);
}

TEST_F(ConstructionTest, RefusesLoopsThatDoNotFit) {
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({2})), n = Placeholder(DType::kInt32);
  const int nodes = graph_.num_node_ids();
  ExpectRefusal(WhileLoop(b_, {}, Always, Same), "at least one variable", nodes);
  ExpectRefusal(WhileLoop(b_, {n}, Same, Same), "the condition of a loop must be bool, got int32", nodes);
  ExpectRefusal(WhileLoop(b_, {n}, Nothing, Same), "must return one value, got 0", nodes);
  ExpectRefusal(WhileLoop(b_, {n, x}, Always, [](const GraphBuilder&, const List& v) { return List{v[0]}; }),
                "a value for each of the 2 loop variables, got 1", nodes);
  ExpectRefusal(WhileLoop(b_, {n, x}, Always, [](const GraphBuilder&, const List& v) { return List{v[0], v[0]}; }),
                "loop variable 1 is float, but the body returns int32", nodes);
  const auto grow = [](const GraphBuilder& b, const List& v) -> StatusOr<List> {
    return List{v[0], b.Op("ConcatV2", {List{v[1], v[1]}, b.Scalar<int32_t>(0)})};
  };
  ExpectRefusal(
      WhileLoop(b_, {n, x}, Always, grow),
      "loop variable 1 ('Placeholder:0') enters the loop with shape [2], but has shape [4] after one iteration", nodes);
  LoopOptions options;
  options.shape_invariants = {PartialShape::Scalar(), PartialShape::Of({3})};
  ExpectRefusal(WhileLoop(b_, {n, x}, Always, Same, options), "the shape invariant [3] of loop variable 1", nodes);
  options.shape_invariants = {PartialShape::Scalar()};
  ExpectRefusal(WhileLoop(b_, {n, x}, Always, Same, options), "2 variables, but 1 shape invariants", nodes);
  options = {};
  options.parallel_iterations = 0;
  ExpectRefusal(WhileLoop(b_, {n}, Always, Same, options), "parallel_iterations must be positive, got 0", nodes);
  options = {};
  options.maximum_iterations = x;
  ExpectRefusal(WhileLoop(b_, {n}, Always, Same, options), "maximum_iterations must be int32, got float", nodes);
}

TEST_F(ConstructionTest, TakesVariablesOfUnknownRank) {
  const Output x = Placeholder(DType::kFloat, PartialShape::Unknown());
  const auto r = WhileLoop(b_, {x}, Always, [](const GraphBuilder& b, const List& v) {
    return List{b.Op("ConcatV2", {List{v[0], v[0]}, b.Scalar<int32_t>(0)})};
  });
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_FALSE((*r)[0].shape().has_rank());
}

TEST_F(ConstructionTest, AnInnerFailureThatIsCaughtLeavesTheOuterWhole) {
  const Output p = Placeholder(DType::kBool), x = Placeholder(DType::kFloat);
  const auto r = Cond(
      b_, p,
      [&](const GraphBuilder& b, const List&) {
        // Carries x into the outer branch for the inner loop, then fails: the carrier goes too.
        EXPECT_FALSE(WhileLoop(b, {x}, Always, Nothing).ok());
        return List{b.Neg(x)};
      },
      [&](const GraphBuilder&, const List&) { return List{x}; });
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(graph_.Find("cond/while/Enter"), nullptr);
  EXPECT_TRUE(VerifyGraph(graph_).ok());
}

TEST_F(ConstructionTest, RefusesToReadWhatIsInsideAnEndedLoop) {
  const Output n = Placeholder(DType::kInt32);
  Output leaked;
  const auto r = WhileLoop(b_, {n}, Always, [&](const GraphBuilder& b, const List& v) -> StatusOr<List> {
    MR_RETURN_IF_ERROR(WhileLoop(b, {v[0]}, Always, [&](const GraphBuilder& inner, const List& w) {
                         leaked = inner.Neg(w[0]);
                         return List{leaked};
                       }).status());
    const Output bad = b.Neg(leaked);
    MR_RETURN_IF_ERROR(b.status());
    return List{bad};
  });
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.status().message().find("inside a loop that has ended"), absl::string_view::npos) << r.status();
}

TEST_F(ConstructionTest, CarriesEachValueInOnce) {
  const Output n = Placeholder(DType::kInt32), w = Placeholder(DType::kInt32);
  ASSERT_TRUE(WhileLoop(
                  b_, {n}, [&](const GraphBuilder& b, const List& v) { return List{b.Op("Less", {v[0], w})}; },
                  [&](const GraphBuilder& b, const List& v) { return List{b.Add(b.Add(v[0], w), w)}; })
                  .ok());
  const auto nodes = graph_.nodes();
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(), [](const Node* x) { return x->op_name() == "Enter"; }), 2);
}

TEST_F(ConstructionTest, ImportsIntoABody) {
  Graph other(&System::Default().ops());
  const GraphBuilder o(&other);
  const Output in = o.WithName("in").Op("Placeholder", {}, {{"dtype", DType::kInt32}});
  o.WithName("out").Add(in, o.Scalar<int32_t>(1));
  const auto def = GraphToProto(other);
  ASSERT_TRUE(def.ok());
  const Output n = Placeholder(DType::kInt32), w = Placeholder(DType::kInt32);
  const auto r = WhileLoop(b_, {n}, Always, [&](const GraphBuilder& b, const List& v) -> StatusOr<List> {
    ImportOptions options;
    options.prefix = b.scope() + "/import";
    options.input_map["in:0"] = w;
    options.return_outputs = {"out:0"};
    MR_ASSIGN_OR_RETURN(const ImportResult result, ImportGraphDef(*def, options, &graph_));
    return List{b.Add(v[0], result.return_outputs[0])};
  });
  ASSERT_TRUE(r.ok()) << r.status();
  const Node* constant = graph_.Find("while/import/Const");
  ASSERT_NE(constant, nullptr);
  EXPECT_EQ(constant->control_inputs().size(), 1u);
  EXPECT_EQ(graph_.Find("while/import/out")->input(0).node->op_name(), "Enter");
  EXPECT_TRUE(VerifyGraph(graph_).ok());
}

TEST_F(ConstructionTest, BlocksEndInReverseOrder) {
  const Output p = Placeholder(DType::kBool);
  const int nodes = graph_.num_node_ids();
  {
    CondBuilder outer(b_);
    EXPECT_FALSE(outer.Else({}).ok()) << "not begun";
    ASSERT_TRUE(outer.Begin(p).ok());
    {
      WhileBuilder inner(outer.inside(), {});
      EXPECT_FALSE(inner.Body(p).ok()) << "not begun";
      ASSERT_TRUE(inner.Begin({p}).ok());
      EXPECT_FALSE(outer.Else({}).ok()) << "the loop inside has not ended";
      EXPECT_FALSE(inner.End({}).ok()) << "there is no body yet";
    }
    EXPECT_FALSE(outer.End({}).ok()) << "there is no false branch yet";
    EXPECT_TRUE(outer.Else({}).ok());
    EXPECT_FALSE(outer.Else({}).ok());
    EXPECT_TRUE(outer.End({})->empty());
  }
  {
    CondBuilder outer(b_);
    ASSERT_TRUE(outer.Begin(p).ok());
  }
  EXPECT_EQ(graph_.Find("cond_1/pred_id"), nullptr);
  EXPECT_GT(graph_.num_node_ids(), nodes);
}

TEST_F(ConstructionTest, RefusesSweepsThatDoNotFit) {
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({3, 2})),
               y = Placeholder(DType::kFloat, PartialShape::Of({4}));
  const Output scalar = Placeholder(DType::kFloat);
  const int nodes = graph_.num_node_ids();
  ExpectRefusal(MapFn(b_, {}, {}, Same), "no elements", nodes);
  ExpectRefusal(MapFn(b_, {x, y}, {}, Same), "has 4 elements, others have 3", nodes);
  ExpectRefusal(MapFn(b_, {scalar}, {}, Same), "at least one dimension", nodes);
  ExpectRefusal(
      MapFn(b_, {x}, {DType::kInt32}, Same), "result 0 of the function of 'map_3' must be int32, got float", nodes);
  ExpectRefusal(MapFn(b_, {x}, {}, Nothing), "must return 1 results, got 0", nodes);
  ExpectRefusal(Fold(b_, {x}, {scalar}, [](const GraphBuilder&, const List& v) { return List{v[1]}; }),
                "enters the loop with shape []", nodes);
}

TEST_F(ConstructionTest, SweepsKnowTheShapesOfTheirResults) {
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({3, 2}));
  const auto mapped = MapFn(b_, {x}, {}, [](const GraphBuilder& b, const List& e) {
    EXPECT_EQ(e[0].shape(), PartialShape::Of({2}));
    return List{b.Op("Pack", {List{e[0], e[0]}})};
  });
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_EQ((*mapped)[0].shape(), PartialShape::Of({3, 2, 2}));
}

}  // namespace
}  // namespace millrace
