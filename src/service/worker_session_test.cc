// SPDX-License-Identifier: Apache-2.0
#include "service/worker_session.h"

#include <gtest/gtest.h>

#include "simulation/worker_for_tests.h"

namespace millrace {
namespace {

class WorkerSessionTest : public ::testing::Test {
 protected:
  StatusOr<std::vector<int64_t>> Register(std::vector<std::string> nodes) {
    std::vector<PartitionToRegister> partitions;
    for (const std::string& node : nodes) partitions.push_back(ops_.Counting(node));
    MR_ASSIGN_OR_RETURN(RegisterPartitionsResponse response, session_->Register(std::move(partitions), nullptr));
    EXPECT_EQ(response.cuts.size(), nodes.size());
    return std::move(response.handles);
  }

  OpsForTests ops_;
  WorkerEnv env_{OneDeviceForTests(), &ops_.kernels, nullptr};
  std::shared_ptr<WorkerSession> session_ = std::make_shared<WorkerSession>(env_, 1);
};

TEST_F(WorkerSessionTest, HandlesFindTheirPartitions) {
  const auto handles = Register({"a", "b"});
  ASSERT_TRUE(handles.ok()) << handles.status();
  ASSERT_EQ(handles->size(), 2u);
  EXPECT_NE((*handles)[0], (*handles)[1]);
  const auto held = session_->Find((*handles)[0]);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held->plan->nodes().size(), 1u);
  session_->Deregister({handles->data(), 1});
  EXPECT_TRUE(absl::IsNotFound(session_->Find((*handles)[0]).status()));
  EXPECT_TRUE(session_->Find((*handles)[1]).ok());
  session_->Deregister({handles->data(), 1});  // again: nothing
  EXPECT_EQ(held->plan->nodes().size(), 1u) << "what was found lives on";
}

TEST_F(WorkerSessionTest, APartitionOfAnUnknownSenderIsRefused) {
  PartitionToRegister p = ops_.Counting("a");
  p.peers.push_back({});
  p.peers.back().edge = 3;
  p.peers.back().task = "/job:y/replica:0/task:0";
  std::vector<PartitionToRegister> partitions;
  partitions.push_back(std::move(p));
  const Status s = session_->Register(std::move(partitions), nullptr).status();
  EXPECT_TRUE(absl::IsUnavailable(s));
  EXPECT_NE(s.message().find("/job:y"), absl::string_view::npos) << s;
}

TEST_F(WorkerSessionTest, PositionsOfStreamsWaitForTheirKernels) {
  ASSERT_TRUE(Register({"a"}).ok());
  session_->SetRandomPositions({{"a", {5}}, {"later", {9}}});
  RandomPositions positions;
  session_->GetRandomPositions(&positions);
  EXPECT_EQ(positions.at("a")[0], 5u);
  EXPECT_EQ(positions.at("later")[0], 9u) << "told although it has no kernel";
  ASSERT_TRUE(Register({"later"}).ok());
  positions.clear();
  session_->GetRandomPositions(&positions);
  EXPECT_EQ(positions.at("later")[0], 9u);
}

TEST_F(WorkerSessionTest, ClosedItRegistersNothingAndKeepsItsFirstReason) {
  ASSERT_TRUE(Register({"a"}).ok());
  session_->Close(Unavailable("first"));
  session_->Close(Cancelled("second"));
  EXPECT_EQ(Register({"b"}).status(), Unavailable("first"));
  EXPECT_EQ(session_->steps().closed(), Unavailable("first"));
}

}  // namespace
}  // namespace millrace
