// SPDX-License-Identifier: Apache-2.0
#include "tensor/half.h"

#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace millrace {
namespace {

// The value of a small float format, from the definition.
double ValueOf(uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

struct Format {
  int exponent_bits, mantissa_bits;
  uint16_t (*from_float)(float);
  float (*to_float)(uint16_t);
};

const Format kFormats[] = {
    {5, 10, [](float f) { return Half(f).bits; }, [](uint16_t b) { return static_cast<float>(Half::FromBits(b)); }},
    {8, 7, [](float f) { return BFloat16(f).bits; },
     [](uint16_t b) { return static_cast<float>(BFloat16::FromBits(b)); }},
};

TEST(HalfTest, EveryPatternWidensExactlyAndComesBack) {
  for (const Format& format : kFormats) {
    for (uint32_t b = 0; b < 0x10000; ++b) {
      const auto bits = static_cast<uint16_t>(b);
      const double want = ValueOf(bits, format.exponent_bits, format.mantissa_bits);
      const float got = format.to_float(bits);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got));
        EXPECT_TRUE(std::isnan(format.to_float(format.from_float(got))));
        continue;
      }
      EXPECT_EQ(static_cast<double>(got), want);
      EXPECT_EQ(std::signbit(got), std::signbit(want));
      EXPECT_EQ(format.from_float(got), bits);
    }
  }
}

// Between two neighbours the nearer one wins, and the even one in the middle.
TEST(HalfTest, RoundsToNearestEven) {
  for (const Format& format : kFormats) {
    const uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
    for (uint32_t b = 0; b < infinity; ++b) {
      const auto low = static_cast<uint16_t>(b);
      const auto high = static_cast<uint16_t>(b + 1);
      const double below = ValueOf(low, format.exponent_bits, format.mantissa_bits);
      // The step to infinity is as large as the one before.
      const double above =
          b + 1 < infinity
              ? ValueOf(high, format.exponent_bits, format.mantissa_bits)
              : 2 * below - ValueOf(static_cast<uint16_t>(b - 1), format.exponent_bits, format.mantissa_bits);
      const float middle = static_cast<float>((below + above) / 2);
      if (static_cast<double>(middle) != (below + above) / 2) continue;  // not exact near float's own limits
      EXPECT_EQ(format.from_float(middle), b % 2 == 0 ? low : high) << b;
      EXPECT_EQ(format.from_float(std::nextafter(middle, 0.0f)), low) << b;
      EXPECT_EQ(format.from_float(std::nextafter(middle, std::numeric_limits<float>::infinity())), high) << b;
      EXPECT_EQ(format.from_float(-middle), (b % 2 == 0 ? low : high) | 0x8000) << b;
    }
  }
}

TEST(HalfTest, OverflowAndNan) {
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(65519.0f).bits, 0x7bff);
  EXPECT_EQ(Half(-1e30f).bits, 0xfc00);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(Half(1e-30f).bits, 0);
  EXPECT_EQ(Half(-1e-30f).bits, 0x8000);
  for (const Format& format : kFormats) {
    for (uint32_t bits : {0x7f800001u, 0xffffffffu, 0x7fc00000u}) {
      EXPECT_TRUE(std::isnan(format.to_float(format.from_float(std::bit_cast<float>(bits)))));
    }
  }
}

}  // namespace
}  // namespace millrace
