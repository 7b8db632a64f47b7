// SPDX-License-Identifier: Apache-2.0
// Tiles of functions that serve most numbers without branches; the others go through scalar functions. Included
// once per instruction set.
// clang-format off
#if defined(MILLRACE_ELEMENTWISE_SERVED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_ELEMENTWISE_SERVED_INL_H_
#undef MILLRACE_ELEMENTWISE_SERVED_INL_H_
#else
#define MILLRACE_ELEMENTWISE_SERVED_INL_H_
#endif
// clang-format on

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/cpu/elementwise/elementwise_table.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

// c[0] + c[1] t + c[2] t^2 + ...
template <size_t N>
HWY_INLINE double ByPowers(const double (&c)[N], double t) {
  double sum = c[N - 1];
#pragma GCC unroll 40
  for (int k = static_cast<int>(N) - 2; k >= 0; --k) sum = sum * t + c[k];
  return sum;
}

// Fn::Do(x) where Fn::Serves(x), which it may be asked anyway; else Fn::Slow(x).
template <class Fn, typename T>
void RunServed(const void* in_raw, void* out_raw, int64_t n) {
  const T* in = static_cast<const T*>(in_raw);
  T* out = static_cast<T*>(out_raw);
  constexpr int64_t kServedBlock = 256;
  T x[kServedBlock];  // out may be in
  for (int64_t i = 0; i < n; i += kServedBlock, in += kServedBlock, out += kServedBlock) {
    const int64_t k = std::min(kServedBlock, n - i);
    std::copy(in, in + k, x);
    int32_t other = 0;
    for (int64_t j = 0; j < k; ++j) other |= Fn::Serves(x[j]) ? 0 : 1;
#pragma GCC ivdep
    for (int64_t j = 0; j < k; ++j) out[j] = Fn::Do(x[j]);
    for (int64_t j = 0; other != 0 && j < k; ++j) {
      if (!Fn::Serves(x[j])) out[j] = static_cast<T>(Fn::Slow(static_cast<double>(x[j])));
    }
  }
}

template <class Fn, typename T = float>
void AddServed(TileTable& t, const char* name, float cost) {
  TileFn f;
  f.in = f.out = DTypeOf<T>::value;
  f.cost = cost;
  f.unary = &RunServed<Fn, T>;
  t.Add(name, f);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#endif
