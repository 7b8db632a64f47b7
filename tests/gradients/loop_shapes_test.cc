// SPDX-License-Identifier: Apache-2.0
// What loops keep of shapes, found again after an import that lost it; and what gradients gain by it.
#include "graph/loop_shapes.h"

#include <gtest/gtest.h>

#include "autodiff/gradients.h"
#include "graph/control_flow.h"
#include "graph/graph_def.h"
#include "graph/verify.h"
#include "system/system.h"

namespace millrace {
namespace {

using Outputs = std::vector<Output>;
using Body = std::function<Outputs(const GraphBuilder&, const Outputs&)>;

class LoopShapes : public ::testing::Test {
 protected:
  Output Input(const char* name, std::vector<int64_t> dims) {
    return b_.WithName(name).Op(
        "Placeholder", {}, {{"dtype", DType::kDouble}, {"shape", PartialShape::Of(std::move(dims))}});
  }
  // Five iterations; `shapes` may hold invariants.
  Outputs Loop(const GraphBuilder& b, Outputs variables, const Body& body,
               std::vector<std::optional<PartialShape>> shapes = {}) {
    variables.insert(variables.begin(), b.Scalar<int32_t>(0));
    LoopOptions options;
    if (!shapes.empty()) shapes.insert(shapes.begin(), std::nullopt);
    options.shape_invariants = std::move(shapes);
    auto out = WhileLoop(
        b, variables,
        [](const GraphBuilder& c, const Outputs& v) -> StatusOr<Outputs> {
          return Outputs{c.Op("Less", {v[0], c.Scalar<int32_t>(5)})};
        },
        [&](const GraphBuilder& c, const Outputs& v) -> StatusOr<Outputs> {
          Outputs next = body(c, Outputs(v.begin() + 1, v.end()));
          next.insert(next.begin(), c.Add(v[0], c.Scalar<int32_t>(1)));
          return next;
        },
        options);
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? Outputs(out->begin() + 1, out->end()) : Outputs(variables.size() - 1);
  }
  // The graph as somebody else gets it.
  void Import() {
    auto def = GraphToProto(graph_);
    ASSERT_TRUE(def.ok()) << def.status();
    const auto result = ImportGraphDef(*def, {}, &imported_);
    ASSERT_TRUE(result.ok()) << result.status();
  }
  Output Imported(Output o) { return imported_.Find(o.node->name())->output(o.index); }
  std::vector<std::string> Shapes(const Outputs& list) {
    std::vector<std::string> texts;
    for (const Output& o : list) texts.push_back(Imported(o).shape().ToString());
    return texts;
  }
  static int Count(const Graph& graph, absl::string_view op) {
    int n = 0;
    for (const Node* node : graph.nodes()) n += node->op_name() == op;
    return n;
  }

