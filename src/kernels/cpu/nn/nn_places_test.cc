// SPDX-License-Identifier: Apache-2.0
// Kernels that take many places or channels at a time: each must see its own alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

KernelRunner& Runner() {
  static auto* runner = new KernelRunner(RegisterNnKernels, 2);
  return *runner;
}

Tensor Image(int64_t height, int64_t width, int64_t channels, const std::vector<float>& values) {
  const int64_t dims[] = {1, height, width, channels};
  Tensor t = *Tensor::Make(DType::kFloat, *Shape::Make(dims));
  std::copy(values.begin(), values.end(), t.mutable_data<float>());
  return t;
}

// Few different numbers, so that many are the largest, and some that are none: the first of these counts.
TEST(MaxPoolWithArgmax, TheFirstOfEqualOnes) {
  constexpr int64_t kSide = 6, kWindow = 3, kOut = 4;
  for (const int64_t channels : {1, 7, 8, 20, 150, 300}) {
    std::mt19937 random(static_cast<uint32_t>(channels));
    std::vector<float> x(static_cast<size_t>(kSide * kSide * channels));
    for (float& v : x) v = random() % 29 == 0 ? kNan : static_cast<float>(random() % 5);
    const AttrMap attrs = {
        {"T", DType::kFloat},
        {"Targmax", DType::kInt64},
        {"ksize", std::vector<int64_t>{1, kWindow, kWindow, 1}},
        {"strides", std::vector<int64_t>{1, 1, 1, 1}},
        {"padding", std::string("VALID")},
        {"include_batch_in_index", false}};
    auto got = Runner().Run(
        "MaxPoolWithArgmax(x:T) -> (y:T, argmax:Targmax) | T in f32; Targmax in i64; ksize:list(int); "
        "strides:list(int); padding:string; include_batch_in_index:bool",
        attrs, {Image(kSide, kSide, channels, x)});
    ASSERT_TRUE(got.ok()) << got.status();
    for (int64_t i = 0; i < kOut * kOut * channels; ++i) {
      const int64_t c = i % channels, column = i / channels % kOut, row = i / channels / kOut;
      int64_t best = -1;
      for (int64_t cell = 0; cell < kWindow * kWindow; ++cell) {
        const int64_t at = ((row + cell / kWindow) * kSide + column + cell % kWindow) * channels + c;
        const float v = x[static_cast<size_t>(at)], most = best < 0 ? 0 : x[static_cast<size_t>(best)];
        if (best < 0 || v > most || (std::isnan(v) && !std::isnan(most))) best = at;
      }
      EXPECT_EQ((*got)[1].data<int64_t>()[i], best) << channels << " channels, result " << i;
      const float y = (*got)[0].data<float>()[i], want = x[static_cast<size_t>(best)];
      EXPECT_TRUE(std::isnan(want) ? std::isnan(y) : y == want) << channels << " channels, result " << i;
    }
  }
}

// Windows large enough to be taken by lines.
TEST(MaxPool, ANanIsLargerThanAnyNumber) {
  constexpr int64_t kSide = 9, kReach = 2, kChannels = 19;
  std::mt19937 random(3);
  std::vector<float> x(kSide * kSide * kChannels);
  for (float& v : x) v = random() % 41 == 0 ? kNan : static_cast<float>(random() % 5);
  const AttrMap attrs = {
      {"T", DType::kFloat},
      {"ksize", std::vector<int64_t>{1, 2 * kReach + 1, 2 * kReach + 1, 1}},
      {"strides", std::vector<int64_t>{1, 1, 1, 1}},
      {"padding", std::string("SAME")},
  };
  auto got = Runner().Run("MaxPool(x:T) -> (y:T) | T in f32; ksize:list(int); strides:list(int); padding:string", attrs,
                          {Image(kSide, kSide, kChannels, x)});
  ASSERT_TRUE(got.ok()) << got.status();
  for (int64_t i = 0; i < kSide * kSide * kChannels; ++i) {
    const int64_t row = i / kChannels / kSide, column = i / kChannels % kSide;
    float most = -1;
    for (int64_t r = std::max<int64_t>(row - kReach, 0); r <= std::min(row + kReach, kSide - 1); ++r) {
      for (int64_t c = std::max<int64_t>(column - kReach, 0); c <= std::min(column + kReach, kSide - 1); ++c) {
        const float v = x[static_cast<size_t>((r * kSide + c) * kChannels + i % kChannels)];
        if (!(v <= most) && !std::isnan(most)) most = v;
      }
    }
    const float y = (*got)[0].data<float>()[i];
    EXPECT_TRUE(std::isnan(most) ? std::isnan(y) : y == most) << i;
  }
}

TEST(Lrn, ANanStaysWithItsPlace) {
  constexpr int64_t kPlaces = 400, kChannels = 7, kSpoilt = 200;
  std::vector<float> x(kPlaces * kChannels, 0.5f);
  for (int64_t c = 0; c < kChannels; ++c)
    x[static_cast<size_t>(kSpoilt * kChannels + c)] = c % 2 == 0 ? kNan : INFINITY;
  const AttrMap attrs = {
      {"T", DType::kFloat}, {"depth_radius", int64_t{5}}, {"bias", 1.0f}, {"alpha", 1.0f}, {"beta", 0.5f}};
  const std::string types = "T in f32; depth_radius:int; bias:float; alpha:float; beta:float";
  const Tensor in = Image(20, 20, kChannels, x);
  auto y = Runner().Run("LRN(x:T) -> (y:T) | " + types, attrs, {in});
  ASSERT_TRUE(y.ok()) << y.status();
  auto dx = Runner().Run("LRNGrad(g:T, x:T, y:T) -> (dx:T) | " + types, attrs, {in, in, (*y)[0]});
  ASSERT_TRUE(dx.ok()) << dx.status();
  for (int64_t i = 0; i < kPlaces * kChannels; ++i) {
    if (i / kChannels == kSpoilt) continue;
    EXPECT_EQ((*y)[0].data<float>()[i], (*y)[0].data<float>()[i % kChannels]) << i;
    EXPECT_EQ((*dx)[0].data<float>()[i], (*dx)[0].data<float>()[i % kChannels]) << i;
  }
  EXPECT_TRUE(std::isnan((*y)[0].data<float>()[kSpoilt * kChannels]));
}

}  // namespace
}  // namespace millrace
