// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#define MILLRACE_EXCEPTIONS 1
#include "millrace/downpour.h"
#include "millrace/server.h"

namespace millrace {
namespace {

struct Replica {
  Graph graph;
  Model model{Scope(graph)};
  Variable w;
  Output target, loss;

  explicit Replica(const std::vector<float>& first) {
    Scope s = model.scope();
    const auto n = static_cast<int64_t>(first.size());
    w = model.AddVariable("w", s.Const(Tensor::Of({n}, first)));
    target = s.Placeholder(DType::kFloat, {n});
    loss = s.Op("Sum", {s.Op("Square", {s.Op("Sub", {w.read, target})}), int32_t{0}});
  }
};

TEST(DownpourTest, PushesAndFetchesNowAndThen) {
  Replica r({1, 1, 1, 1});
  const Optimizer sgd = {"GradientDescent", {{"learning_rate", 0.5}}};
  Downpour downpour(
      r.model, sgd, r.model.ComputeGradients(r.loss), {}, {.n_push = 2, .n_fetch = 3, .local_learning_rate = 0.1});
  const Operation init = r.model.Initializer();
  ASSERT_TRUE(r.graph.status().ok()) << r.graph.status().message();
  ASSERT_EQ(downpour.centers().size(), 1u);
  EXPECT_EQ(downpour.centers()[0].name(), "downpour/w/center");
  const Session session(r.graph);
  session.RunTargets({init});
  session.RunTargets({downpour.publish()});
  const std::vector<float> goal = {0, 1, 2, 3};
  std::vector<float> local(4, 1), center(4, 1), sum(4, 0);
  int64_t pushes = 0;
  for (int k = 1; k <= 12; ++k) {
    float loss = 0;
    for (size_t i = 0; i < 4; ++i) {
      const float gradient = 2 * (local[i] - goal[i]);
      loss += (local[i] - goal[i]) * (local[i] - goal[i]);
      sum[i] += gradient;
      local[i] -= 0.1f * gradient;
      if (k % 2 == 0) center[i] -= 0.5f * sum[i], sum[i] = 0;
    }
    pushes += k % 2 == 0;
    if (k % 3 == 0) local = center;
    const std::vector<Tensor> got = downpour.Step(session, {{r.target, Tensor::Of({4}, goal)}}, {r.loss});
    EXPECT_NEAR(got[0].data<float>()[0], loss, 1e-4f * (1 + loss)) << k;
    const std::vector<Tensor> now = session.Run({r.w.read, downpour.centers()[0].read, downpour.pushes().read});
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(now[0].data<float>()[i], local[i], 1e-4f * (1 + std::abs(local[i]))) << k;
      EXPECT_NEAR(now[1].data<float>()[i], center[i], 1e-4f * (1 + std::abs(center[i]))) << k;
    }
    EXPECT_EQ(now[2].data<int64_t>()[0], pushes) << k;
  }
}

TEST(DownpourTest, ReplicasShareTheCentreOfACluster) {
  std::vector<std::string> free;  // addresses
  {
    const std::vector<Server> taken = {Server::Local(), Server::Local(), Server::Local(), Server::Local()};
    for (const Server& t : taken) free.push_back(t.target().substr(std::string("grpc://").size()));
  }
  const ClusterSpec cluster = {{"ps", {free[0], free[1]}}, {"worker", {free[2], free[3]}}};
  std::vector<Server> servers;
  for (const auto& [job, tasks] : cluster) {
    for (int i = 0; i < 2; ++i) servers.emplace_back(cluster, job, i);
  }
  const std::vector<float> goal = {1, -2, 3};
  const auto train = [&](int task, bool is_chief, int num_steps) {
    Replica r({9, 9, 9});
    Downpour downpour(r.model, {"Adagrad", {{"learning_rate", 1.0}}}, r.model.ComputeGradients(r.loss),
                      {"/job:ps/task:1"}, {.n_push = 2, .n_fetch = 2, .local_learning_rate = 0.02});
    const Operation init = r.model.Initializer();
    const Session session(r.graph, {servers[static_cast<size_t>(2 + task)].target()});
    if (is_chief) session.RunTargets({init}), session.RunTargets({downpour.publish()});
    if (!is_chief) downpour.Begin(session, 10);
    float loss = 0;
    for (int k = 0; k < num_steps; ++k) {
      loss = downpour.Step(session, {{r.target, Tensor::Of({3}, goal)}}, {r.loss})[0].data<float>()[0];
    }
    return std::pair(loss, session.Run({downpour.pushes().read})[0].data<int64_t>()[0]);
  };
  std::pair<float, int64_t> other;
  std::thread second([&] { other = train(1, false, 300); });
  const std::pair<float, int64_t> first = train(0, true, 300);
  second.join();
  EXPECT_LT(first.first, 1.0f);
  EXPECT_LT(other.first, 1.0f);
  EXPECT_GE(std::max(first.second, other.second), 160) << "pushes of both count";
}

TEST(DownpourTest, RefusesWhatMakesNoSense) {
  Replica r({1});
  EXPECT_THROW(Downpour(r.model, {}, r.model.ComputeGradients(r.loss), {}, {.n_push = 0}), Error);
  EXPECT_THROW(Downpour(r.model, {}, {}, {}), Error);
  Replica nobody({1});
  Downpour downpour(nobody.model, {}, nobody.model.ComputeGradients(nobody.loss), {});
  const Session session(nobody.graph);
  try {
    downpour.Begin(session, 5, std::chrono::milliseconds(100));
    FAIL() << "there is no chief";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), TF_DEADLINE_EXCEEDED) << e.what();
  }
}

}  // namespace
}  // namespace millrace
