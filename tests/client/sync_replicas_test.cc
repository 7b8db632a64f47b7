// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <thread>

#define MILLRACE_EXCEPTIONS 1
#include "millrace/embedding.h"
#include "millrace/server.h"
#include "millrace/sync_replicas.h"

namespace millrace {
namespace {

constexpr int kReplicas = 2;

// w and rows move towards what is fed: the loss is (w - target)^2 / 2 + sum((rows[id] - target)^2) / 2.
struct Replica {
  Graph graph;
  Model model{Scope(graph)};
  Variable w, rows, step;
  Output target, id;
  Operation init;
  std::unique_ptr<SyncReplicas> sync;

  explicit Replica(int worker) {
    Scope s = model.scope();
    w = model.AddVariable("w", s.Const(1.0f));
    rows = model.AddVariable("rows", s.Const(Tensor::Of({3, 2}, std::vector<float>{0, 0, 0, 0, 0, 0})));
    step = model.GlobalStep();
    target = s.Placeholder(DType::kFloat, {1, 1});
    id = s.Placeholder(DType::kInt32, {1});
    const Output dense = s.Op("L2Loss", {s.Op("Sub", {target, w.read})});
    const Output sparse = s.Op("L2Loss", {s.Op("Sub", {EmbeddingLookup(s, {rows}, id), target})});
    const std::string device = "/job:worker/task:" + std::to_string(worker);
    sync = std::make_unique<SyncReplicas>(
        model, Optimizer{"GradientDescent", {{"learning_rate", 0.5}}},
        model.ComputeGradients(s.Op("Add", {dense, sparse})), step,
        SyncReplicasOptions{.replicas_to_aggregate = kReplicas, .worker = device});
    init = model.Initializer();
    PlaceReplica(graph, {.parameter_servers = 1, .job = "/job:worker", .worker = device});
  }
};

int FreePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(at);
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at), size), 0);
  EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size), 0);
  ::close(fd);
  return ntohs(at.sin_port);
}

TEST(SyncReplicasTest, TheMeanOfAllReplicasIsApplied) {
  ClusterSpec cluster;
  for (int i = 0; i < kReplicas; ++i) cluster["worker"].push_back("localhost:" + std::to_string(FreePort()));
  std::vector<Server> servers;
  std::vector<std::unique_ptr<Replica>> replicas;
  std::vector<Session> sessions;
  for (int i = 0; i < kReplicas; ++i) servers.emplace_back(cluster, "worker", i);
  for (int i = 0; i < kReplicas; ++i) {
    replicas.push_back(std::make_unique<Replica>(i));
    sessions.emplace_back(replicas.back()->graph, SessionOptions{.target = servers[static_cast<size_t>(i)].target()});
  }
  Replica& chief = *replicas[0];
  EXPECT_STREQ(Api().OperationDevice(chief.w.ref.get().oper), "/job:worker/task:0");
  std::thread late([&] { replicas[1]->sync->Join(sessions[1]); });
  sessions[0].RunTargets({chief.init});
  chief.sync->Begin(sessions[0]);
  late.join();
  Coordinator coordinator;
  const Session for_sync(chief.graph, {.target = servers[0].target()});
  chief.sync->StartChief(for_sync, coordinator);
  const float targets[kReplicas] = {3, 7};
  float w = 1, rows[3] = {0, 0, 0};
  for (int step = 1; step <= 5; ++step) {
    const int32_t ids[kReplicas] = {step % 3, 2};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kReplicas; ++i) {
      threads.emplace_back([&, i] {
        const Replica& r = *replicas[i];
        sessions[i].RunTargets(
            {r.sync->train()},
            {{r.target, Tensor::Of({1, 1}, std::vector<float>{targets[i]})}, {r.id, Tensor({ids[i]})}});
      });
    }
    for (std::thread& t : threads) t.join();
    w -= 0.5f * ((w - targets[0]) + (w - targets[1])) / 2;
    // Of a row the mean of those who have looked it up (reduction MEAN counts them one by one).
    float sum[3] = {0, 0, 0};
    int count[3] = {0, 0, 0};
    for (size_t i = 0; i < kReplicas; ++i) sum[ids[i]] += rows[ids[i]] - targets[i], ++count[ids[i]];
    for (int r = 0; r < 3; ++r) rows[r] -= count[r] == 0 ? 0 : 0.5f * sum[r] / static_cast<float>(count[r]);
    const std::vector<Tensor> now =
        sessions[1].Run({replicas[1]->w.read, replicas[1]->rows.read, replicas[1]->step.read});
    EXPECT_NEAR(*now[0].data<float>(), w, 1e-5f) << step;
    for (int r = 0; r < 3; ++r) EXPECT_NEAR(now[1].data<float>()[2 * r], rows[r], 1e-5f) << step << ", row " << r;
    EXPECT_EQ(*now[2].data<int64_t>(), step);
  }
  coordinator.RequestStop();
  coordinator.Join();
}

