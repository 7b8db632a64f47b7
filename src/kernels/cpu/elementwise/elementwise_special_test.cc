// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/elementwise_special.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace millrace {
namespace {

TEST(IncompleteBeta, OfLargeNumbers) {
  const double e = std::exp(1.0), inf = std::numeric_limits<double>::infinity();
  // I(1, b, x) = 1 - (1 - x)^b and I(2, b, x) = 1 - (1 - x)^b (1 + b x), whose terms are much larger than they.
  EXPECT_NEAR(IncompleteBeta(1, 1e15, 1e-15), 1 - 1 / e, 1e-12);
  EXPECT_NEAR(IncompleteBeta(2, 1e15, 1e-15), 1 - 2 / e, 1e-12);
  EXPECT_NEAR(IncompleteBeta(2, 1e5, 1e-5), 1 - std::exp(1e5 * std::log1p(-1e-5)) * 2, 1e-12);
  EXPECT_NEAR(IncompleteBeta(1e5, 1, 0.99999), std::exp(1e5 * std::log(0.99999)), 1e-12);
  for (const double large : {1e300, inf}) {
    for (const double small : {1e-20, 0.5, 1.5, 20.0}) {
      EXPECT_EQ(IncompleteBeta(small, large, 0.5), 1) << small << " " << large;
      EXPECT_EQ(IncompleteBeta(large, small, 0.5), 0) << small << " " << large;
    }
  }
}

TEST(IncompleteBeta, IsNanOutsideOfItsDomain) {
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(std::isnan(IncompleteBeta(bad, 0.5, 0.5))) << bad;
    EXPECT_TRUE(std::isnan(IncompleteBeta(0.5, bad, 0.5))) << bad;
  }
  for (const double bad : {-1.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(std::isnan(IncompleteBeta(0.5, 0.5, bad))) << bad;
  }
}

}  // namespace
}  // namespace millrace
