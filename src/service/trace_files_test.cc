// SPDX-License-Identifier: Apache-2.0
#include "service/trace_files.h"

#include <gtest/gtest.h>

#include <cstdlib>

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

TEST_F(TraceFilesTest, NamesAFileAStep) {
  ::setenv("MILLRACE_TRACE", "/some/folder", 1);
  const StatusOr<TraceFiles> files = TraceFiles::FromEnvironment(), other = TraceFiles::FromEnvironment();
  const std::string path = files->PathOf(12);
  EXPECT_TRUE(path.starts_with("/some/folder/trace-") && path.ends_with("-000012.pb")) << path;
  EXPECT_NE(path, other->PathOf(12)) << "of another session";
}

}  // namespace
}  // namespace millrace
