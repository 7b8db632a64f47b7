// SPDX-License-Identifier: Apache-2.0
// Servers of one process, which their clients and each other reach by call, or by messages that really are bytes.
#pragma once

#include <gtest/gtest.h>

#include "autodiff/gradients.h"
#include "base/env.h"
#include "client/remote_session.h"
#include "cluster/server.h"
#include "device/cpu/cpu_device.h"
#include "graph/graph_builder.h"
#include "simulation/sim_network.h"
#include "system/system.h"

namespace millrace {

inline constexpr char kPs[] = "/job:ps/task:0", kWorker[] = "/job:worker/task:0";

inline wire::ClusterDef TwoTasks() {
  wire::ClusterDef def;
  for (const auto& [job, address] : {std::pair("ps", "localhost:11"), std::pair("worker", "localhost:12")}) {
    wire::JobDef& j = def.job.emplace_back();
    j.name = job;
    j.tasks[0] = address;
  }
  return def;
}

inline float ValueOf(const StatusOr<std::vector<Tensor>>& got) {
  if (!got.ok() || got->empty()) return -1e9f;
  return got->front().ScalarValue<float>().value_or(-1e9f);
}

// A client with a graph of its own.
struct Client {
  RefPtr<SharedGraph> graph = MakeRef<SharedGraph>(&System::Default().ops());
  std::unique_ptr<Session> session;

  template <typename Build>
  auto Add(Build build) {
    const GraphLock lock(&graph->mu);
    const GraphBuilder b(&graph->graph);
    auto built = build(b);
    EXPECT_TRUE(b.status().ok()) << b.status();
    return built;
  }
  StatusOr<std::vector<Tensor>> Run(std::vector<Output> fetches, std::vector<Node*> targets = {},
                                    std::vector<Output> feeds = {}, std::vector<Tensor> values = {},
                                    const wire::RunOptions* options = nullptr, wire::RunMetadata* metadata = nullptr) {
    std::vector<Tensor> outputs;
    MR_RETURN_IF_ERROR(session->Run(options, feeds, values, fetches, targets, &outputs, metadata));
    return outputs;
  }
};

// Whether all goes by messages.
class ServersTest : public ::testing::TestWithParam<bool> {
 protected:
  ServersTest() : channels_(Env::Default(), [this] { return NewTransport(); }) {}

  virtual StatusOr<std::unique_ptr<RpcTransport>> NewTransport() {
    if (!GetParam()) return Unimplemented("there is no transport here");
    return network_.NewTransport("here", Env::Default());
  }

  StatusOr<std::unique_ptr<Server>> NewServer(const wire::ServerDef& def) {
    ServerParts parts;
    parts.make_devices = [](const DeviceName& task, const wire::ConfigProto&) {
      DeviceName name = task;
      name.type = "CPU";
      name.id = 0;
      std::vector<std::unique_ptr<Device>> devices;
      devices.push_back(NewCpuDevice(name, Env::Default().Random64(), ProcessThreadPool()));
      return StatusOr<std::vector<std::unique_ptr<Device>>>(std::move(devices));
    };
    parts.master.env = &Env::Default();
    parts.master.ops = &System::Default().ops();
    parts.master.kernels = &System::Default().kernels();
    parts.master.differentiate = AddDenseGradients;
    parts.master.liveness = liveness_;
    parts.channels = &channels_;
    parts.all_by_messages = GetParam();
    parts.allows_any_cluster = allows_any_cluster_;
    if (change_parts_) change_parts_(parts);
    return Server::New(def, parts);
  }
  std::unique_ptr<Server> Started(const std::string& job, const wire::ClusterDef& cluster = TwoTasks(),
                                  const wire::ConfigProto& config = {}) {
    wire::ServerDef def;
    def.cluster.Ensure() = cluster;
    def.default_session_config.Ensure() = config;
    def.job_name = job;
    def.protocol = "grpc";
    StatusOr<std::unique_ptr<Server>> server = NewServer(def);
    EXPECT_TRUE(server.ok()) << server.status();
    if (!server.ok()) return nullptr;
    EXPECT_TRUE((*server)->Start().ok());
    return *std::move(server);
  }
  Client NewClient(const std::string& target, wire::ConfigProto config = {}) {
    config.rpc_options.Ensure().use_rpc_for_inprocess_master = GetParam();
    Client client;
    client.session = *NewRemoteSession(client.graph, config, target, &channels_);
    return client;
  }
  static Output Variable(const GraphBuilder& b, const char* name, const char* device) {
    return b.WithName(name).WithDevice(device).Op(
        "VariableV2", {}, {{"shape", PartialShape::Scalar()}, {"dtype", DType::kFloat}});
  }

  Liveness liveness_;
  bool allows_any_cluster_ = false;
  std::function<void(ServerParts&)> change_parts_;
  SimNetwork network_{Env::Default(), 1};
  Channels channels_;
};

}  // namespace millrace
