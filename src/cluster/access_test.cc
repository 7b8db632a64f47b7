// SPDX-License-Identifier: Apache-2.0
// Who may call what, and what a server tells of itself.
#include "cluster/access.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "base/logging.h"
#include "cluster/server_status.h"
#include "simulation/fake_env.h"

namespace millrace {
namespace {

class AccessTest : public ::testing::Test {
 protected:
  AccessTest() {
    SetLogListener([this](LogLevel, const std::string& line) { lines_.push_back(line); });
  }
  ~AccessTest() override { SetLogListener(nullptr); }
  Status Call(const std::string& method, std::vector<std::string> names, const std::string& port = "1") {
    RpcContext context;
    context.peer = "ipv4:10.0.0.7:" + port;
    context.peer_names = std::move(names);
    return guard_.Check(method, context);
  }

  FakeEnv env_;
  std::vector<std::string> lines_;
  AccessGuard guard_{&env_, "/job:ps/replica:0/task:0"};
};

TEST_F(AccessTest, EachRoleHasItsMethods) {
  const std::vector<std::string> methods = {"Worker.RunStep", "Master.RunStep", "Server.GetStatus", "Else.What", ""};
  const std::vector<std::pair<std::string, std::vector<bool>>> table = {
      {"millrace://role/task", {true, true, true, true, true}},
      {"millrace://role/client", {false, true, true, false, false}},
      {"millrace://role/monitor", {false, false, true, false, false}},
      {"millrace://role/", {false, false, false, false, false}},
      {"millrace://role/tasks", {false, false, false, false, false}},
      {"task", {false, false, false, false, false}},
      {"", {false, false, false, false, false}},
  };
  for (const auto& [name, allowed] : table) {
    for (size_t i = 0; i < methods.size(); ++i) {
      const Status s = Call(methods[i], {"host.test", name});
      EXPECT_EQ(s.ok(), allowed[i]) << name << " calls " << methods[i] << ": " << s;
      EXPECT_TRUE(s.ok() || absl::IsPermissionDenied(s)) << s;
    }
  }
  EXPECT_TRUE(Call("Worker.RunStep", {"millrace://role/monitor", "millrace://role/task"}).ok());
}

TEST_F(AccessTest, ARefusalIsLoggedOnceAMinute) {
  const Status s = Call("Worker.RunStep", {"millrace://role/client"});
  EXPECT_EQ(s.message(),
            "/job:ps/replica:0/task:0 refuses Worker.RunStep to ipv4:10.0.0.7:1: its certificate has the role client, "
            "want task");
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(Call("Worker.RunStep", {"millrace://role/client"}).ok());
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_TRUE(absl::StrContains(lines_[0], s.message())) << lines_[0];
  EXPECT_FALSE(Call("Worker.RunStep", {}, "2").ok());
  EXPECT_FALSE(Call("Worker.RunStep", {}, "3").ok()) << "the same host";
  EXPECT_EQ(lines_.size(), 2u);
  env_.AdvanceClock(absl::Seconds(61));
  EXPECT_FALSE(Call("Worker.RunStep", {"millrace://role/client"}).ok());
  EXPECT_EQ(lines_.size(), 3u);
  EXPECT_EQ(guard_.refused(), 104);
}

TEST(ServerMeterTest, TellsStepsBytesAndWhoWaits) {
  FakeEnv env;
  wire::ClusterDef def;
  wire::JobDef& job = def.job.emplace_back();
  job.name = "ps";
  job.tasks[3] = "host:1";
  ServerMeter meter(&env, *ClusterSpec::Make(def), "/job:ps/replica:0/task:3");
  using Kind = ServerMeter::Kind;
  const int64_t first = meter.Begin("Master.RunStep", "a \"quoted\"\npeer", Kind::kStep, 2);
  const int64_t second = meter.Begin("Master.RunStep", "b", Kind::kStep, 2);
  EXPECT_GE(second, 0);
  EXPECT_EQ(meter.Begin("Master.RunStep", "c", Kind::kStep, 2), -1) << "the limit is two";
  env.AdvanceClock(absl::Seconds(2));
  EXPECT_TRUE(absl::StrContains(meter.Json({}, 0), "\"seconds_since_step\": null"));
  meter.End(second, true);
  meter.End(meter.Begin("Master.RunStep", "c", Kind::kStep, 2), false);
  meter.End(meter.Begin("Worker.RunStep", "d", Kind::kPartOfStep), true);
  meter.CountBytes(10, 20);
  env.AdvanceClock(absl::Seconds(1));
  GetStatusResponse worker;
  worker.incarnation = 0xab;
  worker.num_sessions = 4;
  EXPECT_EQ(meter.Json(worker, 5),
            "{\"task\": \"/job:ps/replica:0/task:3\", \"incarnation\": \"00000000000000ab\", \"up_seconds\": 3.000000, "
            "\"sessions\": 4, \"steps\": 1, \"failed_steps\": 1, \"step_seconds\": 2.000000, \"steps_in_flight\": 1, "
            "\"parts\": 1, \"bytes_in\": 10, \"bytes_out\": 20, \"refused\": 5, \"seconds_since_step\": 1.000000, "
            "\"tasks\": [{\"job\": \"ps\", \"task\": 3, \"address\": \"host:1\"}], \"calls\": 1, \"waiting\": "
            "[{\"method\": \"Master.RunStep\", \"peer\": \"a \\\"quoted\\\"\\u000apeer\", \"seconds\": 3.000000}]}");
  meter.End(first, true);
  meter.End(first, true);  // nothing more
}

}  // namespace
}  // namespace millrace
