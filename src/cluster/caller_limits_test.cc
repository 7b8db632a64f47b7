// SPDX-License-Identifier: Apache-2.0
#include "cluster/caller_limits.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/match.h"

namespace millrace {
namespace {

TEST(CallerLimitsTest, HoldAtTheLimitAndOneMore) {
  CallerLimits limits("MILLRACE_MAX_CALLS", 2);
  std::vector<CallerLimits::Hold> held;
  for (int i = 0; i < 2; ++i) {
    auto one = limits.Begin("a", false);
    ASSERT_TRUE(one.ok()) << one.status();
    held.push_back(*std::move(one));
  }
  const Status s = limits.Begin("a", false).status();
  EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
  EXPECT_EQ(s.message(),
            "a has 2 calls under way here, which is its limit (MILLRACE_MAX_CALLS=2): wait until some have ended, or "
            "start this server with a larger MILLRACE_MAX_CALLS");
  EXPECT_TRUE(limits.Begin("b", false).ok()) << "each has its own";
  held.front().Over();
  held.front().Over();  // nothing more
  auto again = limits.Begin("a", false);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(limits.Begin("a", false).ok());
  held.clear();
  EXPECT_TRUE(limits.Begin("a", false).ok()) << "the one that was let go at once counts no more";
}

TEST(CallerLimitsTest, SomeCallsComeOnTopOfASetting) {
  CallerLimits limits("MILLRACE_MAX_STEPS", 1, 1);
  const auto first = limits.Begin("a", false), second = limits.Begin("a", false);
  EXPECT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(
      limits.Begin("a", false).status().message(),
      "a has 2 calls under way here, which is its limit (MILLRACE_MAX_STEPS=1, and 1 other calls): wait until some "
      "have ended, or start this server with a larger MILLRACE_MAX_STEPS");
}

TEST(CallerLimitsTest, WhatEndsStepsComesThrough) {
  CallerLimits limits("MILLRACE_MAX_CALLS", 1);
  const auto step = limits.Begin("a", false);
  ASSERT_TRUE(step.ok());
  std::vector<CallerLimits::Hold> ends;
  for (int64_t i = 0; i < CallerLimits::kReserve; ++i) {
    auto end = limits.Begin("a", true);
    ASSERT_TRUE(end.ok()) << end.status();
    ends.push_back(*std::move(end));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(limits.Begin("a", true).status()));
  CallerLimits::Hold moved = std::move(ends.back());
  ends.clear();
  EXPECT_FALSE(limits.Begin("a", false).ok()) << "the step is under way, and what was moved";
}

}  // namespace
}  // namespace millrace
