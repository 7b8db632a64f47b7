// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/nn/nn_pool_planes_simd.h"

namespace millrace {
namespace {

template <typename T>
std::vector<T> Plane(int64_t n) {
  std::mt19937 generator(static_cast<uint32_t>(n));
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) x = static_cast<T>(static_cast<int>(generator() % 64) - 32);
  return v;
}

template <typename T>
void Check(const PlaneAxis& rows, const PlaneAxis& columns, std::vector<T> in) {
  const auto size = static_cast<size_t>(rows.out * columns.out);
  std::vector<T> line(static_cast<size_t>(columns.in)), largest(size), mean(size);
  MaxOfPlane<T>(rows, columns, in.data(), line.data(), largest.data());
  MeanOfPlane<T>(rows, columns, in.data(), line.data(), mean.data());
  for (int64_t y = 0; y < rows.out; ++y) {
    for (int64_t x = 0; x < columns.out; ++x) {
      T best = -std::numeric_limits<T>::infinity(), sum = 0;
      int cells = 0;
      for (int64_t r = rows.begin(y); r < rows.end(y); ++r) {
        for (int64_t c = columns.begin(x); c < columns.end(x); ++c, ++cells) {
          const T v = in[static_cast<size_t>(r * columns.in + c)];
          if (std::isnan(v) || v > best) best = v;
          sum += v;
        }
      }
      const auto at = static_cast<size_t>(y * columns.out + x);
      if (std::isnan(sum)) {
        EXPECT_TRUE(std::isnan(largest[at]) && std::isnan(mean[at])) << y << " " << x;
      } else {
        EXPECT_EQ(largest[at], best) << y << " " << x;
        EXPECT_EQ(mean[at], sum / static_cast<T>(cells)) << y << " " << x;  // whole numbers add without rounding
      }
    }
  }
}

// All windows that TensorFlow's paddings make of these sizes.
TEST(PoolPlanes, AgreeWithPlainLoops) {
  for (const int64_t in : {1, 2, 5, 16, 37, 70}) {
    for (const int64_t kernel : {1, 2, 3, 5}) {
      for (const int64_t stride : {1, 2, 3}) {
        const int64_t out = (in + stride - 1) / stride;  // SAME
        const int64_t pad = std::max<int64_t>(0, (out - 1) * stride + kernel - in);
        const PlaneAxis same{in, out, kernel, stride, pad / 2};
        const PlaneAxis wide{in + 3, in + 3, 2, 1, 0};
        SCOPED_TRACE(testing::Message() << in << " by " << kernel << " / " << stride);
        Check<float>(same, wide, Plane<float>(in * (in + 3)));
        Check<double>(wide, same, Plane<double>(in * (in + 3)));
      }
    }
  }
}

TEST(PoolPlanes, ANaNIsLarger) {
  const PlaneAxis axis{40, 20, 2, 2, 0}, overlapping{40, 20, 3, 2, 0};
  for (const size_t at : {size_t{0}, size_t{1}, size_t{40}, size_t{41}, size_t{777}, size_t{1599}}) {
    std::vector<float> in = Plane<float>(1600);
    in[at] = std::numeric_limits<float>::quiet_NaN();
    Check<float>(axis, axis, in);
    Check<float>(overlapping, overlapping, in);
  }
}

}  // namespace
}  // namespace millrace
