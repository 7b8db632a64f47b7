// SPDX-License-Identifier: Apache-2.0
#include "base/granted_memory.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/env.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class GrantedMemoryTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::string whole = absl::StrCat(root_, path);
    ASSERT_TRUE(env_.CreateDirs(std::string(Dirname(whole))).ok());
    ASSERT_TRUE(WriteFileAtomically(env_, whole, text).ok());
  }
  MemoryGrant Granted() { return GrantedMemory(env_, root_); }
  // Of the machine.
  static int64_t Main() { return Info().first; }
  static int64_t Swap() { return Info().second; }

  Env& env_ = Env::Default();
  std::string root_ = absl::StrCat(testing::TempDir(), "/memory_", env_.Random64());

 private:
  static std::pair<int64_t, int64_t> Info() {
    struct sysinfo info{};
    EXPECT_EQ(::sysinfo(&info), 0);
    return {static_cast<int64_t>(info.totalram) * info.mem_unit, static_cast<int64_t>(info.totalswap) * info.mem_unit};
  }
};

TEST_F(GrantedMemoryTest, IsTheMachinesWhereNoGroupLimitsIt) {
  EXPECT_EQ(Granted().main, Main());
  EXPECT_EQ(Granted().with_swap, Main() + Swap());
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "max\n");
  Write("/sys/fs/cgroup/memory.swap.max", "max\n");
  EXPECT_EQ(Granted().main, Main());
  EXPECT_EQ(Granted().with_swap, Main() + Swap());
}

TEST_F(GrantedMemoryTest, ObeysTheGroupAtTheMount) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", absl::StrCat(256 * kMiB, "\n"));
  EXPECT_EQ(Granted().main, 256 * kMiB);
  EXPECT_EQ(Granted().with_swap, 256 * kMiB + Swap());
  Write("/sys/fs/cgroup/memory.swap.max", "0\n");
  EXPECT_EQ(Granted().with_swap, 256 * kMiB);
}

TEST_F(GrantedMemoryTest, GrantsNoMoreThanTheMachineHas) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", absl::StrCat(Main() + kMiB, "\n"));
  Write("/sys/fs/cgroup/memory.swap.max", absl::StrCat(Swap() + kMiB, "\n"));
  EXPECT_EQ(Granted().main, Main());
  EXPECT_EQ(Granted().with_swap, Main() + Swap());
}

TEST_F(GrantedMemoryTest, ObeysTheGroupsAroundItsOwn) {
  Write("/proc/self/cgroup", "0::/kubepods.slice/pod7/training\n");
  Write("/sys/fs/cgroup/kubepods.slice/pod7/training/memory.max", "max\n");
  Write("/sys/fs/cgroup/kubepods.slice/pod7/memory.max", absl::StrCat(300 * kMiB, "\n"));
  Write("/sys/fs/cgroup/kubepods.slice/memory.max", absl::StrCat(500 * kMiB, "\n"));
  EXPECT_EQ(Granted().main, 300 * kMiB);
}

TEST_F(GrantedMemoryTest, ObeysTheFirstVersionOfGroups) {
  Write("/proc/self/cgroup", "4:memory:/docker/a\n3:cpu,cpuacct:/b\n0::/\n");
  Write("/sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes", "9223372036854771712\n");  // none
  EXPECT_EQ(Granted().main, Main());
  EXPECT_EQ(Granted().with_swap, Main() + Swap());
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", absl::StrCat(200 * kMiB, "\n"));
  Write("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", absl::StrCat(250 * kMiB, "\n"));
  EXPECT_EQ(Granted().main, 200 * kMiB);
  EXPECT_EQ(Granted().with_swap, std::min(250 * kMiB, 200 * kMiB + Swap()));
}

TEST_F(GrantedMemoryTest, DoesNotBelieveOtherTexts) {
  Write("/proc/self/cgroup", "nothing\n0:\n0::/\n");
  Write("/sys/fs/cgroup/memory.max", "-5\n");
  EXPECT_EQ(Granted().main, Main());
  Write("/sys/fs/cgroup/memory.max", "much\n");
  EXPECT_EQ(Granted().main, Main());
}

}  // namespace
}  // namespace millrace
