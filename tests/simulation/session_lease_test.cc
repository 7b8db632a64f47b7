// SPDX-License-Identifier: Apache-2.0
// Sessions whose clients are gone, in virtual time.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "base/logging.h"
#include "client/remote_session.h"
#include "cluster/remote_master.h"
#include "graph/graph_builder.h"
#include "graph/graph_def.h"
#include "simulation/sim_cluster.h"
#include "system/system.h"

namespace millrace {
namespace {

// A client on the second worker's machine, with a session of the first worker's server.
class SessionLeaseTest : public ::testing::Test {
 protected:
  SessionLeaseTest() {
    SetLogListener([this](LogLevel, const std::string& line) { lines_.push_back(line); });
    for (const auto& task : cluster_.tasks()) {
      if (task.get() == &cluster_.worker(1)) continue;
      EXPECT_TRUE(task->Start().ok());
    }
    const GraphLock lock(&graph_->mu);
    const GraphBuilder b(&graph_->graph);
    one_ = b.Scalar<float>(1);
    const Output queue = b.Op("FIFOQueueV2", {}, {{"component_types", std::vector<DType>{DType::kFloat}}});
    never_ = b.Op("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::kFloat}}});
    EXPECT_TRUE(b.status().ok()) << b.status();
  }
  ~SessionLeaseTest() override {
    for (const auto& task : cluster_.tasks()) {
      if (task->is_up()) task->Stop();
    }
    SetLogListener(nullptr);
  }

  std::unique_ptr<Session> NewSession() {
    wire::ConfigProto config;
    config.rpc_options.Ensure().use_rpc_for_inprocess_master = true;
    StatusOr<std::unique_ptr<Session>> made =
        NewRemoteSession(graph_, config, cluster_.worker(0).target(), &cluster_.worker(1).channels());
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  static Status Run(Session& session, Output fetch) {
    std::vector<Tensor> outputs;
    return session.Run(nullptr, {}, {}, std::vector<Output>{fetch}, {}, &outputs, nullptr);
  }
  // Of masters, at a server that only the first worker's has one at.
  std::string SessionsOfPs() {
    const std::string status = cluster_.ps(0).server().StatusAsJson();
    const size_t at = status.find("\"sessions\": ");
    return status.substr(at, status.find(',', at) - at);
  }
  int64_t Logged(absl::string_view text) {
    return std::count_if(lines_.begin(), lines_.end(), [&](const auto& line) { return absl::StrContains(line, text); });
  }
  void StartClient(std::function<void()> program) {
    cluster_.worker(1).SetProgram([program = std::move(program)](SimTask&) { program(); });
    EXPECT_TRUE(cluster_.worker(1).Start().ok());
  }

  SimCluster cluster_{1, 1, 2};
  std::vector<std::string> lines_;
  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  Output one_, never_;
};

TEST_F(SessionLeaseTest, ASessionEndsWithItsClient) {
  bool is_open = false;
  std::unique_ptr<Session> session;
  StartClient([&] {
    session = NewSession();
    EXPECT_TRUE(Run(*session, one_).ok());
    is_open = true;
  });
  ASSERT_TRUE(cluster_.world().RunUntil([&] { return is_open; }));
  EXPECT_EQ(SessionsOfPs(), "\"sessions\": 1");
  cluster_.world().RunFor(absl::Hours(5));  // a client that asks for nothing is there
  EXPECT_EQ(SessionsOfPs(), "\"sessions\": 1");
  EXPECT_EQ(Logged("ended session"), 0);
  cluster_.network().Kill("worker1");  // nothing is heard of it any more, its end included
  cluster_.world().RunFor(absl::Minutes(9));
  EXPECT_EQ(SessionsOfPs(), "\"sessions\": 1");
  cluster_.world().RunFor(absl::Minutes(2));
  EXPECT_EQ(SessionsOfPs(), "\"sessions\": 0");
  EXPECT_EQ(Logged("/job:worker/replica:0/task:0: ended session"), 1);
  cluster_.worker(1).host().SetDead(true);
  session.reset();
}

TEST_F(SessionLeaseTest, AClientThatWasStoppedForLongIsTold) {
  Status told;
  bool is_over = false;
  StartClient([&] {
    const std::unique_ptr<Session> session = NewSession();
    EXPECT_TRUE(Run(*session, one_).ok());
    cluster_.worker(1).host().Sleep(absl::Minutes(1));
    told = Run(*session, one_);
    is_over = true;
  });
  cluster_.world().RunFor(absl::Seconds(30));
  cluster_.worker(1).host().SetPaused(true);
  cluster_.world().RunFor(absl::Minutes(15));
  EXPECT_EQ(SessionsOfPs(), "\"sessions\": 0");
  cluster_.worker(1).host().SetPaused(false);
  ASSERT_TRUE(cluster_.world().RunUntil([&] { return is_over; }));
  EXPECT_TRUE(absl::IsAborted(told) && absl::StrContains(told.message(), "its client was not heard for 10m")) << told;
}

TEST_F(SessionLeaseTest, AStepThatTakesLongKeepsItsSessionWithoutPings) {
  Status ended;
  bool is_over = false;
  StartClient([&] {
    RemoteMaster master(*cluster_.worker(1).channels().Get(cluster_.worker(0).address()), &cluster_.worker(1).host());
    CreateSessionRequest request;
    request.graph = *GraphToProto(graph_->graph);
    request.pings = true;
    const StatusOr<CreateSessionResponse> made = master.CreateSession({}, std::move(request));
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->ping_millis, 15'000);
    RunSessionStepRequest step;
    step.session = made->session;
    step.signature.fetches = {never_.node->name()};
    step.has_options = true;
    step.options.timeout_in_ms = 3'600'000;
    ended = master.RunStep({}, step)->status;
    EXPECT_TRUE(master.Ping({}, {made->session}).ok());
    cluster_.worker(1).host().Sleep(absl::Minutes(11));
    EXPECT_TRUE(absl::IsAborted(master.Ping({}, {made->session}).status()));
    EXPECT_TRUE(master.Ping({}, {}).ok());
    is_over = true;
  });
  ASSERT_TRUE(cluster_.world().RunUntil([&] { return is_over; }));
  EXPECT_TRUE(absl::IsDeadlineExceeded(ended)) << ended;
}

TEST_F(SessionLeaseTest, AClientThatPromisesNoPingsHasNoLease) {
  bool is_over = false;
  StartClient([&] {
    RemoteMaster master(*cluster_.worker(1).channels().Get(cluster_.worker(0).address()), &cluster_.worker(1).host());
    const StatusOr<CreateSessionResponse> made = master.CreateSession({}, {});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->ping_millis, 0);
    cluster_.worker(1).host().Sleep(absl::Hours(2));
    EXPECT_TRUE(master.Ping({}, {made->session}).ok());
    is_over = true;
  });
  ASSERT_TRUE(cluster_.world().RunUntil([&] { return is_over; }));
}

TEST_F(SessionLeaseTest, WhereThereAreTooManyTheLongestSilentOneGivesWay) {
  bool is_over = false;
  StartClient([&] {
    RemoteMaster master(*cluster_.worker(1).channels().Get(cluster_.worker(0).address()), &cluster_.worker(1).host());
    const auto create = [&]() -> StatusOr<std::string> {
      CreateSessionRequest request;
      request.pings = true;
      MR_ASSIGN_OR_RETURN(const CreateSessionResponse made, master.CreateSession({}, std::move(request)));
      return made.session;
    };
    std::vector<std::string> all;
    for (int i = 0; i < 1000; ++i) {
      const StatusOr<std::string> made = create();
      ASSERT_TRUE(made.ok()) << made.status();
      all.push_back(*made);
    }
    const Status full = create().status();
    EXPECT_TRUE(absl::IsResourceExhausted(full) && absl::StrContains(full.message(), "MILLRACE_MAX_SESSIONS")) << full;
    cluster_.worker(1).host().Sleep(absl::Seconds(61));
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_TRUE(i == 7 || master.Ping({}, {all[i]}).ok());
    }
    EXPECT_TRUE(create().ok());
    EXPECT_TRUE(absl::IsAborted(master.Ping({}, {all[7]}).status()));
    EXPECT_TRUE(absl::IsResourceExhausted(create().status()));
    is_over = true;
  });
  ASSERT_TRUE(cluster_.world().RunUntil([&] { return is_over; }));
}

}  // namespace
}  // namespace millrace
