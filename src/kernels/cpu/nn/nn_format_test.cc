// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

constexpr char kNth[] = "NthElement(input:T, n:i32) -> (values:T) | reverse:bool=false; T in REAL";

// Rows long enough to be counted away, of every sort of float; NaN is the largest.
TEST(NthElement, IsThatOfTheSortedRow) {
  std::mt19937 random(3);
  std::normal_distribution<float> number;
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  KernelRunner runner(RegisterNnKernels, 2);
  for (const int64_t columns : {1, 40, 999, 1000, 4001}) {
    for (int kind = 0; kind < 4; ++kind) {
      std::vector<float> row(static_cast<size_t>(columns));
      for (float& v : row) {
        v = kind == 0 ? number(random) : kind == 1 ? std::bit_cast<float>(static_cast<uint32_t>(random())) : 2.5f;
        if (kind == 3) v = std::vector<float>{0.0f, -0.0f, kInf, -kInf, kNaN, -kNaN, -1.0f}[random() % 7];
      }
      Tensor input = *Tensor::Make(DType::kFloat, *Shape::Make({1, columns}));
      std::copy(row.begin(), row.end(), input.mutable_data<float>());
      std::sort(row.begin(), row.end(), [](float a, float b) { return b != b ? a == a : a < b; });
      for (const int64_t n : {int64_t{0}, columns / 3, columns / 2, columns - 1}) {
        for (const bool reverse : {false, true}) {
          const auto got = runner.Run(kNth, {{"T", AttrValue(DType::kFloat)}, {"reverse", AttrValue(reverse)}},
                                      {input, Tensor::Scalar<int32_t>(static_cast<int32_t>(n))});
          ASSERT_TRUE(got.ok()) << got.status();
          const float v = (*got)[0].data<float>()[0];
          const float want = row[static_cast<size_t>(reverse ? columns - 1 - n : n)];
          EXPECT_TRUE(v == want || (v != v && want != want)) << v << " for " << want << ", " << n << " of " << columns;
        }
      }
    }
  }
}

}  // namespace
}  // namespace millrace
