// SPDX-License-Identifier: Apache-2.0
#include "base/flushed_denormals.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>

#include "base/thread_pool.h"

namespace millrace {
namespace {

// At run time, whatever the compiler knows.
float Half(float x) {
  volatile float y = x;
  return y * 0.5f;
}
float Doubled(float x) {
  volatile float y = x;
  return y * 2.0f;
}

TEST(FlushedDenormalsTest, AreZeroWhileOneLives) {
  constexpr float kSmallest = std::numeric_limits<float>::min(), kDenormal = std::numeric_limits<float>::denorm_min();
  EXPECT_GT(Half(kSmallest), 0);
  {
    const FlushedDenormals outer;
    {
      const FlushedDenormals inner;
    }
    EXPECT_EQ(Half(kSmallest), 0);
    EXPECT_EQ(Doubled(kDenormal), 0);
    EXPECT_EQ(Half(2 * kSmallest), kSmallest);
  }
  EXPECT_GT(Half(kSmallest), 0);
  EXPECT_GT(Doubled(kDenormal), 0);
}

TEST(FlushedDenormalsTest, AreZeroOnThreadsOfPools) {
  std::atomic<float> half = 1;
  {
    ThreadPool pool(2);
    pool.Schedule([&] { half = Half(std::numeric_limits<float>::min()); });
  }
  EXPECT_EQ(half, 0);
}

}  // namespace
}  // namespace millrace
