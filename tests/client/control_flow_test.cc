// SPDX-License-Identifier: Apache-2.0
// Conditionals and loops of the C++ client, compiled twice like client_test.cc.
#include "millrace/control_flow.h"

#include <gtest/gtest.h>

#include <thread>

#include "millrace/session.h"

namespace {

using millrace::DType;
using millrace::Graph;
using millrace::Operation;
using millrace::Output;
using millrace::Outputs;
using millrace::Scope;
using millrace::Session;
using millrace::Tensor;

#if MILLRACE_EXCEPTIONS
#define CLIENT_TEST(name) TEST(ThrowingControlFlowTest, name)
template <typename T>
T Value(T v) {
  return v;
}
#else
#define CLIENT_TEST(name) TEST(ReturningControlFlowTest, name)
template <typename T>
T Value(millrace::Result<T> r) {
  EXPECT_TRUE(r.ok()) << r.status().message();
  return *std::move(r);
}
#endif

template <typename T>
std::vector<T> ValuesOf(const Graph& graph, const std::vector<millrace::Feed>& feeds, Output fetch) {
  const std::vector<Tensor> out = Value(Session(graph).Run(feeds, {fetch}));
  return out.empty() ? std::vector<T>() : Value(out[0].template values<T>());
}

CLIENT_TEST(Conditional) {
  Graph graph;
  Scope scope(graph);
  const Output p = scope.Placeholder(DType::kBool, millrace::Shape{}),
               x = scope.Placeholder(DType::kFloat, millrace::Shape{});
  const Outputs r = millrace::Cond(
      scope.WithName("choice"), p, [&](Scope s) { return Outputs{s.Op("Mul", {x, 2.0f}), s.Const(1)}; },
      [&](Scope s) { return Outputs{s.Op("Neg", {x}), s.Const(0)}; });
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r[0].name(), "choice/Merge:0");
  EXPECT_TRUE(graph.Find("choice/Mul"));
  EXPECT_EQ(ValuesOf<float>(graph, {{p, Tensor(true)}, {x, Tensor(3.0f)}}, r[0]), std::vector<float>{6});
  EXPECT_EQ(ValuesOf<float>(graph, {{p, Tensor(false)}, {x, Tensor(3.0f)}}, r[0]), std::vector<float>{-3});
  EXPECT_EQ(ValuesOf<int32_t>(graph, {{p, Tensor(false)}, {x, Tensor(3.0f)}}, r[1]), std::vector<int32_t>{0});
}

CLIENT_TEST(LoopWithinLoop) {
  Graph graph;
  Scope scope(graph);
  const Output n = scope.Placeholder(DType::kInt32, millrace::Shape{});
  const auto below = [&](Scope s, const Outputs& v) { return s.Op("Less", {v[0], n}); };
  const Outputs r =
      millrace::WhileLoop(scope.SubScope("a"), {scope.Const(0), scope.Const(0)}, below, [&](Scope s, const Outputs& v) {
        const Outputs inner = millrace::WhileLoop(s, {s.Const(0), v[1]}, below, [&](Scope t, const Outputs& w) {
          return Outputs{t.Op("AddV2", {w[0], 1}), t.Op("AddV2", {w[1], v[0]})};
        });
        return Outputs{s.Op("AddV2", {v[0], 1}), inner.at(1)};
      });
  ASSERT_EQ(r.size(), 2u);
  EXPECT_TRUE(graph.Find("a/while/while/NextIteration"));
  EXPECT_EQ(ValuesOf<int32_t>(graph, {{n, Tensor(4)}}, r[1]), std::vector<int32_t>{24});
}

