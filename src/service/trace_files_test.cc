// SPDX-License-Identifier: Apache-2.0
#include "service/trace_files.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "simulation/fake_env.h"
#include "wire/step_stats.h"

namespace millrace {
namespace {

class TraceFilesTest : public ::testing::Test {
 protected:
  ~TraceFilesTest() override {
    ::unsetenv("MILLRACE_TRACE");
    ::unsetenv("MILLRACE_TRACE_STEPS");
  }
  static std::vector<int64_t> Wanted(TraceFiles& files, int steps) {
    std::vector<int64_t> wanted;
    for (int i = 0; i < steps; ++i) {
      if (const int64_t step = files.Next(); step >= 0) wanted.push_back(step);
    }
    return wanted;
  }
};

TEST_F(TraceFilesTest, OffWithoutAFolder) {
  ::unsetenv("MILLRACE_TRACE");
  EXPECT_FALSE(TraceFiles::FromEnvironment()->is_on());
  ::setenv("MILLRACE_TRACE", "", 1);
  EXPECT_FALSE(TraceFiles::FromEnvironment()->is_on());
}

TEST_F(TraceFilesTest, TakesTheStepsOfAList) {
  ::setenv("MILLRACE_TRACE", "/t", 1);
  StatusOr<TraceFiles> usual = TraceFiles::FromEnvironment();
  ASSERT_TRUE(usual.ok() && usual->is_on());
  EXPECT_EQ(Wanted(*usual, 80).size(), 50u);
  ::setenv("MILLRACE_TRACE_STEPS", "2-3,7", 1);
  StatusOr<TraceFiles> some = TraceFiles::FromEnvironment();
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(Wanted(*some, 20), (std::vector<int64_t>{2, 3, 7}));
  for (const char* bad : {"a", "3-2", "1-2-3", "-1", "1,,2", "99999999999999999999"}) {
    ::setenv("MILLRACE_TRACE_STEPS", bad, 1);
    EXPECT_EQ(TraceFiles::FromEnvironment().status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST_F(TraceFilesTest, WritesAMessageAStep) {
  ::setenv("MILLRACE_TRACE", "/some/folder", 1);
  FakeEnv env;
  wire::RunMetadata metadata;
  metadata.step_stats.Ensure().dev_stats.emplace_back().device = "d";
  TraceFiles::FromEnvironment()->Write(env, 12, wire::Encode(metadata));
  const StatusOr<std::vector<std::string>> files = env.ListDir("/some/folder");
  ASSERT_TRUE(files.ok() && files->size() == 1) << files.status();
  EXPECT_TRUE(files->front().ends_with("-000012.pb")) << files->front();
  wire::RunMetadata read;
  ASSERT_TRUE(wire::Decode(*env.ReadFile("/some/folder/" + files->front()), &read).ok());
  EXPECT_EQ(read.step_stats->dev_stats[0].device, "d");
}

}  // namespace
}  // namespace millrace
