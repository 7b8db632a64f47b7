// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

constexpr char kHistogram[] =
    "HistogramFixedWidth(values:T, value_range:T, nbins:i32) -> (out:dtype) | T in i32|i64|f32|f64; dtype in IDX=i32";

StatusOr<Tensor> Histogram(const Tensor& values, const Tensor& range, int32_t bins, int threads) {
  KernelRunner runner(RegisterIndexKernels, threads);
  MR_ASSIGN_OR_RETURN(
      const auto out,
      runner.Run(kHistogram, {{"T", AttrValue(values.dtype())}}, {values, range, Tensor::Scalar<int32_t>(bins)}));
  return out[0];
}

template <typename T>
void Compare(int64_t n, int32_t bins) {
  std::mt19937 random(static_cast<uint32_t>(n + bins));
  std::normal_distribution<double> number(0, 40);
  Tensor values = *Tensor::Make(DTypeOf<T>::value, Shape::Vector(n));
  for (int64_t i = 0; i < n; ++i) values.mutable_data<T>()[i] = static_cast<T>(number(random));
  Tensor range = *Tensor::Make(DTypeOf<T>::value, Shape::Vector(2));
  range.mutable_data<T>()[0] = T(-90), range.mutable_data<T>()[1] = T(77);
  std::vector<int32_t> want(static_cast<size_t>(bins));
  for (int64_t i = 0; i < n; ++i) {
    const double at = (static_cast<double>(values.data<T>()[i]) + 90) / (167.0 / bins);
    ++want[static_cast<size_t>(std::clamp(at, 0.0, bins - 1.0))];
  }
  for (int threads : {1, 3}) {
    const auto got = Histogram(values, range, bins, threads);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(std::equal(want.begin(), want.end(), got->data<int32_t>())) << n << " values in " << bins;
  }
}

TEST(Histogram, CountsEveryValueOnce) {
  for (int64_t n : {0, 1, 3, 511, 513, 4099, 300007}) {
    for (int32_t bins : {1, 2, 7, 100, 5000}) {
      Compare<float>(n, bins);
      Compare<double>(n, bins);
      Compare<int32_t>(n, bins);
    }
  }
}

TEST(Histogram, RefusesNaNWhereverItIs) {
  for (int64_t at : {0, 17, 511, 700, 1030}) {
    Tensor values = Tensor::Vector<float>(std::vector<float>(1031, 0.5f));
    values.mutable_data<float>()[at] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(
        Histogram(values, Tensor::Vector<float>({0, 1}), 4, 1).status().code(), absl::StatusCode::kInvalidArgument);
    values.mutable_data<float>()[at] = std::numeric_limits<float>::infinity();
    const auto counted = Histogram(values, Tensor::Vector<float>({0, 1}), 4, 1);
    ASSERT_TRUE(counted.ok());
    EXPECT_EQ(counted->data<int32_t>()[3], 1);
  }
}

}  // namespace
}  // namespace millrace
