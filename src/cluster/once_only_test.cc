// SPDX-License-Identifier: Apache-2.0
#include "cluster/once_only.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(OnceOnlyTest, EachNumberIsAdmittedOnceInAnyOrder) {
  OnceOnly calls;
  EXPECT_TRUE(calls.Admit(2, 1));
  EXPECT_TRUE(calls.Admit(1, 1));
  EXPECT_FALSE(calls.Admit(2, 1));
  EXPECT_TRUE(calls.Admit(5, 4));
  EXPECT_FALSE(calls.Admit(1, 1)) << "a late copy";
  EXPECT_FALSE(calls.Admit(3, 2)) << "nobody waits for it any more";
  EXPECT_TRUE(calls.Admit(4, 4));
}

TEST(OnceOnlyTest, RemembersNoMoreThanIsUnderWay) {
  OnceOnly calls;
  for (int64_t i = 1; i <= 10'000; ++i) EXPECT_TRUE(calls.Admit(i, i));
  EXPECT_EQ(calls.size(), 1u);
}

}  // namespace
}  // namespace millrace
