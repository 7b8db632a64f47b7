// SPDX-License-Identifier: Apache-2.0
#include "cluster/caller_limits.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/match.h"

namespace millrace {
namespace {

TEST(CallerLimitsTest, HoldAtTheLimitAndOneMore) {
  CallerLimits limits(2, "MILLRACE_MAX_CALLS");
  std::vector<CallerLimits::Hold> held;
  for (int i = 0; i < 2; ++i) {
    auto one = limits.Begin("a", false);
    ASSERT_TRUE(one.ok()) << one.status();
    held.push_back(*std::move(one));
  }
  const Status s = limits.Begin("a", false).status();
  EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
  EXPECT_EQ(s.message(), "a has 2 calls under way here, its limit is 2 (MILLRACE_MAX_CALLS)");
  EXPECT_TRUE(limits.Begin("b", false).ok()) << "each has its own";
  held.front().Over();
  held.front().Over();  // nothing more
  auto again = limits.Begin("a", false);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(limits.Begin("a", false).ok());
  held.clear();
  EXPECT_TRUE(limits.Begin("a", false).ok()) << "the one that was let go at once counts no more";
}

TEST(CallerLimitsTest, WhatEndsStepsComesThrough) {
  CallerLimits limits(1, "MILLRACE_MAX_CALLS");
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