CLIENT_TEST(CaseMapFoldScan) {
  Graph graph;
  Scope scope(graph);
  const Output x = scope.Const(Tensor::Of<float>({3}, {1, 2, 3}));
  const auto product = [](Scope s, const Outputs& v) { return s.Op("Mul", {v[0], v[1]}); };
  const Output squares =
      millrace::MapFn(scope, {x}, [](Scope s, const Outputs& e) { return s.Op("Square", {e[0]}); }).at(0);
  const Output all = millrace::FoldL(scope, {squares}, {}, product).at(0);
  const Output back = millrace::FoldR(scope, {x}, {scope.Const(1.0f)}, [](Scope s, const Outputs& v) {
                        return s.Op("Sub", {v[1], v[0]});
                      }).at(0);
  millrace::LoopOptions options;
  options.reverse = true;
  const Output products = millrace::Scan(scope, {x}, {}, product, options).at(0);
  const Output chosen =
      millrace::Case(scope, {{scope.Const(Tensor(false)), [](Scope s) { return s.Const(1); }},
                             {scope.Const(Tensor(true)), [](Scope s) { return s.Const(2); }}})
          .at(0);
  EXPECT_EQ(ValuesOf<float>(graph, {}, squares), (std::vector<float>{1, 4, 9}));
  EXPECT_EQ(ValuesOf<float>(graph, {}, all), (std::vector<float>{36}));
  EXPECT_EQ(ValuesOf<float>(graph, {}, back), (std::vector<float>{1 - (2 - (3 - 1.0f))}));
  EXPECT_EQ(ValuesOf<float>(graph, {}, products), (std::vector<float>{6, 6, 3}));
  EXPECT_EQ(ValuesOf<int32_t>(graph, {}, chosen), (std::vector<int32_t>{2}));
  const Outputs both = millrace::Tuple(scope, {x, Output(), all}, {millrace::Group(scope, {Operation(x.get().oper)})});
  ASSERT_EQ(both.size(), 3u);
  EXPECT_FALSE(both[1]);
  EXPECT_EQ(ValuesOf<float>(graph, {}, millrace::WithDependencies(scope, {Operation(both[0].get().oper)}, both[2])),
            (std::vector<float>{36}));
}

CLIENT_TEST(ShapeInvariants) {
  Graph graph;
  Scope scope(graph);
  const auto twice = [](Scope s, const Outputs& v) {
    return Outputs{s.Op("AddV2", {v[0], 1}), s.Op("ConcatV2", {Outputs{v[1], v[1]}, 0})};
  };
  const auto once = [](Scope s, const Outputs& v) { return s.Op("Less", {v[0], 1}); };
  millrace::LoopOptions options;
  options.shape_invariants = {std::nullopt, millrace::Shape{-1}};
  const Outputs start = {scope.Const(0), scope.Const(Tensor::Of<float>({1}, {5}))};
  const Outputs r = millrace::WhileLoop(scope, start, once, twice, options);
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(ValuesOf<float>(graph, {}, r[1]), (std::vector<float>{5, 5}));
}

// Another thread that adds to the graph waits; one that looks does not.
CLIENT_TEST(OtherThreadsWaitForTheEnd) {
  Graph graph;
  Scope scope(graph);
  const Output x = scope.Const(1.0f);
  std::thread adder;
  const Outputs r = millrace::Cond(
      scope, scope.Const(Tensor(true)),
      [&](Scope s) {
        std::thread([&] { EXPECT_TRUE(graph.Find("Const")); }).join();
        adder = std::thread([&] {
          MR_FlowOptions none = {};
          none.struct_size = sizeof(none);
          TF_Operation* constant = x.get().oper;
          TF_Status* status = TF_NewStatus();
          EXPECT_NE(MR_Group(graph.get(), &none, &constant, 1, status), nullptr);
          TF_DeleteStatus(status);
        });
        return s.Op("Neg", {x});
      },
      [&](Scope) { return x; });
  adder.join();
  ASSERT_EQ(r.size(), 1u);
  Operation group = graph.Find("group_deps");
  ASSERT_TRUE(group);
  EXPECT_EQ(TF_OperationNumControlInputs(group.get()), 1) << "it is not inside the conditional";
}

CLIENT_TEST(ErrorsComeBackAndLeaveNothing) {
  Graph graph;
  Scope scope(graph);
  const Output x = scope.Const(1.0f);
  const auto bad = [&](Scope s) { return s.Op("MatMul", {x, x}); };
  const auto good = [&](Scope) { return x; };
  const Output p = scope.Const(Tensor(true));
#if MILLRACE_EXCEPTIONS
  EXPECT_THROW(millrace::Cond(scope, p, bad, good), millrace::Error);
  EXPECT_THROW(
      millrace::Cond(scope, p, good, [](Scope) -> Output { throw std::range_error("mine"); }), std::range_error);
  EXPECT_THROW(millrace::Cond(scope, x, good, good), millrace::Error);
#else
  EXPECT_TRUE(millrace::Cond(scope, p, bad, good).empty());
  EXPECT_EQ(scope.status().code(), TF_INVALID_ARGUMENT);
#endif
  EXPECT_FALSE(graph.Find("cond/Switch"));
}

}  // namespace