TEST(SyncReplicasTest, WhatCannotBeIsRefused) {
  Graph graph;
  Model model{Scope(graph)};
  EXPECT_THROW(SyncReplicas(model, {}, {}, {}, {}), Error);
  const Variable step = model.GlobalStep();
  EXPECT_THROW(SyncReplicas(model, {}, {}, step, {.replicas_to_aggregate = 0}), Error);
  EXPECT_THROW(SyncReplicas(model, {}, {}, step, {}), Error) << "no gradients";
}

TEST(SyncReplicasTest, StateGoesToServersInTurn) {
  Graph graph;
  Scope s(graph);
  Model model(s);
  std::vector<Variable> v;
  for (int i = 0; i < 3; ++i) v.push_back(model.AddVariable("v" + std::to_string(i), s.Const(1.0f)));
  const Output here = s.WithDevice("/device:CPU:0").Op("Neg", {v[0].read}), sum = s.Op("Add", {v[1].read, here});
  PlaceReplica(graph, {.parameter_servers = 2, .worker = "/job:worker/task:3"});
  const auto device = [](Output o) { return std::string(Api().OperationDevice(o.get().oper)); };
  EXPECT_EQ(device(v[0].ref), "/job:ps/task:0");
  EXPECT_EQ(device(v[1].ref), "/job:ps/task:1");
  EXPECT_EQ(device(v[2].ref), "/job:ps/task:0");
  EXPECT_EQ(device(sum), "/job:worker/task:3");
  EXPECT_EQ(device(here), "/device:CPU:0");
  EXPECT_EQ(device(v[1].read), "/job:ps/task:1") << "where the variable is";
}

TEST(SyncReplicasTest, StateGoesToTheServerWithTheFewestBytes) {
  Graph graph;
  Scope s(graph);
  Model model(s);
  const Variable large = model.AddVariable("large", s.Const(Tensor::Of<float>({100}, std::vector<float>(100, 0)))),
                 small = model.AddVariable("small", s.Const({1.0f, 2.0f})),
                 other = model.AddVariable("other", s.Const({1.0f, 2.0f})),
                 last = model.AddVariable("last", s.Const(1.0f));
  PlaceReplica(graph, {.parameter_servers = 2, .task_of = LeastBytes(2)});
  const auto device = [](const Variable& v) { return std::string(Api().OperationDevice(v.ref.get().oper)); };
  EXPECT_EQ(device(large), "/job:ps/task:0");
  EXPECT_EQ(device(small), "/job:ps/task:1");
  EXPECT_EQ(device(other), "/job:ps/task:1");
  EXPECT_EQ(device(last), "/job:ps/task:1");

  Graph chosen;
  Model of_chosen{Scope(chosen)};
  const Variable v = of_chosen.AddVariable("v", of_chosen.scope().Const(1.0f));
  PlaceReplica(
      chosen, {.parameter_servers = 4, .task_of = [](const Operation& op) { return op.name() == "v" ? 3 : 0; }});
  EXPECT_EQ(device(v), "/job:ps/task:3");
}

}  // namespace
}  // namespace millrace
