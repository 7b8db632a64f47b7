// SPDX-License-Identifier: Apache-2.0
#define MILLRACE_EXCEPTIONS 1
#include "millrace/sandblaster.h"

#include <gtest/gtest.h>

#include <cmath>

#include "millrace/server.h"

namespace millrace {
namespace {

constexpr int64_t kRows = 60, kColumns = 5, kPortions = 12;

// Least squares of rows [begin, begin + n) of some data, with a fourth power that makes it no quadratic function.
Output LossOf(Scope s, const Output& w, const Output& b, const Output& begin, int64_t n) {
  std::vector<double> x, y;
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) x.push_back(std::sin(static_cast<double>(3 * i + 7 * j + i * j)));
    y.push_back(std::cos(static_cast<double>(i)));
  }
  const auto rows = [&](const std::vector<double>& all, int64_t columns) {
    const Output first = s.Op("Pack", {std::vector<Output>{begin, s.Const(Tensor(int64_t{0}))}});
    const Output size = s.Const(Tensor::Of<int64_t>({2}, std::vector<int64_t>{n, columns}));
    return Output(s.Op("Slice", {s.Const(Tensor::Of<double>({kRows, columns}, all)), first, size}));
  };
  const Output got = s.Op("Add", {s.Op("MatMul", {rows(x, kColumns), w}), b});
  const Output error = s.Op("Square", {s.Op("Sub", {got, rows(y, 1)})});
  const Output all = s.Op("Add", {error, s.Op("Square", {error})});
  return s.Op("Sum", {all, s.Const(Tensor::Of<int32_t>({2}, std::vector<int32_t>{0, 1}))});
}

struct Parameters {
  Variable w, b;
  explicit Parameters(Model& model, const std::string& of_w = "", const std::string& of_b = "") {
    const auto make = [&](const std::string& name, const Shape& shape, const std::string& device) {
      Scope s = model.scope().WithDevice(device);
      const std::vector<double> zeros(static_cast<size_t>(shape[0]));
      const Operation op =
          s.WithName(name).Op("VariableV2", {}, {{"dtype", DType::kDouble}, {"shape", Attr::OfShape(shape)}});
      s.WithName(name + "/Assign").Op("Assign", {op, s.Const(Tensor::Of<double>(shape, zeros))});  // the initializer's
      const Variable v = {op, s.WithName(name + "/read").Op("Identity", {op})};
      model.Adopt({v});
      return v;
    };
    w = make("w", {kColumns, 1}, of_w);
    b = make("b", {1}, of_b);
  }
};

LbfgsOptions Options() {
  LbfgsOptions options;
  options.gradient_tolerance = 1e-7;
  options.loss_tolerance = 0;
  return options;
}

struct Found {
  LbfgsResult result;
  std::vector<double> values;
};

std::vector<double> ValuesOf(const Session& session, const Parameters& p) {
  std::vector<double> values;
  for (const Tensor& t : session.Run({p.w.read, p.b.read})) {
    for (int64_t i = 0; i < t.num_elements(); ++i) values.push_back(t.data<double>()[i]);
  }
  return values;
}

Found OnOneMachine() {
  Graph graph;
  Model model{Scope(graph)};
  const Parameters p(model);
  const Lbfgs lbfgs(
      model, LossOf(model.scope(), p.w.read, p.b.read, model.scope().Const(Tensor(int64_t{0})), kRows), Options());
  const Operation init = model.Initializer();
  const Session session(graph);
  session.RunTargets({init});
  const LbfgsResult result = lbfgs.Minimize(session);
  return {result, ValuesOf(session, p)};
}

Output LossOfPortion(Scope s, const std::vector<Output>& parameters, const Output& portion) {
  const int64_t n = kRows / kPortions;
  return LossOf(s, parameters[0], parameters[1], s.Op("Mul", {portion, s.Const(Tensor(n))}), n);
}

