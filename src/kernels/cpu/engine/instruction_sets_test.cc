// SPDX-License-Identifier: Apache-2.0
// Also what makes the variants of this program run other instruction sets.
#include "kernels/cpu/engine/instruction_sets.h"

#include <cstdlib>
#include <string_view>

#include "gtest/gtest.h"
#include "hwy/highway.h"

namespace millrace {
namespace {

class Limited final : public ::testing::Environment {
  void SetUp() override { LimitInstructionSets(); }
};
[[maybe_unused]] const ::testing::Environment* const limited = ::testing::AddGlobalTestEnvironment(new Limited);

TEST(InstructionSetsTest, TheEnvironmentLimitsThem) {
  const char* wanted = std::getenv("MILLRACE_MAX_ISA");
  const auto targets = hwy::SupportedTargets();
  EXPECT_NE(targets, 0);
#if HWY_ARCH_X86
  if (wanted == nullptr) return;
  if (std::string_view(wanted) == "sse2") {
    EXPECT_EQ(targets, HWY_STATIC_TARGET);
  } else {
    EXPECT_EQ(targets & (HWY_AVX3 | HWY_AVX3_DL), 0);
  }
#else
  (void)wanted;
#endif
}

}  // namespace
}  // namespace millrace
