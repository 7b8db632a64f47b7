// SPDX-License-Identifier: Apache-2.0
// The C++ client, compiled twice: once returning results, once throwing (MILLRACE_EXCEPTIONS).
#include <gtest/gtest.h>

#include "client_modes.h"
#include "millrace/millrace.h"

namespace {

using millrace::DType;
using millrace::Graph;
using millrace::Operation;
using millrace::Output;
using millrace::Scope;
using millrace::Session;
using millrace::Shape;
using millrace::Tensor;

std::vector<float> Floats(const Tensor& t) { return Value(t.values<float>()); }

CLIENT_TEST(BuildsAndRuns) {
  Graph graph;
  Scope scope(graph);
  Output x = scope.Placeholder(DType::kFloat, {2, 2});
  Operation y = scope.Op("MatMul", {x, scope.Const(Tensor::Of<float>({2, 2}, {1, 2, 3, 4}))}, {{"transpose_b", true}});
  Session session(graph);
  const Tensor fed = Tensor::Of<float>({2, 2}, {1, 0, 0, 1});
  const std::vector<Tensor> out = Value(session.Run({{x, fed}}, {y}));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].shape(), (Shape{2, 2}));
  EXPECT_EQ(Floats(out[0]), (std::vector<float>{1, 3, 2, 4}));
  Shape known;
  ASSERT_TRUE(graph.ShapeOf(y, &known));
  EXPECT_EQ(known, (Shape{2, 2}));
}

CLIENT_TEST(NamesScopesAndControl) {
  Graph graph;
  Scope scope(graph);
  Output a = scope.Const(1.0f);
  EXPECT_EQ(a.name(), "Const:0");
  EXPECT_EQ(scope.Const(2.0f).name(), "Const_1:0");
  Scope layer = scope.SubScope("layer");
  EXPECT_EQ(layer.Op("Neg", {a}).name(), "layer/Neg");
  EXPECT_EQ(scope.SubScope("layer").WithName("n").Op("Neg", {a}).name(), "layer_1/n");
  Operation first = scope.Op("NoOp", {});
  Operation after = scope.WithControl({first}).WithDevice("/device:CPU:0").Op("Identity", {a});
  EXPECT_EQ(millrace::Api().OperationNumControlInputs(after.get()), 1);
  EXPECT_STREQ(millrace::Api().OperationDevice(after.get()), "/device:CPU:0");
  EXPECT_NE(std::string(millrace::Api().OperationLocation(after.get())).find("client_test.cc:"), std::string::npos);
  EXPECT_EQ(graph.Find("layer/Neg").type(), "Neg");
  EXPECT_FALSE(graph.Find("nothing"));
}

CLIENT_TEST(Differentiates) {
  Graph graph;
  Scope scope(graph);
  Output x = scope.Placeholder(DType::kFloat);
  Output y = scope.Op("Mul", {x, x});
  const std::vector<Output> g = Value(graph.Gradients({y}, {x, scope.Const(1.0f)}));
  ASSERT_TRUE(g[0]);
  EXPECT_FALSE(g[1]);
  EXPECT_EQ(Floats(Value(Session(graph).Run({{x, {3.f, 4.f}}}, {g[0]}))[0]), (std::vector<float>{6, 8}));
}

CLIENT_TEST(GraphDefRoundTrip) {
  Graph graph;
  Scope scope(graph);
  scope.WithName("y").Op("Neg", {2.0f});
  const std::string bytes = Value(graph.ToGraphDef());
  Graph copy;
#if MILLRACE_EXCEPTIONS
  copy.Import(bytes, "p");
#else
  ASSERT_TRUE(copy.Import(bytes, "p").ok());
#endif
  EXPECT_EQ(Value(Value(Session(copy).Run({copy.Find("p/y")}))[0].scalar<float>()), -2.0f);
}

CLIENT_TEST(TensorsHoldStringsAndShare) {
  const Tensor t = Tensor::Strings({2}, {"short", std::string(100, 'l')});
  const Tensor same = t;
  EXPECT_EQ(same.get(), t.get());
  EXPECT_EQ(Value(t.strings())[1], std::string(100, 'l'));
  EXPECT_EQ(t.data<float>(), nullptr);
  EXPECT_FALSE(Tensor::Of<float>({3}, {1, 2}));
  EXPECT_EQ(Tensor({1, 2, 3}).dtype(), DType::kInt32);
  EXPECT_EQ(Tensor(true).dtype(), DType::kBool);
  EXPECT_EQ(Value(Tensor(int64_t{5}).scalar<int64_t>()), 5);
}

#if MILLRACE_EXCEPTIONS
CLIENT_TEST(ErrorsAreThrown) {
  Graph graph;
  Scope scope(graph);
  EXPECT_THROW(scope.Op("NoSuchOp", {}), millrace::Error);
  EXPECT_NO_THROW(scope.Op("NoOp", {})) << "the graph stays usable";
  Output x = scope.Placeholder(DType::kFloat);
  try {
    Session(graph).Run({x});
    FAIL();
  } catch (const millrace::Error& e) {
    EXPECT_EQ(e.code(), TF_INVALID_ARGUMENT);
  }
  EXPECT_THROW(Tensor(1.0f).scalar<int>(), millrace::Error);
  EXPECT_THROW(Session(graph, {"grpc://nowhere", ""}), millrace::Error);
}
#else
CLIENT_TEST(ErrorsAreReturned) {
  Graph graph;
  Scope scope(graph);
  EXPECT_FALSE(scope.Op("NoSuchOp", {}));
  EXPECT_FALSE(scope.status().ok());
  const std::string first = scope.status().message();
  EXPECT_FALSE(scope.Op("NoOp", {})) << "nothing is built after an error";
  EXPECT_EQ(scope.status().message(), first);
  EXPECT_EQ(Session(graph).Run({Output()}).status().code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(Tensor(1.0f).scalar<int>().status().code(), TF_INVALID_ARGUMENT);
  Session none(graph, {"grpc://nowhere", ""});
  EXPECT_FALSE(none);
  EXPECT_EQ(none.Run({Output()}).status().code(), none.status().code());
}
#endif

}  // namespace
