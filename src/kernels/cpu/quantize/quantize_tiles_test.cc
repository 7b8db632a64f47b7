// SPDX-License-Identifier: Apache-2.0
// The loops against their formulas, one number at a time.
#include "kernels/cpu/quantize/quantize_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/checked.h"

namespace millrace {
namespace {

// Halves, their neighbours, what is far out, and what is no number.
std::vector<float> Samples() {
  std::vector<float> x;
  for (int i = -600; i <= 600; ++i) {
    const float half = static_cast<float>(i) / 2;
    x.insert(x.end(), {half, std::nextafter(half, -1e9f), std::nextafter(half, 1e9f)});
  }
  const float infinity = std::numeric_limits<float>::infinity();
  x.insert(x.end(), {1e30f, -1e30f, 0x1p31f, -0x1p31f, 8388609, 4194304.5f, infinity, -infinity, std::nanf(""), -0.0f});
  return x;
}

template <typename T>
void ExpectFormula(DType dtype) {
  using L = std::numeric_limits<T>;
  const std::vector<float> x = Samples();
  for (const Rounding rounding : {Rounding::kHalfAway, Rounding::kHalfEven, Rounding::kDown}) {
    const QuantizeLine line{
        .in_low = -1e20f,
        .in_high = 1e20f,
        .minus = 0.25f,
        .scale = 1.5f,
        .plus = 0.5f,
        .offset = 3,
        .lowest = static_cast<double>(L::lowest()),
        .highest = static_cast<double>(L::max())};
    std::vector<T> got(x.size());
    FindQuantize(dtype, rounding, true)(line, x.data(), got.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const float clamped = std::max(std::min(x[i], line.in_high), line.in_low);
      const float shifted = clamped - line.minus, scaled = shifted * line.scale, v = scaled + line.plus;
      const float whole =
          rounding == Rounding::kHalfAway ? std::round(v)
          : rounding == Rounding::kHalfEven
              ? std::nearbyint(v)
              : std::floor(v);
      const int64_t want = std::clamp<int64_t>(SaturatingCast<int64_t>(whole - line.offset), L::lowest(), L::max());
      EXPECT_EQ(int64_t{got[i]}, want) << x[i] << " rounded " << static_cast<int>(rounding);
    }
  }
}

TEST(QuantizeTiles, NumbersToSteps) {
  ExpectFormula<int8_t>(DType::kQInt8);
  ExpectFormula<uint8_t>(DType::kQUInt8);
  ExpectFormula<int16_t>(DType::kQInt16);
  ExpectFormula<uint16_t>(DType::kQUInt16);
  ExpectFormula<int32_t>(DType::kQInt32);
}

TEST(QuantizeTiles, GradientsOfChannelsAndOfOneRangeAgree) {
  const FakeQuantRange range{.low = -2, .high = 3, .scale = 0.1f, .inverse = 10, .zero = 20, .live = 1};
  std::vector<float> x = Samples(), g(x.size(), 0.5f), y(x.size()), z(x.size());
  const auto n = static_cast<int64_t>(x.size());
  double below = 0, above = 0, below_channel = 0, above_channel = 0;
  FakeQuantGrad(range, g.data(), x.data(), y.data(), n, &below, &above);
  const FakeQuantRanges ranges{&range.low, &range.high, &range.scale, &range.inverse, &range.zero, &range.live};
  FakeQuantGrad(ranges, 1, g.data(), x.data(), z.data(), n, &below_channel, &above_channel);
  EXPECT_EQ(y, z);
  EXPECT_EQ(below, below_channel);
  EXPECT_EQ(above, above_channel);
  const auto less = std::count_if(x.begin(), x.end(), [](float v) { return v < -2; });
  EXPECT_EQ(below, 0.5 * static_cast<double>(less));
  FakeQuant(range, x.data(), y.data(), n);
  FakeQuant(ranges, 1, x.data(), z.data(), n);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(y[i] == z[i] || (std::isnan(y[i]) && std::isnan(z[i]))) << x[i];
}

}  // namespace
}  // namespace millrace
