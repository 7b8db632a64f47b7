// SPDX-License-Identifier: Apache-2.0
// Cumsum and Cumprod of rows so long that they go by blocks, beside a plain loop.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/math/math.h"

namespace millrace {
namespace {

constexpr int64_t kLength = (1 << 16) + 12345;

template <typename T>
std::vector<T> Scanned(const std::string& op, const std::vector<T>& x, bool exclusive, bool reverse) {
  KernelRunner runner(RegisterScanKernels, 2);
  Tensor in = *Tensor::Make(DTypeOf<T>::value, *Shape::Make({1, static_cast<int64_t>(x.size())}));
  std::copy(x.begin(), x.end(), in.mutable_data<T>());
  const AttrMap attrs = {{"T", DTypeOf<T>::value}, {"exclusive", exclusive}, {"reverse", reverse}};
  const auto got = runner.Run(op + "(x:T, axis:i32) -> (out:T) | exclusive:bool; reverse:bool; T in REAL", attrs,
                              {in, Tensor::Scalar<int32_t>(1)});
  EXPECT_TRUE(got.ok()) << got.status();
  const T* const y = (*got)[0].data<T>();
  return std::vector<T>(y, y + x.size());
}

TEST(Scan, LongRows) {
  std::mt19937 random(5);
  std::vector<int32_t> whole(kLength);
  std::vector<float> real(kLength);
  for (int32_t& v : whole) v = static_cast<int32_t>(random());
  for (float& v : real) v = static_cast<float>(random() % 1000) - 500.25f;
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      const std::vector<int32_t> sums = Scanned("Cumsum", whole, exclusive, reverse);
      const std::vector<int32_t> products = Scanned("Cumprod", whole, exclusive, reverse);
      const std::vector<float> floats = Scanned("Cumsum", real, exclusive, reverse);
      uint32_t sum = 0, product = 1;
      double exact = 0;
      for (int64_t i = 0; i < kLength; ++i) {
        const auto at = static_cast<size_t>(reverse ? kLength - 1 - i : i);
        const auto v = static_cast<uint32_t>(whole[at]);
        ASSERT_EQ(static_cast<uint32_t>(sums[at]), exclusive ? sum : sum + v) << at;
        ASSERT_EQ(static_cast<uint32_t>(products[at]), exclusive ? product : product * v) << at;
        sum += v;
        product *= v;
        const double next = exact + static_cast<double>(real[at]);
        ASSERT_EQ(floats[at], static_cast<float>(exclusive ? exact : next)) << at;  // multiples of 1/4: all exact
        exact = next;
      }
    }
  }
}

// What a block alone would make of them is not what the row does.
TEST(Scan, LongRowsThatOverflowInPlaces) {
  std::vector<double> x(kLength, 0.0);
  x[10] = -1e308;
  x[5000] = x[5001] = 1e308;
  const std::vector<double> sums = Scanned("Cumsum", x, false, false);
  EXPECT_EQ(sums[4999], -1e308);
  EXPECT_EQ(sums[5000], 0.0);
  EXPECT_EQ(sums.back(), 1e308);
  std::vector<float> factors(kLength, 1.0f);
  factors[10] = 0.0f;
  for (size_t i = 5000; i < 5100; ++i) factors[i] = 1e38f;
  EXPECT_EQ(Scanned("Cumprod", factors, false, false).back(), 0.0f);
}

}  // namespace
}  // namespace millrace
