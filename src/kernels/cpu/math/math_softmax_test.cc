// SPDX-License-Identifier: Apache-2.0
// Rows computed together against rows in double; NaN and infinities stay in their own row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

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

TEST(SoftmaxRows, ShortAndLongRows) {
  Check(FloatSoftmaxRows(), 1e-5);
  Check(DoubleSoftmaxRows(), 2e-14);
}

}  // namespace
}  // namespace millrace
