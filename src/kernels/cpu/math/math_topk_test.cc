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

}  // namespace
}  // namespace millrace
