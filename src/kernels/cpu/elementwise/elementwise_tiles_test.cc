// SPDX-License-Identifier: Apache-2.0
// Tile functions against the C library in a wider type: largest error in units of the last place, and special values.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/elementwise/elementwise_special.h"
#include "kernels/cpu/elementwise/elementwise_table.h"

namespace millrace {
namespace {

using Wide = long double;

// One unit in the last place of the T nearest to v.
template <typename T>
Wide Ulp(Wide v) {
  const T a = static_cast<T>(std::fabs(v));
  if (a < std::numeric_limits<T>::min()) return std::numeric_limits<T>::denorm_min();
  int e;
  std::frexp(a, &e);
  return std::ldexp(Wide(1), e - std::numeric_limits<T>::digits);
}

// Numbers of every sign and exponent, denormals too, then numbers of everyday size, then the special ones.
template <typename T>
std::vector<T> Samples() {
  std::vector<T> v;
  std::mt19937_64 random(7);
  for (int i = 0; i < 60000; ++i) {
    T x;
    if constexpr (sizeof(T) == 4) {
      x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    } else {
      x = std::bit_cast<double>(random());
    }
    v.push_back(x);
  }
  std::uniform_real_distribution<T> near(-20, 20);
  for (int i = 0; i < 60000; ++i) v.push_back(near(random));
  std::uniform_real_distribution<T> unit(-1.5, 1.5);
  for (int i = 0; i < 60000; ++i) v.push_back(unit(random));
  std::uniform_real_distribution<T> far(-800, 800);
  for (int i = 0; i < 20000; ++i) v.push_back(far(random));
  using L = std::numeric_limits<T>;
  for (T x :
       {T(0),        -T(0),      T(1),      T(-1),           L::infinity(),    -L::infinity(), L::quiet_NaN(), L::min(),
        -L::min(),   L::max(),   -L::max(), L::denorm_min(), -L::denorm_min(), L::epsilon(),   T(0.5),         T(2),
        T(88.72284), T(-103.97), T(-87.5),  T(709.79),       T(-745.2),        T(-708.5)}) {
    v.push_back(x);
  }
  return v;
}

struct Function {
  const char* op;
  Wide (*exact)(Wide);
  double float_bound;  // ulp; 0: no such function in float
  double double_bound;
  bool odd;  // f(-0) = -0
};

template <typename T>
double WorstError(const Function& f, T* at) {
  const TileOp op = ResolveTile(f.op, DTypeOf<T>::value);
  EXPECT_TRUE(op) << f.op;
  const std::vector<T> x = Samples<T>();
  std::vector<T> y(x.size());
  RunUnary(op, x.data(), y.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const Wide want = f.exact(x[i]);
    const T rounded = static_cast<T>(want);
    if (std::isnan(want) || std::isinf(rounded) || std::isinf(x[i])) {
      // Just below the overflow, the largest number is as good as infinity.
      const bool near_overflow =
          std::isinf(rounded) && !std::isinf(want) && std::fabs(y[i]) == std::numeric_limits<T>::max();
      EXPECT_TRUE(std::isnan(want) ? std::isnan(y[i]) : y[i] == rounded || near_overflow)
          << f.op << "(" << x[i] << ") = " << y[i] << ", want " << rounded;
      continue;
    }
    if (x[i] == 0 && f.odd) {
      EXPECT_EQ(std::signbit(y[i]), std::signbit(x[i])) << f.op << " at zero";
    }
    if (std::isinf(y[i]) && static_cast<Wide>(std::numeric_limits<T>::max()) - std::fabs(want) < 2 * Ulp<T>(want))
      continue;
    const double error = static_cast<double>(std::fabs(static_cast<Wide>(y[i]) - want) / Ulp<T>(want));
    if (!(error <= worst)) worst = error, *at = x[i];
  }
  return worst;
}

Wide Sigmoid(Wide x) { return 1 / (1 + std::exp(-x)); }
Wide Softplus(Wide x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
Wide Rsqrt(Wide x) { return 1 / std::sqrt(x); }
Wide Elu(Wide x) { return x < 0 ? std::expm1(x) : x; }
Wide Selu(Wide x) {
  return (x < 0 ? Wide(1.6732632423543772848170429916717) * std::expm1(x) : x) *
         Wide(1.0507009873554804934193349852946);
}

TEST(ElementwiseTiles, ErrorsOfFunctions) {
  const Function kFunctions[] = {
      {"Exp", [](Wide x) { return std::exp(x); }, 1.5, 1.5, false},
      {"Expm1", [](Wide x) { return std::expm1(x); }, 2, 2, true},
      {"Log", [](Wide x) { return std::log(x); }, 1.5, 1.5, false},
      {"Log1p", [](Wide x) { return std::log1p(x); }, 2, 2, true},
      {"Tanh", [](Wide x) { return std::tanh(x); }, 2.2, 2.5, true},
      {"Sigmoid", Sigmoid, 2.5, 2.5, false},
      {"Softplus", Softplus, 3, 3, false},
      {"Elu", Elu, 2, 2, true},
      {"Sin", [](Wide x) { return std::sin(x); }, 1, 2, true},
      {"Cos", [](Wide x) { return std::cos(x); }, 1, 2, false},
      {"Tan", [](Wide x) { return std::tan(x); }, 1, 2, true},
      {"Erf", [](Wide x) { return std::erf(x); }, 0.51, 2, true},
      {"Sqrt", [](Wide x) { return std::sqrt(x); }, 0.51, 0.51, true},
      {"Rsqrt", Rsqrt, 2, 2, false},
      {"Sinh", [](Wide x) { return std::sinh(x); }, 1, 2.5, true},
      {"Cosh", [](Wide x) { return std::cosh(x); }, 1, 2.5, false},
      {"Asin", [](Wide x) { return std::asin(x); }, 0.555, 2, true},
      {"Atan", [](Wide x) { return std::atan(x); }, 0.502, 2, true},
      {"Acos", [](Wide x) { return std::acos(x); }, 0.65, 2, false},
      {"Erfc", [](Wide x) { return std::erfc(x); }, 0.51, 4, false},
      {"Lgamma", [](Wide x) { return std::lgamma(x); }, 0.501, 6, false},
      {"Acosh", [](Wide x) { return std::acosh(x); }, 1, 3, false},
      {"Asinh", [](Wide x) { return std::asinh(x); }, 1, 3, true},
      {"Atanh", [](Wide x) { return std::atanh(x); }, 1, 3, true},
  };
  std::printf("%-10s %12s %12s   largest error in ulp\n", "", "float", "double");
  for (const Function& f : kFunctions) {
    float at_float = 0;
    double at_double = 0;
    const double in_float = WorstError<float>(f, &at_float);
    const double in_double = WorstError<double>(f, &at_double);
    std::printf(
        "%-10s %12.3f %12.3f   at %.9g, %.17g\n", f.op, in_float, in_double, static_cast<double>(at_float), at_double);
    EXPECT_LE(in_float, f.float_bound) << f.op << " at " << at_float;
    EXPECT_LE(in_double, f.double_bound) << f.op << " at " << at_double;
  }
}

TEST(ElementwiseTiles, PowAgreesWithTheLibrary) {
  const TileOp op = ResolveTile("Pow", DType::kFloat);
  std::mt19937_64 random(3);
  std::uniform_real_distribution<float> base(0, 20), exponent(-20, 20);
  std::vector<float> a, b;
  for (int i = 0; i < 50000; ++i) a.push_back(base(random)), b.push_back(exponent(random));
  for (float x : {0.0f, -0.0f, -1.0f, -2.5f, 1.0f, INFINITY, -INFINITY, NAN, 1e-40f}) {
    for (float y : {0.0f, 1.0f, -1.0f, 2.0f, 3.0f, 0.5f, INFINITY, -INFINITY, NAN}) a.push_back(x), b.push_back(y);
  }
  std::vector<float> y(a.size());
  RunBinary(op, BinaryForm::kVV, a.data(), b.data(), y.data(), static_cast<int64_t>(a.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    const double want = std::pow(static_cast<double>(a[i]), static_cast<double>(b[i]));
    const float rounded = static_cast<float>(want);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(y[i])) << a[i] << "^" << b[i];
    } else if (std::isinf(rounded)) {
      EXPECT_EQ(y[i], rounded) << a[i] << "^" << b[i];
    } else {
      EXPECT_LE(std::fabs(static_cast<Wide>(y[i]) - want), Ulp<float>(want)) << a[i] << "^" << b[i];
    }
  }
}

// Signs, zeros, infinities and NaN as the C library has them.
TEST(ElementwiseTiles, FloatFunctionsOfTwoAgreeWithTheLibrary) {
  const std::vector<float> special = {
      0.0f, -0.0f, 1.0f, -1.0f, 2.5f, -2.5f, 3.0f, 1e-40f, 1e30f, -1e30f, INFINITY, -INFINITY, NAN};
  std::vector<float> a, b;
  for (float x : special) {
    for (float y : special) a.push_back(x), b.push_back(y);
  }
  std::mt19937_64 random(3);
  std::uniform_real_distribution<float> value(-100, 100);
  a.resize(256, 1), b.resize(256, 1);  // ordinary numbers in blocks of their own
  for (int i = 0; i < 50000; ++i) a.push_back(value(random)), b.push_back(value(random) / 10);
  for (int exponent = -149; exponent < 127; ++exponent) {  // of every size
    for (int i = 0; i < 64; ++i) {
      a.push_back(std::ldexp(value(random), exponent - 6)), b.push_back(std::ldexp(value(random), exponent - 6));
    }
  }
  const auto floor_mod = [](double x, double y) {
    const double m = std::fmod(x, y);
    return m != 0 && (y < 0) != (m < 0) ? m + y : m;
  };
  const struct {
    const char* op;
    double (*exact)(double, double);
    double bound;  // ulp
  } kFunctions[] = {
      {"Atan2", [](double x, double y) { return std::atan2(x, y); }, 0.51},
      {"Mod", [](double x, double y) { return std::fmod(x, y); }, 1},
      {"FloorMod", floor_mod, 1},
      {"Pow", [](double x, double y) { return std::pow(x, y); }, 1}};
  for (const auto& f : kFunctions) {
    std::vector<float> y(a.size());
    RunBinary(ResolveTile(f.op, DType::kFloat), BinaryForm::kVV, a.data(), b.data(), y.data(),
              static_cast<int64_t>(a.size()));
    for (size_t i = 0; i < a.size(); ++i) {
      const double want = f.exact(static_cast<double>(a[i]), static_cast<double>(b[i]));
      const float rounded = static_cast<float>(want);
      if (std::isnan(want) || std::isinf(rounded) || want == 0) {
        EXPECT_TRUE(
            std::isnan(want) ? std::isnan(y[i]) : y[i] == rounded && std::signbit(y[i]) == std::signbit(rounded))
            << f.op << "(" << a[i] << ", " << b[i] << ") = " << y[i] << ", want " << rounded;
      } else {
        EXPECT_LE(std::fabs(static_cast<double>(y[i]) - want), f.bound * static_cast<double>(Ulp<float>(want)))
            << f.op << "(" << a[i] << ", " << b[i] << ")";
      }
    }
  }
  for (float exponent : {3.0f, -3.0f, 5.0f, 8.0f, -8.0f, 0.0f, 1.0f, -1.0f}) {
    std::vector<float> y(a.size());
    RunBinary(ResolveTile("Pow", DType::kFloat), BinaryForm::kVS, a.data(), &exponent, y.data(),
              static_cast<int64_t>(a.size()));
    for (size_t i = 0; i < a.size(); ++i) {
      const float want = static_cast<float>(std::pow(static_cast<double>(a[i]), static_cast<double>(exponent)));
      EXPECT_TRUE(
          std::isnan(want) ? std::isnan(y[i])
          : std::isinf(want)
              ? y[i] == want
              : std::fabs(static_cast<Wide>(y[i]) - static_cast<Wide>(want)) <= Ulp<float>(static_cast<Wide>(want)))
          << a[i] << "^" << exponent << " = " << y[i] << ", want " << want;
    }
  }
}

// Floats have code of their own, for a range of arguments; what lies outside goes with its block through the double
// form.
TEST(ElementwiseTiles, SpecialFunctionsOfFloatAreThoseOfDoubleRounded) {
  std::mt19937_64 random(11);
  std::vector<float> a, b;
  const auto draw = [&](int n, float low_a, float high_a, float low_b, float high_b) {
    std::uniform_real_distribution<float> of_a(low_a, high_a), of_b(low_b, high_b);
    for (int i = 0; i < n; ++i) a.push_back(of_a(random)), b.push_back(of_b(random));
  };
  draw(5 * 256, 0.02f, 10, 1e-3f, 20);
  draw(5 * 256, 1.001f, 16, 1e-3f, 100);
  draw(5 * 256, 20, 1000, 20, 1000);
  draw(256, 0.01f, 1, 1e-30f, 1e-6f);
  draw(300, -5, 5, -5, 5);
  draw(7, 1.5f, 3, 0.5f, 3);
  const std::vector<double> wide_a(a.begin(), a.end()), wide_b(b.begin(), b.end());
  const auto n = static_cast<int64_t>(a.size());
  const auto expect = [&](const char* op, const std::vector<float>& got, const std::vector<double>& want) {
    for (size_t i = 0; i < got.size(); ++i) {
      const float rounded = static_cast<float>(want[i]);
      if (got[i] == rounded || (std::isnan(got[i]) && std::isnan(rounded))) continue;
      EXPECT_LE(std::fabs(static_cast<Wide>(got[i]) - want[i]), Wide(0.51) * Ulp<float>(want[i]))
          << op << "(" << a[i] << ", " << b[i] << ") = " << got[i] << ", want " << want[i];
    }
  };
  for (const char* op : {"Zeta", "Igamma", "Igammac"}) {
    std::vector<float> got(a.size());
    std::vector<double> want(a.size());
    RunBinary(ResolveTile(op, DType::kFloat), BinaryForm::kVV, a.data(), b.data(), got.data(), n);
    RunBinary(ResolveTile(op, DType::kDouble), BinaryForm::kVV, wide_a.data(), wide_b.data(), want.data(), n);
    expect(op, got, want);
  }
  std::vector<float> orders, polygamma(a.size());
  std::vector<double> exact;
  for (size_t i = 0; i < a.size(); ++i) {
    orders.push_back(static_cast<float>(1 + i % 15));
    exact.push_back(Polygamma(static_cast<double>(orders[i]), wide_b[i]));
  }
  RunBinary(ResolveTile("Polygamma", DType::kFloat), BinaryForm::kVV, orders.data(), b.data(), polygamma.data(), n);
  expect("Polygamma", polygamma, exact);
  for (const char* op : {"Digamma", "BesselI0e", "BesselI1e"}) {
    std::vector<float> got(a.size());
    std::vector<double> want(a.size());
    RunUnary(ResolveTile(op, DType::kFloat), a.data(), got.data(), n);
    RunUnary(ResolveTile(op, DType::kDouble), wide_a.data(), want.data(), n);
    expect(op, got, want);
  }
}

TEST(ElementwiseTiles, HalvesComputeInFloat) {
  const std::pair<const char*, Wide (*)(Wide)> functions[] = {
      {"Exp", [](Wide x) { return std::exp(x); }}, {"Elu", Elu}, {"Selu", Selu}};
  std::vector<Half> x, y(1 << 16);
  for (uint32_t i = 0; i < 1 << 16; ++i) x.push_back(Half::FromBits(static_cast<uint16_t>(i)));
  for (const auto& [op, exact] : functions) {
    RunUnary(ResolveTile(op, DType::kHalf), x.data(), y.data(), 1 << 16);
    for (size_t i = 0; i < x.size(); ++i) {
      const Half want(static_cast<float>(exact(static_cast<float>(x[i]))));
      if (std::isnan(static_cast<float>(want))) {
        EXPECT_TRUE(std::isnan(static_cast<float>(y[i])));
      } else {
        EXPECT_LE(std::abs(want.bits - y[i].bits), 1) << op << " " << static_cast<float>(x[i]);
      }
    }
  }
}

// Tiles of narrow floats against float's, rounded: every length, and operands that are one element.
template <typename T>
void ExpectRoundedFloats(DType dtype) {
  std::mt19937 random(3);
  std::vector<T> a, b;
  for (int i = 0; i < 1 << 16; ++i) {
    a.push_back(T::FromBits(static_cast<uint16_t>(i)));
    b.push_back(T::FromBits(static_cast<uint16_t>(random())));
  }
  for (const char* op : {"Add", "Sub", "Mul", "RealDiv", "Maximum", "Minimum"}) {
    const TileOp narrow = ResolveTile(op, dtype), wide = ResolveTile(op, DType::kFloat);
    for (BinaryForm form : {BinaryForm::kVV, BinaryForm::kVS, BinaryForm::kSV}) {
      for (int64_t first : {0, 100, 65500}) {
        const int64_t n = (1 << 16) - first;
        std::vector<T> got(a.size());
        const T *x = a.data() + first, *y = b.data() + first;
        RunBinary(narrow, form, x, y, got.data(), n);
        for (int64_t i = 0; i < n; ++i) {
          const float p = static_cast<float>(form == BinaryForm::kSV ? *x : x[i]);
          const float q = static_cast<float>(form == BinaryForm::kVS ? *y : y[i]);
          float exact = 0;
          RunBinary(wide, BinaryForm::kVV, &p, &q, &exact, 1);
          const T want(exact);
          if (std::isnan(exact)) {
            ASSERT_TRUE(std::isnan(static_cast<float>(got[static_cast<size_t>(i)]))) << op << " " << p << " " << q;
          } else {
            ASSERT_EQ(got[static_cast<size_t>(i)].bits, want.bits) << op << " " << p << " " << q;
          }
        }
      }
    }
  }
}
TEST(ElementwiseTiles, NarrowFloatsRoundOnce) {
  ExpectRoundedFloats<Half>(DType::kHalf);
  ExpectRoundedFloats<BFloat16>(DType::kBFloat16);
}

TEST(ElementwiseTiles, NarrowIntegersWrapAndCompare) {
  std::vector<int8_t> a, b;
  for (int i = 0; i < 1 << 16; ++i) a.push_back(static_cast<int8_t>(i)), b.push_back(static_cast<int8_t>(i >> 8));
  const auto check = [&](const char* op, DType dtype, auto value) {
    std::vector<uint8_t> got(a.size());
    RunBinary(ResolveTile(op, dtype), BinaryForm::kVV, a.data(), b.data(), got.data(), 1 << 16);
    for (size_t i = 0; i < a.size(); ++i) {
      const bool is_signed = dtype == DType::kInt8;
      const int x = is_signed ? a[i] : static_cast<uint8_t>(a[i]), y = is_signed ? b[i] : static_cast<uint8_t>(b[i]);
      ASSERT_EQ(got[i], static_cast<uint8_t>(value(x, y))) << op << " " << x << " " << y;
    }
  };
  for (DType dtype : {DType::kInt8, DType::kUInt8}) {
    check("Add", dtype, [](int x, int y) { return x + y; });
    check("Sub", dtype, [](int x, int y) { return x - y; });
    check("Mul", dtype, [](int x, int y) { return x * y; });
    check("BitwiseXor", dtype, [](int x, int y) { return x ^ y; });
    check("Maximum", dtype, [](int x, int y) { return std::max(x, y); });
    check("Minimum", dtype, [](int x, int y) { return std::min(x, y); });
    check("Less", dtype, [](int x, int y) { return x < y; });
    check("GreaterEqual", dtype, [](int x, int y) { return x >= y; });
    check("Equal", dtype, [](int x, int y) { return x == y; });
  }
}

TEST(ElementwiseTiles, IntegerCorners) {
  const int32_t kMin = std::numeric_limits<int32_t>::min();
  const int32_t a[] = {kMin, 7, -7, 7, -7}, b[] = {-1, 2, 2, -2, -2};
  int32_t q[5], m[5];
  RunBinary(ResolveTile("FloorDiv", DType::kInt32), BinaryForm::kVV, a, b, q, 5);
  RunBinary(ResolveTile("FloorMod", DType::kInt32), BinaryForm::kVV, a, b, m, 5);
  EXPECT_EQ(std::vector<int32_t>(q, q + 5), (std::vector<int32_t>{kMin, 3, -4, -4, 3}));
  EXPECT_EQ(std::vector<int32_t>(m, m + 5), (std::vector<int32_t>{0, 1, 1, -1, -1}));
  const int8_t x[] = {-128, 100}, y[] = {-1, 100};
  int8_t z[2];
  RunBinary(ResolveTile("TruncateDiv", DType::kInt8), BinaryForm::kVV, x, y, z, 2);
  EXPECT_EQ(z[0], -128);
  RunBinary(ResolveTile("AddV2", DType::kInt8), BinaryForm::kVV, x, y, z, 2);
  EXPECT_EQ(z[0], 127);
  EXPECT_EQ(z[1], -56);
  const int32_t zeros[] = {1, 0};
  EXPECT_FALSE(CheckRightOperand(ResolveTile("Mod", DType::kInt32), zeros, 2));
  EXPECT_TRUE(CheckRightOperand(ResolveTile("Mod", DType::kInt32), zeros, 1));
}

TEST(ElementwiseTiles, QuotientsOfInt32AreThoseOfTheProcessor) {
  std::mt19937 random(17);
  std::vector<int32_t> a, b;
  const auto number = [&] { return static_cast<int32_t>(random() >> (random() % 32)) * (random() % 2 == 0 ? 1 : -1); };
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min(), kMax = std::numeric_limits<int32_t>::max();
  for (int32_t x : {kMin, kMin + 1, -2, -1, 0, 1, 2, kMax - 1, kMax}) {
    for (int32_t y : {kMin, kMin + 1, -2, -1, 1, 2, kMax - 1, kMax}) a.push_back(x), b.push_back(y);
  }
  for (int i = 0; i < 100003; ++i) a.push_back(number()), b.push_back(std::max(1, std::abs(number() / 2)));
  for (size_t i = 1; i < b.size(); i += 3) b[i] = -std::max(b[i], -kMax);
  const auto n = static_cast<int64_t>(a.size());
  for (const char* op : {"TruncateDiv", "Mod", "FloorDiv", "FloorMod"}) {
    std::vector<int32_t> got(a.size());
    std::vector<int64_t> wide_a(a.begin(), a.end()), wide_b(b.begin(), b.end()), want(a.size());
    RunBinary(ResolveTile(op, DType::kInt32), BinaryForm::kVV, a.data(), b.data(), got.data(), n);
    RunBinary(ResolveTile(op, DType::kInt64), BinaryForm::kVV, wide_a.data(), wide_b.data(), want.data(), n);
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(got[i], static_cast<int32_t>(want[i])) << op << "(" << a[i] << ", " << b[i] << ")";
    }
  }
}

TEST(ElementwiseTiles, EveryOpInPlaceEqualsOutOfPlace) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<float> value(0.1f, 3);
  std::vector<float> a(1003), b(1003), want(1003);
  for (size_t i = 0; i < a.size(); ++i) a[i] = value(random), b[i] = value(random);
  for (const char* name : {"Add", "Mul", "Pow", "FloorMod", "Xlogy", "TanhGrad"}) {
    const TileOp op = ResolveTile(name, DType::kFloat);
    for (BinaryForm form : {BinaryForm::kVV, BinaryForm::kVS, BinaryForm::kSV}) {
      RunBinary(op, form, a.data(), b.data(), want.data(), 1003);
      std::vector<float> x = form == BinaryForm::kSV ? b : a;
      if (form == BinaryForm::kSV) {
        RunBinary(op, form, a.data(), x.data(), x.data(), 1003);
      } else {
        RunBinary(op, form, x.data(), b.data(), x.data(), 1003);
      }
      EXPECT_EQ(x, want) << name;
    }
  }
}

}  // namespace
}  // namespace millrace