  Graph graph_{&System::Default().ops()};
  Graph imported_{&System::Default().ops()};
  GraphBuilder b_{&graph_};
};

using Texts = std::vector<std::string>;

TEST_F(LoopShapes, WhatStaysAndWhatGrows) {
  const Output x = Input("x", {2, 3}), rows = Input("rows", {1, 3}), any = Input("any", {-1, 3});
  const Outputs r = Loop(
      b_, {x, rows, any, x, b_.Scalar<double>(0)},
      [](const GraphBuilder& b, const Outputs& v) {
        const Output axis = b.Scalar<int32_t>(0);
        return Outputs{b.Op("Sin", {v[0]}), b.Op("ConcatV2", {Outputs{v[1], v[1]}, axis}), b.Op("Sin", {v[2]}),
                       b.Op("ExpandDims", {v[3], axis}), b.Add(v[4], b.Sum(v[0], b.Vector<int32_t>({0, 1})))};
      },
      {std::nullopt, PartialShape::Of({-1, 3}), std::nullopt, PartialShape::Unknown(), std::nullopt});
  Import();
  EXPECT_EQ(Shapes(r), (Texts{"?", "?", "?", "?", "?"}));
  RefineLoopShapes(&imported_);
  EXPECT_EQ(Shapes(r), (Texts{"[2,3]", "[?,3]", "[?,3]", "?", "[]"}));
  EXPECT_TRUE(VerifyGraph(imported_).ok());
}

// It takes a round for each variable until the last one has lost its first dimension.
TEST_F(LoopShapes, ManyRounds) {
  Outputs start;
  for (int i = 0; i < 8; ++i) start.push_back(Input("x", {i == 0 ? 7 : 2, 3}));
  const std::vector<std::optional<PartialShape>> any(8, PartialShape::Of({-1, 3}));
  const Outputs r = Loop(
      b_, start,
      [](const GraphBuilder& b, const Outputs& v) {
        Outputs next = {b.Op("Sin", {v[0]})};
        for (size_t i = 1; i < v.size(); ++i) next.push_back(b.Op("Cos", {v[i - 1]}));
        return next;
      },
      any);
  Import();
  RefineLoopShapes(&imported_);
  EXPECT_EQ(Shapes(r), (Texts{"[7,3]", "[?,3]", "[?,3]", "[?,3]", "[?,3]", "[?,3]", "[?,3]", "[?,3]"}));
}

TEST_F(LoopShapes, NestedLoopsAndBranches) {
  const Output x = Input("x", {2, 3}), w = Input("w", {3, 3}), grows = Input("grows", {4});
  const std::vector<std::optional<PartialShape>> any = {std::nullopt, PartialShape::Of({-1})};
  const Outputs r = Loop(
      b_, {x, grows},
      [&](const GraphBuilder& b, const Outputs& v) {
        Outputs inner = Loop(
            b, v,
            [&](const GraphBuilder& c, const Outputs& u) {
              return Outputs{c.MatMul(u[0], w), c.Op("ConcatV2", {Outputs{u[1], u[1]}, c.Scalar<int32_t>(0)})};
            },
            any);
        auto chosen = Cond(
            b, b.Op("Less", {b.Sum(inner[0], b.Vector<int32_t>({0, 1})), b.ScalarOf(DType::kDouble, 0)}),
            [&](const GraphBuilder& c, const Outputs&) -> StatusOr<Outputs> {
              return Outputs{c.Op("Neg", {inner[0]})};
            },
            [&](const GraphBuilder& c, const Outputs&) -> StatusOr<Outputs> {
              return Outputs{c.Op("Sin", {inner[0]})};
            });
        EXPECT_TRUE(chosen.ok()) << chosen.status();
        return Outputs{chosen.ok() ? (*chosen)[0] : v[0], inner[1]};
      },
      any);
  Import();
  RefineLoopShapes(&imported_);
  EXPECT_EQ(Shapes(r), (Texts{"[2,3]", "[?]"}));
}

// A body that the shapes of the first iteration do not fit: such a graph runs as long as it does not get there.
TEST_F(LoopShapes, GivesUpQuietly) {
  const Output x = Input("x", {2, 5}), w = Input("w", {3, 3});
  const Outputs r = Loop(b_, {x}, [&](const GraphBuilder& b, const Outputs& v) { return Outputs{b.MatMul(v[0], w)}; },
                         {PartialShape::Unknown()});
  Import();
  RefineLoopShapes(&imported_);
  EXPECT_EQ(Shapes(r), Texts{"?"});
}

// The gradient of the imported loop needs no more stacks than that of the loop as it was built.
TEST_F(LoopShapes, GradientsStackNoShapes) {
  const Output x = Input("x", {2, 3}), w = Input("w", {3, 3}), bias = Input("bias", {3});
  const Outputs r = Loop(b_, {x}, [&](const GraphBuilder& b, const Outputs& v) {
    return Outputs{b.Op("Tanh", {b.Add(b.MatMul(v[0], w), bias)})};
  });
  Import();
  Graph vague(&System::Default().ops());
  const auto def = GraphToProto(graph_);
  ASSERT_TRUE(def.ok() && ImportGraphDef(*def, {}, &vague).ok());
  auto gradients = [](Graph* graph, Output y, const Outputs& xs) {
    const auto g = AddGradients(GraphBuilder(graph), {y}, xs, {}, {});
    EXPECT_TRUE(g.ok()) << g.status();
  };
  gradients(&graph_, r[0], {x, w, bias});
  gradients(&imported_, Imported(r[0]), {Imported(x), Imported(w), Imported(bias)});
  EXPECT_EQ(Count(imported_, "StackV2"), Count(graph_, "StackV2"));
  EXPECT_EQ(imported_.nodes().size(), graph_.nodes().size());
}

}  // namespace
}  // namespace millrace
