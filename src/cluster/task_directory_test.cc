// SPDX-License-Identifier: Apache-2.0
#include "cluster/task_directory.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace millrace {
namespace {

class TaskDirectoryTest : public ::testing::Test {
 protected:
  static wire::ClusterDef OneJob(const std::string& name, const std::string& address) {
    wire::ClusterDef def;
    wire::JobDef& job = def.job.emplace_back();
    job.name = name;
    job.tasks[0] = address;
    return def;
  }

  Channels channels_{
      Env::Default(), []() -> StatusOr<std::unique_ptr<RpcTransport>> { return Unimplemented("there is none"); }};
  const std::string own_ = "/job:local/replica:0/task:0";
  TaskDirectory tasks_{*ClusterSpec::Make(OneJob("local", "localhost:1")), own_, &channels_, true};
};

TEST_F(TaskDirectoryTest, ClustersOfSessionsEndWhenNobodyHoldsThem) {
  const std::string called = "/job:mine/replica:0/task:0";
  std::shared_ptr<WorkerDirectory> held = *tasks_.Of(OneJob("mine", "localhost:1"), called);
  EXPECT_EQ(held, *tasks_.Of(OneJob("mine", "localhost:1"), called)) << "the same, one directory";
  const std::weak_ptr<WorkerDirectory> seen = held;
  for (int i = 0; i < 3; ++i) tasks_.EndUnused();
  EXPECT_EQ(seen.lock(), *tasks_.Of(OneJob("mine", "localhost:1"), called)) << "it is held";
  held = nullptr;
  tasks_.EndUnused();
  EXPECT_NE(seen.lock(), nullptr) << "its last messages may be on their way";
  tasks_.EndUnused();
  EXPECT_EQ(seen.lock(), nullptr);

  std::vector<std::shared_ptr<WorkerDirectory>> all;
  for (int i = 0; i < 100; ++i) {
    const std::string job = absl::StrCat("j", i);
    const auto own = tasks_.Of(OneJob(job, "localhost:1"), absl::StrCat("/job:", job, "/replica:0/task:0"));
    ASSERT_TRUE(own.ok()) << own.status();
    all.push_back(*own);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(tasks_.Of(OneJob("mine", "localhost:1"), called).status()));
  all.clear();
  tasks_.EndUnused();
  tasks_.EndUnused();
  EXPECT_TRUE(tasks_.Of(OneJob("mine", "localhost:1"), called).ok());
}

TEST_F(TaskDirectoryTest, ClustersOfSessionsMayBeKeptWithinThisOne) {
  const std::string called = "/job:mine/replica:0/task:0";
  EXPECT_TRUE(tasks_.Of(OneJob("mine", "far.example:9"), called).ok());
  tasks_.KeepSessionsWithin({"localhost", 7});
  EXPECT_TRUE(tasks_.Of(OneJob("mine", "127.0.0.1:1"), called).ok()) << "its own address in the cluster";
  EXPECT_TRUE(tasks_.Of(OneJob("mine", "localhost:7"), called).ok()) << "the one that it got";
  for (const char* address : {"far.example:9", "localhost:2"}) {
    const Status s = tasks_.Of(OneJob("mine", address), called).status();
    EXPECT_TRUE(absl::IsPermissionDenied(s) && absl::StrContains(s.message(), address)) << s;
  }
}

}  // namespace
}  // namespace millrace
