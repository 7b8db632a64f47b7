// SPDX-License-Identifier: Apache-2.0
#include "base/granted_processors.h"

#include <sched.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/env.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

class GrantedProcessorsTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = absl::StrCat(testing::TempDir(), "/granted_", env_.Random64());
    // As many as the machine has: a mask of more processors than that counts those that are there.
    all_ = GrantedProcessors(env_, root_);
  }
  void Write(const std::string& path, const std::string& text) {
    const std::string whole = absl::StrCat(root_, path);
    ASSERT_TRUE(env_.CreateDirs(std::string(Dirname(whole))).ok());
    ASSERT_TRUE(WriteFileAtomically(env_, whole, text).ok());
  }
  int Granted() { return GrantedProcessors(env_, root_); }

  Env& env_ = Env::Default();
  std::string root_;
  int all_ = 0;
};

TEST_F(GrantedProcessorsTest, CountsThoseOfTheAffinityMask) {
  EXPECT_GE(all_, 1);
  int granted = 0;
  std::thread([&] {
    cpu_set_t now;
    ASSERT_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
    int first = 0;
    while (!CPU_ISSET(first, &now)) ++first;
    CPU_ZERO(&now);
    CPU_SET(first, &now);
    ASSERT_EQ(sched_setaffinity(0, sizeof(now), &now), 0);
    granted = Granted();
  }).join();
  EXPECT_EQ(granted, 1);
}

TEST_F(GrantedProcessorsTest, ObeysTheGroupAtTheMount) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(Granted(), 1);
  Write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(Granted(), all_);
}

TEST_F(GrantedProcessorsTest, ObeysTheGroupsAroundItsOwn) {
  Write("/proc/self/cgroup", "0::/system.slice/training.service\n");
  Write("/sys/fs/cgroup/system.slice/training.service/cpu.max", "max 100000\n");
  EXPECT_EQ(Granted(), all_);
  Write("/sys/fs/cgroup/system.slice/cpu.max", "100000 100000\n");
  EXPECT_EQ(Granted(), 1);
}

TEST_F(GrantedProcessorsTest, ObeysTheFirstVersionOfGroups) {
  Write("/proc/self/cgroup", "4:memory:/a\n3:cpu,cpuacct:/docker/b\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/b/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Granted(), all_);
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "30000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Granted(), 1);
}

TEST_F(GrantedProcessorsTest, DoesNotBelieveOtherTexts) {
  Write("/proc/self/cgroup", "nothing\n0:\n::\n");
  Write("/sys/fs/cgroup/cpu.max", "-5 0\n");
  EXPECT_EQ(Granted(), all_);
}

}  // namespace
}  // namespace millrace
