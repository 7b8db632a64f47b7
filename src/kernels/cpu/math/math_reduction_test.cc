// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/math_reducer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/engine/math_reduce_plan.h"

namespace millrace {
namespace {

Tensor Axes(std::initializer_list<int32_t> axes) { return Tensor::Vector<int32_t>(axes); }

ReducePlan Plan(std::initializer_list<int64_t> dims, std::initializer_list<int32_t> axes, bool keep = false) {
  ReducePlan plan;
  EXPECT_TRUE(PlanReduction(*Shape::Make(dims), Axes(axes), keep, &plan).ok());
  return plan;
}

TEST(ReducePlan, MergesNeighboursAndDropsOnes) {
  const ReducePlan plan = Plan({2, 3, 1, 4, 5}, {0, 1, 4});
  EXPECT_EQ(plan.result.ToString(), "[1,4]");
  EXPECT_TRUE(plan.inner_reduced);
  EXPECT_EQ(plan.inner, 5);
  EXPECT_EQ(plan.reduced.count, 6);
  EXPECT_EQ(plan.kept.count, 4);
  EXPECT_EQ(plan.reduced.Offset(5), 5 * 4 * 5);
  EXPECT_EQ(plan.reduced_elements, 30);
}

TEST(ReducePlan, KeepsDims) { EXPECT_EQ(Plan({2, 3, 4}, {-1, 0}, true).result.ToString(), "[1,3,1]"); }

TEST(ReducePlan, RefusesBadAxes) {
  ReducePlan plan;
  const Shape shape = *Shape::Make({2, 3});
  EXPECT_EQ(PlanReduction(shape, Axes({2}), false, &plan).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PlanReduction(shape, Axes({-3}), false, &plan).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PlanReduction(shape, Axes({1, -1}), false, &plan).code(), absl::StatusCode::kInvalidArgument);
}

std::vector<float> Numbers(int64_t n) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = uniform(random);
  return v;
}

double Reduced(const Reducer& r, const std::vector<float>& v) {
  double acc = 0;
  float out = 0;
  r.Init(&acc, 1);
  r.Inner(v.data(), 1, static_cast<int64_t>(v.size()), &acc);
  r.Finish(&acc, 1, static_cast<int64_t>(v.size()), &out);
  return static_cast<double>(out);
}

TEST(Reducer, FloatSumsAreAsGoodAsDouble) {
  const auto sum = FindReducer(ReduceKind::kSum, DType::kFloat);
  for (const int64_t n : {1, 15, 16, 17, 63, 64, 65, 2047, 2048, 2049, 1000003}) {
    const std::vector<float> v = Numbers(n);
    double want = 0;
    for (const float x : v) want += static_cast<double>(x);
    EXPECT_NEAR(Reduced(*sum, v), want, want * 1.2e-7) << n;
  }
}

TEST(Reducer, OuterEqualsInner) {
  for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMax, ReduceKind::kProd, ReduceKind::kMean}) {
    const auto r = FindReducer(kind, DType::kFloat);
    for (const int64_t rows : {1, 7, 8, 15, 16, 17, 300, 555}) {
      const int64_t columns = 37;
      std::vector<float> v = Numbers(rows * columns);
      if (kind == ReduceKind::kProd) {
        for (float& x : v) x = 1 + 0.01f * x;
      }
      std::vector<double> acc(columns);
      std::vector<float> out(columns);
      r->Init(acc.data(), columns);
      r->Outer(v.data(), rows, columns, columns, acc.data());
      r->Finish(acc.data(), columns, rows, out.data());
      for (int64_t j = 0; j < columns; ++j) {
        std::vector<float> column;
        for (int64_t i = 0; i < rows; ++i) column.push_back(v[static_cast<size_t>(i * columns + j)]);
        EXPECT_NEAR(out[static_cast<size_t>(j)], Reduced(*r, column), 1e-6 * std::abs(Reduced(*r, column)));
      }
    }
  }
}

TEST(Reducer, ExtremesSeeNaNAnywhere) {
  for (const ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin}) {
    const auto r = FindReducer(kind, DType::kFloat);
    const auto reduced = [&](const std::vector<float>& v) {
      float acc = 0, out = 0;
      r->Init(&acc, 1);
      r->Inner(v.data(), 1, static_cast<int64_t>(v.size()), &acc);
      r->Finish(&acc, 1, static_cast<int64_t>(v.size()), &out);
      return out;
    };
    for (const size_t n : {1u, 15u, 16u, 17u, 31u, 100u, 2048u, 2049u}) {
      for (size_t at = 0; at < std::min<size_t>(n, 100); ++at) {
        std::vector<float> v = Numbers(static_cast<int64_t>(n));
        v[at] = kind == ReduceKind::kMax ? 7 : -7;
        EXPECT_EQ(reduced(v), v[at]) << at << " of " << n;
        v[at] = std::nanf("");
        EXPECT_TRUE(std::isnan(reduced(v))) << at << " of " << n;
      }
    }
  }
}

TEST(Reducer, BooleansAreFoundAnywhere) {
  const auto any = FindReducer(ReduceKind::kAny, DType::kBool), all = FindReducer(ReduceKind::kAll, DType::kBool);
  for (const int64_t n : {1, 15, 16, 17, 100}) {
    for (int64_t at = -1; at < 3 * n; ++at) {
      std::vector<uint8_t> v(static_cast<size_t>(3 * n), 0);
      if (at >= 0) v[static_cast<size_t>(at)] = 1;
      const auto reduced = [&](const Reducer& r) {
        std::vector<uint8_t> acc(3), out(3);
        r.Init(acc.data(), 3);
        r.Inner(v.data(), 3, n, acc.data());
        r.Finish(acc.data(), 3, n, out.data());
        return out;
      };
      std::vector<uint8_t> want(3, 0);
      if (at >= 0) want[static_cast<size_t>(at / n)] = 1;
      EXPECT_EQ(reduced(*any), want) << n << ", " << at;
      for (uint8_t& x : v) x = x == 0;
      for (uint8_t& x : want) x = x == 0;
      EXPECT_EQ(reduced(*all), want) << n << ", " << at;
    }
  }
}

TEST(Reducer, MeansOfInt32DoNotWrap) {
  const auto mean = FindReducer(ReduceKind::kMean, DType::kInt32);
  for (const int32_t v : {std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}) {
    const std::vector<int32_t> row(1000, v);
    int64_t acc = 0;
    int32_t out = 0;
    mean->Init(&acc, 1);
    mean->Inner(row.data(), 1, 1000, &acc);
    mean->Finish(&acc, 1, 1000, &out);
    EXPECT_EQ(out, v);
  }
}

TEST(Reducer, NarrowTypes) {
  const auto sum = FindReducer(ReduceKind::kSum, DType::kInt8);
  std::vector<int8_t> v(300, 1);
  int64_t acc = 0;
  int8_t out = 0;
  sum->Init(&acc, 1);
  sum->Inner(v.data(), 1, 300, &acc);
  sum->Finish(&acc, 1, 300, &out);
  EXPECT_EQ(out, 44);  // wraps
  const auto max = FindReducer(ReduceKind::kMax, DType::kInt16);
  int16_t lowest = 0;
  max->Init(&acc, 1);
  max->Finish(&acc, 1, 0, &lowest);
  EXPECT_EQ(lowest, -32768);
  EXPECT_EQ(FindReducer(ReduceKind::kMax, DType::kComplex64), nullptr);
}

}  // namespace
}  // namespace millrace
