// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/elementwise_convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace millrace {
namespace {

template <typename From, typename To>
std::vector<To> Cast(const std::vector<From>& in) {
  const ConvertRoute route = FindConvert(DTypeOf<From>::value, DTypeOf<To>::value);
  EXPECT_TRUE(route.found);
  std::vector<To> out(in.size());
  route.Run(in.data(), out.data(), static_cast<int64_t>(in.size()));
  return out;
}

TEST(ElementwiseConvert, EveryPairOfNumberTypesHasARoute) {
  for (DType a : NumberTypes()) {
    for (DType b : NumberTypes()) EXPECT_TRUE(FindConvert(a, b).found) << DTypeName(a) << " to " << DTypeName(b);
    EXPECT_TRUE(FindConvert(a, DType::kBool).found) << DTypeName(a);
    EXPECT_TRUE(FindConvert(DType::kBool, a).found) << DTypeName(a);
    EXPECT_FALSE(FindConvert(a, DType::kString).found);
  }
}

TEST(ElementwiseConvert, OutOfRangeIsDefined) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> in = {NAN, inf, -inf, 3e9f, -3e9f, 300.0f, -1.5f};
  const int32_t low = std::numeric_limits<int32_t>::min();
  EXPECT_EQ((Cast<float, int32_t>(in)), (std::vector<int32_t>{low, low, low, low, low, 300, -1}));
  EXPECT_EQ((Cast<float, int8_t>(in)), (std::vector<int8_t>{0, 0, 0, 0, 0, 44, -1}));
  EXPECT_EQ((Cast<float, uint32_t>(in)), (std::vector<uint32_t>{0, 0, 0, 3000000000u, 1294967296u, 300, 4294967295u}));
  EXPECT_EQ((Cast<double, uint64_t>({1e19, -1.0, 2e19})),
            (std::vector<uint64_t>{10000000000000000000u, ~uint64_t{0}, uint64_t{1} << 63}));
}

TEST(ElementwiseConvert, Wraps) {
  EXPECT_EQ((Cast<int32_t, uint8_t>({300, -1, 256})), (std::vector<uint8_t>{44, 255, 0}));
  EXPECT_EQ((Cast<int64_t, int16_t>({65541, -1})), (std::vector<int16_t>{5, -1}));
  EXPECT_EQ((Cast<uint64_t, float>({uint64_t{1} << 63})), (std::vector<float>{0x1p63f}));
}

TEST(ElementwiseConvert, HalvesAgreeWithTheScalarConversion) {
  std::vector<Half> halves;
  for (uint32_t i = 0; i < 1 << 16; ++i) halves.push_back(Half::FromBits(static_cast<uint16_t>(i)));
  const std::vector<float> wide = Cast<Half, float>(halves);
  const std::vector<Half> back = Cast<float, Half>(wide);
  for (size_t i = 0; i < halves.size(); ++i) {
    const float want = static_cast<float>(halves[i]);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(wide[i]) && std::isnan(static_cast<float>(back[i])));
    } else {
      EXPECT_EQ(wide[i], want);
      EXPECT_EQ(back[i].bits, halves[i].bits);
    }
  }
  std::vector<float> between;
  for (uint32_t i = 0; i < 1 << 18; ++i) between.push_back(std::bit_cast<float>((i << 14) + 0x1000u));
  const std::vector<Half> rounded = Cast<float, Half>(between);
  for (size_t i = 0; i < between.size(); ++i) {
    if (std::isnan(between[i])) continue;
    ASSERT_EQ(rounded[i].bits, Half(between[i]).bits) << between[i];
  }
}

TEST(ElementwiseConvert, LongRunsGoThroughTiles) {
  std::vector<int16_t> in(3000);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int16_t>(i - 1500);
  const std::vector<Half> out = Cast<int16_t, Half>(in);
  for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i].bits, Half(static_cast<float>(in[i])).bits);
}

// The upper half of a float's bits, whatever they are, and zeros behind.
TEST(ElementwiseConvert, TruncationKeepsTheUpperBits) {
  const auto truncated = [](uint32_t bits) {
    const float in = std::bit_cast<float>(bits);
    float out = 0;
    TruncateFloats(&in, &out, 1, 16);
    return std::bit_cast<uint32_t>(out);
  };
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 65521) {  // a prime
    const auto b = static_cast<uint32_t>(bits);
    const float f = std::bit_cast<float>(b);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(std::bit_cast<float>(truncated(b)))) << b;
      EXPECT_EQ(truncated(b) & 0x8000ffffu, b & 0x80000000u) << b;
    } else {
      ASSERT_EQ(truncated(b), b & 0xffff0000u) << b;
      if (!std::isnormal(f)) continue;
      EXPECT_LT(std::abs(1 - std::bit_cast<float>(truncated(b)) / f), 1.0f / 128) << f;
    }
  }
  for (const uint32_t nan : {0x7f800001u, 0xff800001u, 0x7f80ffffu, 0x7fffffffu}) {
    EXPECT_TRUE(std::isnan(std::bit_cast<float>(truncated(nan)))) << nan;
    EXPECT_EQ(truncated(nan) >> 31, nan >> 31);
  }
  EXPECT_EQ(truncated(0x7f800000u), 0x7f800000u);  // infinity
  EXPECT_EQ(truncated(0x0000ffffu), 0u);
  // The same bits as a bfloat16, and back.
  std::vector<float> in, cut(1000);
  for (int i = 0; i < 1000; ++i) in.push_back(std::bit_cast<float>(0x3f800000u + static_cast<uint32_t>(i) * 7919));
  TruncateFloats(in.data(), cut.data(), 1000, 16);
  const ConvertRoute narrow = FindConvert(DType::kFloat, DType::kBFloat16);
  const ConvertRoute widen = FindConvert(DType::kBFloat16, DType::kFloat);
  std::vector<uint16_t> half(1000);
  std::vector<float> back(1000);
  narrow.Run(cut.data(), half.data(), 1000);
  widen.Run(half.data(), back.data(), 1000);
  for (size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(half[i], std::bit_cast<uint32_t>(in[i]) >> 16);
    EXPECT_EQ(std::bit_cast<uint32_t>(back[i]), std::bit_cast<uint32_t>(in[i]) & 0xffff0000u);
  }
}

}  // namespace
}  // namespace millrace
