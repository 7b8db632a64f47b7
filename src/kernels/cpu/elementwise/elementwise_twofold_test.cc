// SPDX-License-Identifier: Apache-2.0
// Inverse tangents, of hyperbolas too, and error functions of doubles: errors, beside those of the C library on the
// same arguments, and special values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/elementwise/elementwise_table.h"

namespace millrace {
namespace {

using Wide = long double;
constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

double ErrorInUlp(double got, Wide want) {
  const double a = static_cast<double>(std::fabs(want));
  int e = 0;
  std::frexp(std::max(a, std::numeric_limits<double>::min()), &e);
  return static_cast<double>(std::fabs(static_cast<Wide>(got) - want) / std::ldexp(Wide(1), e - 53));
}

void ExpectSame(double got, double want, const char* op, double a, double b) {
  EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want))
      << op << "(" << a << ", " << b << ") = " << got << ", want " << want;
}

struct Function {
  const char* op;
  Wide (*exact)(Wide);
  double (*library)(double);
  double low, high;  // where it is looked at closely
};

TEST(ElementwiseTwofold, NoLessExactThanTheLibrary) {
  const Function functions[] = {
      {"Atan", [](Wide x) { return std::atan(x); }, [](double x) { return std::atan(x); }, 0, 20},
      {"Atanh", [](Wide x) { return std::atanh(x); }, [](double x) { return std::atanh(x); }, -1, 1},
      {"Erf", [](Wide x) { return std::erf(x); }, [](double x) { return std::erf(x); }, 0, 6.2},
      {"Erfc", [](Wide x) { return std::erfc(x); }, [](double x) { return std::erfc(x); }, -7, 28},
  };
  for (const Function& f : functions) {
    std::mt19937_64 random(29);
    std::vector<double> x;
    std::uniform_real_distribution<double> close(f.low, f.high), unit(-1.2, 1.2), exponent(-300, 0);
    for (int i = 0; i < 200000; ++i) x.push_back(close(random)), x.push_back(unit(random));
    for (int i = 0; i < 20000; ++i) x.push_back(std::exp2(exponent(random)));
    for (int i = -2000; i <= 2000; ++i) {  // around the ends of intervals
      const double end = i / 512.0 * 17;
      x.push_back(end), x.push_back(std::nextafter(end, 100.0)), x.push_back(std::nextafter(end, -100.0));
    }
    for (int i = 1; i < 54; ++i) x.push_back(1 - std::exp2(-i)), x.push_back(1 - 1.4142135623730951 * std::exp2(-i));
    if (f.high == 1) std::erase_if(x, [](double v) { return std::fabs(v) >= 1; });
    std::vector<double> y(x.size());
    RunUnary(ResolveTile(f.op, DType::kDouble), x.data(), y.data(), static_cast<int64_t>(x.size()));
    double worst = 0, library = 0, at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const Wide want = f.exact(x[i]);
      const double error = ErrorInUlp(y[i], want);
      if (!(error <= worst)) worst = error, at = x[i];
      library = std::max(library, ErrorInUlp(f.library(x[i]), want));
    }
    std::printf("%-6s %.3f ulp at %.17g, the library's %.3f\n", f.op, worst, at, library);
    EXPECT_LE(worst, library) << f.op << " at " << at;
    for (const double v : {0.0, -0.0, kInfinity, -kInfinity, kNan, 1e-310, -5e-324, 1e300, -1e308}) {
      double got = 0;
      RunUnary(ResolveTile(f.op, DType::kDouble), &v, &got, 1);
      ExpectSame(got, f.library(v), f.op, v, 0);
    }
  }
}

TEST(ElementwiseTwofold, EndsOfAtanh) {
  for (const double v : {1.0, -1.0, std::nextafter(1.0, 2.0), std::nextafter(-1.0, -2.0)}) {
    double got = 0;
    RunUnary(ResolveTile("Atanh", DType::kDouble), &v, &got, 1);
    ExpectSame(got, std::atanh(v), "Atanh", v, 0);
  }
}

TEST(ElementwiseTwofold, AnglesOfPairs) {
  std::vector<double> a, b;
  const std::vector<double> special = {
      0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 5e-324, 1e-310, -1e308, 1e308, 1e-160, kInfinity, -kInfinity, kNan};
  for (const double y : special) {
    for (const double x : special) a.push_back(y), b.push_back(x);
  }
  std::mt19937_64 random(31);
  std::uniform_real_distribution<double> value(-100, 100), exponent(-1060, 1010), near(-60, 60);
  for (int i = 0; i < 200000; ++i) a.push_back(value(random)), b.push_back(value(random));
  for (int i = 0; i < 100000; ++i) {  // of every size, and of about the same
    const double e = exponent(random);
    a.push_back(std::ldexp(value(random), static_cast<int>(e)));
    b.push_back(std::ldexp(value(random), static_cast<int>(i % 2 ? e + near(random) / 8 : exponent(random))));
  }
  std::vector<double> got(a.size());
  const TileOp op = ResolveTile("Atan2", DType::kDouble);
  RunBinary(op, BinaryForm::kVV, a.data(), b.data(), got.data(), static_cast<int64_t>(a.size()));
  double worst = 0, library = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double expected = std::atan2(a[i], b[i]);
    if (i < special.size() * special.size()) {
      if (std::isnan(expected) || expected == 0) {
        ExpectSame(got[i], expected, "Atan2", a[i], b[i]);
        continue;
      }
    }
    const Wide want = std::atan2(static_cast<Wide>(a[i]), static_cast<Wide>(b[i]));
    const double error = ErrorInUlp(got[i], want);
    EXPECT_LE(error, 1) << a[i] << ", " << b[i];
    worst = std::max(worst, error);
    library = std::max(library, ErrorInUlp(expected, want));
  }
  std::printf("Atan2  %.3f ulp, the library's %.3f\n", worst, library);
  EXPECT_LE(worst, library);
  const double one = -3;
  for (const BinaryForm form : {BinaryForm::kVS, BinaryForm::kSV}) {
    std::vector<double> some(101), want(101), repeated(101, one);
    const double* const p = a.data() + 1000;
    const bool first = form == BinaryForm::kSV;
    RunBinary(op, form, first ? &one : p, first ? p : &one, some.data(), 101);
    RunBinary(op, BinaryForm::kVV, first ? repeated.data() : p, first ? p : repeated.data(), want.data(), 101);
    EXPECT_EQ(some, want);
  }
}

}  // namespace
}  // namespace millrace
