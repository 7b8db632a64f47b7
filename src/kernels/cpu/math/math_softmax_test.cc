// SPDX-License-Identifier: Apache-2.0
// Rows computed together against rows in double; NaN and infinities stay in their own row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/math/math_softmax_rows.h"

namespace millrace {
namespace {

template <typename T>
void Check(const SoftmaxRows<T>& functions, double tolerance) {
  std::mt19937 random(3);
  std::uniform_real_distribution<T> value(-20, 20);
  const int64_t rows = 53;
  for (int64_t n : {1, 2, 3, 10, 31, 64, 65, 200}) {
    std::vector<T> x(static_cast<size_t>(rows * n)), y(x.size()), logs(x.size());
    for (T& v : x) v = value(random);
    x[0] = std::numeric_limits<T>::quiet_NaN();
    x[static_cast<size_t>(2 * n)] = -std::numeric_limits<T>::infinity();
    functions.softmax(x.data(), rows, n, y.data());
    functions.log_softmax(x.data(), rows, n, logs.data());
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = x.data() + r * n;
      if (r == 0 || (r == 2 && n == 1)) {
        EXPECT_TRUE(std::isnan(y[static_cast<size_t>(r * n)])) << n;
        continue;
      }
      const double max = static_cast<double>(*std::max_element(row, row + n));
      double sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += std::exp(static_cast<double>(row[j]) - max);
      for (int64_t j = 0; j < n; ++j) {
        const size_t at = static_cast<size_t>(r * n + j);
        const double log = static_cast<double>(row[j]) - max - std::log(sum);
        EXPECT_NEAR(static_cast<double>(y[at]), std::exp(log), tolerance * std::exp(log)) << r << " " << n;
        if (!std::isinf(log)) {
          EXPECT_NEAR(static_cast<double>(logs[at]), log, tolerance * (1 + std::abs(log)));
        }
      }
    }
    std::vector<T> in_place = x;
    functions.softmax(in_place.data(), rows, n, in_place.data());
    for (size_t i = static_cast<size_t>(n); i < x.size(); ++i) {
      if (!std::isnan(y[i])) {
        EXPECT_EQ(in_place[i], y[i]);
      }
    }
  }
}

template <typename T>
void CheckEntropy(const SoftmaxRows<T>& functions, double tolerance) {
  std::mt19937 random(4);
  std::uniform_real_distribution<T> value(-20, 20);
  const int64_t rows = 53;
  for (int64_t n : {1, 2, 3, 10, 31, 64, 65}) {
    std::vector<T> x(static_cast<size_t>(rows * n)), labels(x.size()), out(x.size()), loss(rows);
    std::vector<int64_t> classes(rows);
    for (T& v : x) v = value(random);
    for (size_t r = 0; r < rows; ++r) classes[r] = static_cast<int64_t>(random() % static_cast<uint32_t>(n));
    x[0] = -std::numeric_limits<T>::infinity();  // excluded by its labels where there is another class
    if (n > 1) classes[0] = 1;
    for (const bool sparse : {true, false}) {
      for (size_t i = 0; i < x.size(); ++i) {
        const auto r = static_cast<int64_t>(i) / n, j = static_cast<int64_t>(i) % n;
        const bool chosen = classes[static_cast<size_t>(r)] == j;
        labels[i] = sparse || r == 0 ? T(chosen) : value(random) + T(20);
      }
      if (sparse) {
        functions.sparse_cross_entropy(x.data(), classes.data(), rows, n, loss.data(), out.data());
      } else {
        functions.cross_entropy(x.data(), labels.data(), rows, n, loss.data(), out.data());
      }
      for (int64_t r = n > 1 ? 0 : 1; r < rows; ++r) {
        const T* row = x.data() + r * n;
        const double max = static_cast<double>(*std::max_element(row, row + n));
        double sum = 0, want = 0, size = 1;
        for (int64_t j = 0; j < n; ++j) sum += std::exp(static_cast<double>(row[j]) - max);
        for (int64_t j = 0; j < n; ++j) {
          const double y = static_cast<double>(labels[static_cast<size_t>(r * n + j)]);
          const double log = static_cast<double>(row[j]) - max - std::log(sum);
          if (y != 0) want -= y * log, size += std::abs(y * log);
          EXPECT_NEAR(static_cast<double>(out[static_cast<size_t>(r * n + j)]), std::exp(log) - y, tolerance * (1 + y))
              << r << " " << n;
        }
        EXPECT_NEAR(static_cast<double>(loss[static_cast<size_t>(r)]), want, tolerance * size) << r << " " << n;
      }
    }
  }
}

TEST(SoftmaxRows, CrossEntropyOfShortAndLongRows) {
  CheckEntropy(FloatSoftmaxRows(), 1e-5);
  CheckEntropy(DoubleSoftmaxRows(), 2e-14);
}

TEST(SoftmaxRows, ShortAndLongRows) {
  Check(FloatSoftmaxRows(), 1e-5);
  Check(DoubleSoftmaxRows(), 2e-14);
}

// Rows that are left over are summed otherwise, so it matters where rows are cut.
TEST(SoftmaxRows, SameBitsOnAnyNumberOfThreads) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> value(-5, 5);
  for (const DType dtype : {DType::kFloat, DType::kBFloat16}) {
    Tensor x = *Tensor::Make(dtype, *Shape::Make({20011, 10}));
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      if (dtype == DType::kFloat) {
        x.mutable_data<float>()[i] = value(random);
      } else {
        x.mutable_data<BFloat16>()[i] = static_cast<BFloat16>(value(random));
      }
    }
    std::vector<Tensor> got;
    for (int threads : {1, 3}) {
      KernelRunner runner(RegisterMathKernels, threads);
      auto y = runner.Run("Softmax(logits:T) -> (softmax:T) | T:type", {{"T", dtype}}, {x});
      ASSERT_TRUE(y.ok()) << y.status();
      got.push_back((*y)[0]);
    }
    EXPECT_EQ(std::memcmp(got[0].raw(), got[1].raw(), x.TotalBytes()), 0);
  }
}

}  // namespace
}  // namespace millrace