TEST(SandblasterTest, IsLbfgsOverShardsAndReplicas) {
  const Found one = OnOneMachine();
  ASSERT_TRUE(one.result.converged) << one.result.message;
  std::vector<std::string> free;  // addresses
  {
    std::vector<Server> taken;
    for (int i = 0; i < 5; ++i) taken.push_back(Server::Local());
    for (const Server& t : taken) free.push_back(t.target().substr(std::string("grpc://").size()));
  }
  const ClusterSpec cluster = {{"ps", {free[0], free[1]}}, {"worker", {free[2], free[3], free[4]}}};
  std::vector<Server> servers;
  for (const auto& [job, tasks] : cluster) {
    for (size_t i = 0; i < tasks.size(); ++i) servers.emplace_back(cluster, job, static_cast<int>(i));
  }
  Graph graph;
  Model model{Scope(graph)};
  const Parameters p(model, "/job:ps/task:0", "/job:ps/task:1");
  Sandblaster sandblaster(model, kPortions, Options());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sandblaster.AddReplica("/job:worker/task:" + std::to_string(i), LossOfPortion), i);
  }
  const Operation init = model.Initializer();
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  std::vector<Session> sessions;
  for (size_t i = 2; i < 5; ++i) sessions.emplace_back(graph, SessionOptions{servers[i].target()});
  sessions[0].RunTargets({init});
  const auto check = [&](const SandblasterResult& result) {
    EXPECT_TRUE(result.converged) << result.message;
    EXPECT_NEAR(result.loss, one.result.loss, 1e-9);
    const std::vector<double> values = ValuesOf(sessions[0], p);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], one.values[i], 1e-5) << i;
  };
  SandblasterResult result = sandblaster.Minimize(sessions[0], sessions);
  check(result);
  EXPECT_TRUE(result.lost_replicas.empty()) << result.first_loss.message();
  EXPECT_GT(result.iterations, 3);
  // The others do what one that fails would do.
  sessions[0].RunTargets({init});
  result = sandblaster.Minimize(sessions[0], {sessions[0], Session(), sessions[2]});
  check(result);
  if (!result.lost_replicas.empty()) {  // its thread had its turn before all was done
    EXPECT_EQ(result.lost_replicas, std::vector<size_t>{1});
    EXPECT_EQ(result.first_loss.code(), TF_FAILED_PRECONDITION) << result.first_loss.message();  // there is no session
  }
  sessions[0].RunTargets({init});
  EXPECT_THROW(sandblaster.Minimize(sessions[0], {Session(), Session(), Session()}), Error) << "nobody is left";
  EXPECT_THROW(sandblaster.Minimize(sessions[0], {sessions[0]}), Error);
}

TEST(SandblasterTest, RefusesWhatMakesNoSense) {
  Graph graph;
  Model model{Scope(graph)};
  const Parameters p(model);
  EXPECT_THROW(Sandblaster(model, 0), Error);
  Graph empty;
  Model of_nothing{Scope(empty)};
  EXPECT_THROW(Sandblaster(of_nothing, 3), Error);
}

TEST(SandblasterTest, NobodyWaitsForASlowReplica) {
  internal::Portions portions(3);
  EXPECT_EQ(portions.Take(0), 0);
  EXPECT_EQ(portions.Take(1), 1);
  EXPECT_EQ(portions.Take(1), 2);
  EXPECT_TRUE(portions.Wins(1, 1));
  portions.IsKept(1, 10);
  EXPECT_EQ(portions.Take(1), 0) << "the slow one's";
  EXPECT_EQ(portions.copies, 1);
  EXPECT_EQ(portions.Take(1), -1) << "it has all that there is";
  EXPECT_TRUE(portions.Wins(1, 0));
  EXPECT_FALSE(portions.Wins(0, 0)) << "the first result counts";
  portions.IsKept(0, 1);
  EXPECT_TRUE(portions.Wins(1, 2));
  EXPECT_FALSE(portions.IsComplete()) << "it is not in the sum yet";
  portions.IsKept(2, 100);
  EXPECT_TRUE(portions.IsComplete());
  EXPECT_EQ(portions.Loss(), 111);
  EXPECT_EQ(portions.Replicas(), std::set<size_t>{1});
  portions.Lose(1);
  EXPECT_FALSE(portions.IsComplete());
  for (int i = 0; i < 3; ++i) EXPECT_GE(portions.Take(0), 0) << "all are done again";
  portions.is_over = true;
  EXPECT_EQ(portions.Take(0), -1);
}

}  // namespace
}  // namespace millrace
