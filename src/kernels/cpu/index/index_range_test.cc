// SPDX-License-Identifier: Apache-2.0
// Every element of a long range, on threads, and of short ones.
#include <type_traits>

#include "gtest/gtest.h"
#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

constexpr char kRange[] = "Range(start:Tidx, limit:Tidx, delta:Tidx) -> (output:Tidx) | Tidx in FLT|IDX=i32";

template <typename T>
void Check(T start, T delta, int64_t n) {
  static KernelRunner runner(RegisterIndexKernels, 4);
  const T limit = static_cast<T>(start + static_cast<T>(n) * delta);
  const auto r = runner.Run(kRange, {{"Tidx", AttrValue(DTypeOf<T>::value)}},
                            {Tensor::Scalar<T>(start), Tensor::Scalar<T>(limit), Tensor::Scalar<T>(delta)});
  ASSERT_TRUE(r.ok()) << r.status();
  ASSERT_EQ((*r)[0].num_elements(), n);
  for (int64_t i = 0; i < n; ++i) {
    T want;
    if constexpr (std::is_integral_v<T>) {
      want = static_cast<T>(start + static_cast<T>(i) * delta);
    } else {
      // Volatile, so that nothing is fused.
      const volatile double step = static_cast<double>(i) * static_cast<double>(delta);
      want = static_cast<T>(static_cast<double>(start) + step);
    }
    ASSERT_EQ((*r)[0].template data<T>()[i], want) << i << " of " << n;
  }
}

TEST(Range, EveryElement) {
  for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{33}, int64_t{100}, int64_t{2000003}}) {
    Check<int32_t>(-5, 3, n);
    Check<int32_t>(900, -7, n);
    Check<int64_t>(int64_t{1} << 40, -(int64_t{1} << 33), n);
    Check<double>(-4, 0.25, n);
    Check<float>(3, 0.125f, n);
  }
  // Steps that are rounded.
  Check<double>(1, 0.1, 1001);
  Check<float>(-1, 0.1f, 1001);
}

}  // namespace
}  // namespace millrace
