// SPDX-License-Identifier: Apache-2.0
// TopKV2 beside a stable sort: descending, NaN above everything, of equal values the first one first.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/math/math_ranking.h"

namespace millrace {
namespace {

constexpr char kTopK[] = "TopKV2(input:T, k:i32) -> (values:T, indices:i32) | sorted:bool=true; T in REAL";
constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

std::vector<int32_t> Best(const std::vector<float>& row, int64_t k) {
  std::vector<int32_t> at(row.size());
  std::iota(at.begin(), at.end(), 0);
  std::stable_sort(at.begin(), at.end(), [&](int32_t a, int32_t b) {
    const float x = row[static_cast<size_t>(a)], y = row[static_cast<size_t>(b)];
    return std::isnan(x) ? !std::isnan(y) : x > y;
  });
  at.resize(static_cast<size_t>(k));
  return at;
}

void Check(KernelRunner& runner, const std::vector<float>& row, int64_t k) {
  const auto n = static_cast<int64_t>(row.size());
  Tensor input = *Tensor::Make(DType::kFloat, *Shape::Make({1, n}));
  std::copy(row.begin(), row.end(), input.mutable_data<float>());
  AttrMap attrs;
  attrs.emplace("T", DType::kFloat);
  attrs.emplace("sorted", true);
  const auto got = runner.Run(kTopK, attrs, {input, Tensor::Scalar<int32_t>(static_cast<int32_t>(k))});
  ASSERT_TRUE(got.ok()) << got.status();
  const int32_t* const indices = (*got)[1].data<int32_t>();
  EXPECT_EQ(std::vector<int32_t>(indices, indices + k), Best(row, k)) << n << " values, k = " << k;
}

TEST(TopK, AsAStableSort) {
  KernelRunner runner(RegisterTopKKernels, 1);
  std::mt19937 random(11);
  for (const int64_t n : {1, 2, 31, 32, 33, 100, 129, 1000, 5000}) {
    for (const int64_t k : {1, 2, 5, 16, 17, 40, 200, 1000, 2047, 2048, 3000, 5000}) {
      if (k > n) continue;
      for (const int kind : {0, 1, 2, 3}) {
        std::vector<float> row(static_cast<size_t>(n));
        for (size_t i = 0; i < row.size(); ++i) {
          const auto r = static_cast<float>(random() % 1000);
          row[i] = kind == 0 ? r : kind == 1 ? static_cast<float>(i) : kind == 2 ? -static_cast<float>(i) : 0.0f;
          if (kind == 3 || random() % 40 == 0) {  // many alike
            constexpr float kSpecial[] = {kNan, kInf, -kInf, 0.0f, -0.0f, 7.0f};
            row[i] = kSpecial[random() % 6];
          }
        }
        Check(runner, row, k);
      }
    }
  }
}

// Rows so long that threads share them: candidates by a sample, and a sort by digits of several parts.
TEST(TopK, LongRows) {
  KernelRunner runner(RegisterTopKKernels, 2);
  std::mt19937 random(12);
  constexpr int64_t kLong = (1 << 18) + 77;
  std::vector<float> row(kLong);
  for (const int kind : {0, 1, 2, 3}) {
    for (size_t i = 0; i < row.size(); ++i) {
      const auto r = static_cast<float>(random());
      row[i] = kind == 0 ? r : kind == 1 ? static_cast<float>(random() % 50) : kind == 2 ? static_cast<float>(i) : r;
      if (kind == 3 && random() % 3 == 0) row[i] = kNan;
    }
    for (const int64_t k : {int64_t{20}, int64_t{50000}, kLong}) Check(runner, row, k);
  }
}

// Of rows and columns of odd sizes, with NaN, which is never the greatest, and infinities.
TEST(ArgMax, IsTheFirstOfTheGreatest) {
  KernelRunner runner(RegisterArgKernels, 1);
  constexpr char kArgMax[] = "ArgMax(input:T, dimension:i32) -> (output:i64) | T in REAL";
  std::mt19937 random(12);
  for (const int64_t n : {1, 2, 15, 16, 17, 31, 33, 100, 255, 257, 272, 1000}) {
    constexpr int64_t kRows = 40;
    Tensor input = *Tensor::Make(DType::kFloat, *Shape::Make({kRows, n}));
    float* const x = input.mutable_data<float>();
    for (int64_t i = 0; i < kRows * n; ++i) {
      constexpr float kSpecial[] = {kNan, kInf, -kInf, 0.0f, -0.0f};
      const bool special = i < 5 * n || random() % 30 == 0;
      x[i] = special ? kSpecial[i < 5 * n ? static_cast<uint64_t>(i / n) : random() % 5]
                     : static_cast<float>(random() % 50);
    }
    for (const int axis : {0, 1}) {
      AttrMap attrs;
      attrs.emplace("T", DType::kFloat);
      const auto got = runner.Run(kArgMax, attrs, {input, Tensor::Scalar<int32_t>(axis)});
      ASSERT_TRUE(got.ok()) << got.status();
      const int64_t count = axis == 0 ? n : kRows, along = axis == 0 ? kRows : n, step = axis == 0 ? n : 1;
      for (int64_t k = 0; k < count; ++k) {
        const float* const row = x + (axis == 0 ? k : k * n);
        int64_t want = 0;
        float best = -kInf;
        for (int64_t i = 0; i < along; ++i) {
          if (row[i * step] > best) best = row[(want = i) * step];
        }
        EXPECT_EQ((*got)[0].data<int64_t>()[k], want) << n << " columns, axis " << axis << ", " << k;
      }
    }
  }
}

}  // namespace
}  // namespace millrace
