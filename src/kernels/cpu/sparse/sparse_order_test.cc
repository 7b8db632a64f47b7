// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <random>

#include "gtest/gtest.h"
#include "kernels/cpu/sparse/sparse.h"

namespace millrace {
namespace {

// By digits where the indices fit a number, else by comparisons: equal indices stay in order either way.
TEST(RowMajorOrder, IsStable) {
  std::mt19937_64 random(9);
  for (const int64_t n : {0, 1, 5, 1023, 1024, 5000}) {
    for (const int64_t rank : {1, 2, 5}) {
      for (const int bits : {2, 12, 63}) {
        Tensor indices = *Tensor::Make(DType::kInt64, *Shape::Make({n, rank}));
        for (int64_t i = 0; i < n * rank; ++i) {
          const auto v = static_cast<int64_t>(random() >> (64 - bits));
          indices.mutable_data<int64_t>()[i] = random() % 8 == 0 ? -v : v;
        }
        const SparseArg s{.indices = &indices, .n = n, .rank = rank};
        for (int64_t columns = 0; columns <= rank; ++columns) {
          std::vector<int64_t> want(static_cast<size_t>(n));
          std::iota(want.begin(), want.end(), int64_t{0});
          std::stable_sort(want.begin(), want.end(), [&](int64_t a, int64_t b) {
            return std::lexicographical_compare(s.at(a), s.at(a) + columns, s.at(b), s.at(b) + columns);
          });
          EXPECT_EQ(RowMajorOrder(s, columns), want) << n << " of rank " << rank << ", " << bits << " bits";
        }
      }
    }
  }
}

}  // namespace
}  // namespace millrace
