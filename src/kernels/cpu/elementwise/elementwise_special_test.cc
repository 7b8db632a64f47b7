// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/elementwise_special.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace millrace {
namespace {

// Values by mpmath with 60 digits; x far below a as well.
TEST(IncompleteGamma, ByItsFirstArgument) {
  struct Case {
    double a, x, sample, lower;
  };
  constexpr double kLow = std::numeric_limits<double>::min();
  for (const Case& c :
       {Case{2.5, 1.5, 0.81779368595390975869, -0.25217540042362784994},
        Case{411.8545, 624.32574, 1.2228730867173333876, -2.1565978621672635629e-20},
        Case{14.329336166381836, 1.2734226e-15, 3.2875789250262552656e-15, -6.4231127624709557904e-224},
        Case{20, 1e-30, 3.6049038391031762748e-30, 0}, Case{100, 1e-3, 0.00011518031269653262889, 0},
        Case{527.5519409179688, 1.2396261e-24, 1.4407954489240534488e-25, 0}}) {
    EXPECT_NEAR(GammaSampleByA(c.a, c.x), c.sample, c.sample * 1e-12) << c.a << " " << c.x;
    EXPECT_NEAR(IncompleteGammaPByA(c.a, c.x), c.lower, std::abs(c.lower) * 1e-11 + kLow) << c.a << " " << c.x;
  }
}

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

// Many at a time as one by one; every seventh is outside of what goes together.
TEST(IncompleteBeta, OfFloatsIsThatOfDoubleRounded) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<float> log_size(-4, 6.9f), part(0, 1);
  std::vector<float> a, b, x;
  for (int i = 0; i < 5000; ++i) {
    a.push_back(std::exp(log_size(random)));
    b.push_back(i % 7 == 0 ? 5000 * part(random) : std::exp(log_size(random)));
    x.push_back(i % 14 == 0 ? 2 * part(random) : part(random));
  }
  for (const int64_t step : {1, 0}) {
    const float* const operands[3] = {a.data(), b.data() + 1, x.data()};
    const int64_t steps[3] = {1, step, 1}, n = 4999;
    std::vector<float> y(static_cast<size_t>(n));
    IncompleteBetas(operands, steps, y.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(i);
      const double want = IncompleteBeta(a[at], b[static_cast<size_t>(1 + step * i)], x[at]);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(y[at]));
      } else {
        EXPECT_NEAR(y[at], want, want * 6e-8 + 1e-44) << a[at] << " " << b[at] << " " << x[at];  // half an ulp
      }
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
