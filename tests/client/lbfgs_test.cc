// SPDX-License-Identifier: Apache-2.0
#define MILLRACE_EXCEPTIONS 1
#include "millrace/lbfgs.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(LbfgsClientTest, MinimizesInASession) {
  Graph graph;
  Model model{Scope(graph)};
  Scope s = model.scope();
  // Rosenbrock's function, of two variables with one coordinate and a vector of two.
  const Variable x = model.AddVariable("x", s.Const(Tensor::Of<double>({2}, std::vector<double>{-1.2, 1.0})));
  const Variable y = model.AddVariable("y", s.Const(Tensor::Of<double>({2, 1}, std::vector<double>{1.0, -0.5})));
  const Output target = s.Placeholder(DType::kDouble, Shape{});
  const Output flat = s.Op("Reshape", {y.read, Tensor::Of<int32_t>({1}, std::vector<int32_t>{2})});
  const Output bend = s.Op("Square", {s.Op("Sub", {flat, s.Op("Square", {x.read})})});
  const Output away = s.Op("Square", {s.Op("Sub", {target, x.read})});
  const Output loss = s.Op("Sum", {s.Op("Add", {s.Op("Mul", {bend, 100.0}), away}), int32_t{0}});
  LbfgsOptions options;
  options.loss_tolerance = 0;
  const Lbfgs lbfgs(model, loss, options);
  const Operation init = model.Initializer();
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  const Session session(graph);
  session.RunTargets({init});
  for (const double to : {1.0, 1.5}) {  // goes on from where it is
    const LbfgsResult result = lbfgs.Minimize(session, {{target, Tensor(to)}});
    EXPECT_TRUE(result.converged) << result.message;
    EXPECT_LT(result.loss, 1e-9);
    EXPECT_LT(result.evaluations, 100);
    const std::vector<Tensor> found = session.Run({x.read, y.read});
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR(found[0].data<double>()[i], to, 1e-4);
      EXPECT_NEAR(found[1].data<double>()[i], to * to, 1e-4);
    }
  }
}

TEST(LbfgsClientTest, RefusesOptionsThatMakeNoSense) {
  Graph graph;
  Model model{Scope(graph)};
  const Variable x = model.AddVariable("x", model.scope().Const(Tensor::Of<float>({1}, std::vector<float>{1})));
  LbfgsOptions options;
  options.max_tries = 0;
  const Lbfgs lbfgs(model, model.scope().Op("Sum", {model.scope().Op("Square", {x.read}), int32_t{0}}), options);
  const Operation init = model.Initializer();
  const Session session(graph);
  session.RunTargets({init});
  EXPECT_THROW(lbfgs.Minimize(session), Error);
}

}  // namespace
}  // namespace millrace
