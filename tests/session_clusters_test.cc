// SPDX-License-Identifier: Apache-2.0
// Sessions that bring a cluster of their own, or have state of their own.
#include <thread>

#include "absl/strings/match.h"
#include "servers_fixture.h"

namespace millrace {
namespace {

class SessionClustersTest : public ServersTest {
 protected:
  static wire::ClusterDef OneJob(const std::string& name, const std::vector<std::string>& addresses) {
    wire::ClusterDef def;
    wire::JobDef& job = def.job.emplace_back();
    job.name = name;
    for (size_t i = 0; i < addresses.size(); ++i) job.tasks[static_cast<int32_t>(i)] = addresses[i];
    return def;
  }
  static wire::ConfigProto WithCluster(const wire::ClusterDef& cluster) {
    wire::ConfigProto config;
    config.cluster_def.Ensure() = cluster;
    return config;
  }
  // One that answers itself; its session is made by the first call.
  static Status Ask(Client& client) {
    const Output one = client.Add([&](const GraphBuilder& b) { return b.Scalar(1.0f); });
    return client.Run({one}).status();
  }
};

// Two servers of clusters of their own; the session calls them as it likes.
TEST_P(SessionClustersTest, ASessionBringsItsCluster) {
  allows_any_cluster_ = true;
  const auto first = Started("local", OneJob("local", {"localhost:21"}));
  const auto second = Started("local", OneJob("local", {"localhost:22"}));
  Client client = NewClient(first->target(), WithCluster(OneJob("mine", {"localhost:21", "localhost:22"})));
  Output w, twice;
  Node* init = nullptr;
  client.Add([&](const GraphBuilder& b) {
    w = Variable(b, "w", "/job:mine/task:1");
    init = b.WithDevice("/job:mine/task:1").OpNode("Assign", {w, b.Scalar(3.0f)});
    twice = b.WithDevice("/job:mine/task:0").Mul(b.WithDevice("/job:mine/task:1").Identity(w), b.Scalar(2.0f));
    return 0;
  });
  ASSERT_TRUE(client.Run({}, {init}).ok());
  wire::RunOptions options;
  options.trace_level = wire::RunOptions::kFullTrace;
  wire::RunMetadata metadata;
  EXPECT_EQ(ValueOf(client.Run({twice}, {}, {}, {}, &options, &metadata)), 6.0f);
  ASSERT_TRUE(wire::Decode(wire::Encode(metadata), &metadata).ok());
  ASSERT_TRUE(metadata.step_stats);
  for (const auto& d : metadata.step_stats->dev_stats)
    EXPECT_FALSE(absl::StartsWith(d.device, "/job:local")) << d.device;
  // A constant that is fetched has run nowhere; its device is the one that it asks for.
  Output constant;
  client.Add([&](const GraphBuilder& b) {
    constant = b.WithDevice("/job:mine/task:1").WithName("constant").Scalar(5.0f);
    return 0;
  });
  metadata = {};
  EXPECT_EQ(ValueOf(client.Run({constant}, {}, {}, {}, &options, &metadata)), 5.0f);
  ASSERT_TRUE(wire::Decode(wire::Encode(metadata), &metadata).ok());
  ASSERT_TRUE(metadata.step_stats);
  std::vector<std::string> devices;
  for (const auto& d : metadata.step_stats->dev_stats) {
    for (const auto& n : d.node_stats) {
      if (n.node_name == "constant") devices.push_back(d.device);
    }
  }
  EXPECT_EQ(devices, std::vector<std::string>{"/job:mine/replica:0/task:1/device:CPU:0"});
  // The variable is its server's, whatever a session calls that.
  wire::ConfigProto renamed;
  wire::JobDef& other = renamed.cluster_def.Ensure().job.emplace_back();
  other.name = "mine";
  other.tasks[1] = "localhost:22";
  Client again = NewClient(second->target(), renamed);
  Output same;
  again.Add([&](const GraphBuilder& b) {
    same = Variable(b, "w", "/job:mine/task:1");
    return 0;
  });
  EXPECT_EQ(ValueOf(again.Run({same})), 3.0f);
  Client lost = NewClient(first->target(), renamed);
  lost.Add([&](const GraphBuilder& b) {
    same = b.Scalar(1.0f);
    return 0;
  });
  const Status s = lost.Run({same}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(s) && absl::StrContains(s.message(), "0 tasks at localhost:21")) << s;
}

TEST_P(SessionClustersTest, ASessionMayHaveItsOwnState) {
  const auto ps = Started("ps"), worker = Started("worker");
  wire::ConfigProto own;
  own.isolate_session_state = true;
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(NewClient(worker->target(), i == 0 ? wire::ConfigProto() : own));
  for (int i = 0; i < 3; ++i) {
    Output w;
    Node* init = nullptr;
    clients[static_cast<size_t>(i)].Add([&](const GraphBuilder& b) {
      w = Variable(b, "w", kPs);
      init = b.WithDevice(kPs).OpNode("Assign", {w, b.Scalar(static_cast<float>(i))});
      return 0;
    });
    EXPECT_TRUE(absl::IsFailedPrecondition(clients[static_cast<size_t>(i)].Run({w}).status())) << "somebody else's";
    EXPECT_TRUE(clients[static_cast<size_t>(i)].Run({}, {init}).ok());
    EXPECT_EQ(ValueOf(clients[static_cast<size_t>(i)].Run({w})), static_cast<float>(i));
  }
}

// A client may not send a server to whom it likes, but call those of its cluster otherwise.
TEST_P(SessionClustersTest, AServerConnectsToItsOwnClusterAlone) {
  const auto ps = Started("ps"), worker = Started("worker");
  Client renamed = NewClient(worker->target(), WithCluster(OneJob("mine", {"localhost:11", "localhost:12"})));
  EXPECT_TRUE(Ask(renamed).ok());
  for (const char* elsewhere : {"localhost:13", "internal.example:11"}) {
    Client client = NewClient(worker->target(), WithCluster(OneJob("mine", {elsewhere, "localhost:12"})));
    const Status s = Ask(client);
    EXPECT_TRUE(absl::IsPermissionDenied(s) && absl::StrContains(s.message(), elsewhere)) << s;
  }
}

TEST_P(SessionClustersTest, AClusterEndsWithItsSession) {
  liveness_.period = absl::Milliseconds(5);
  const auto ps = Started("ps"), worker = Started("worker");
  const auto open = [&](const std::string& job) {
    return NewClient(worker->target(), WithCluster(OneJob(job, {"localhost:11", "localhost:12"})));
  };
  std::vector<Client> held;
  Status s;
  for (int i = 0; i < 300 && s.ok(); ++i) {
    held.push_back(open(absl::StrCat("held", i)));
    s = Ask(held.back());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(s) && absl::StrContains(s.message(), "100 clusters")) << s;
  EXPECT_EQ(held.size(), 101u);
  held.clear();
  const absl::Time end = absl::Now() + absl::Seconds(60);
  for (int i = 0; i < 250; ++i) {
    do {  // those of closed sessions end with one of the next beats
      Client client = open(absl::StrCat("next", i));
      s = Ask(client);
      if (!s.ok()) absl::SleepFor(absl::Milliseconds(10));
    } while (absl::IsResourceExhausted(s) && absl::Now() < end);
    ASSERT_TRUE(s.ok()) << i << s;
  }
}

INSTANTIATE_TEST_SUITE_P(, SessionClustersTest, ::testing::Bool(), [](const auto& param) {
  return param.param ? "ByMessages" : "ByCall";
});

}  // namespace
}  // namespace millrace
