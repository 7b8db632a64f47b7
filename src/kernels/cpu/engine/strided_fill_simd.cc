// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/strided_fill_simd.h"

#include <cstring>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/strided_fill_simd.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

void Fill(char* dst, const char* pattern, int64_t n) {
  char twice[32];  // from k on it has the pattern that belongs k bytes behind dst
  std::memcpy(twice, pattern, 16);
  std::memcpy(twice + 16, pattern, 16);
  int64_t at = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint8_t> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n >= 5 * lanes) {  // stores that lie in two cache lines take twice the time
    const auto to = reinterpret_cast<uint8_t*>(dst);
    hn::StoreU(hn::LoadDup128(d, reinterpret_cast<const uint8_t*>(twice)), d, to);
    at = lanes - static_cast<int64_t>(reinterpret_cast<uintptr_t>(dst) % static_cast<uintptr_t>(lanes));
    const auto v = hn::LoadDup128(d, reinterpret_cast<const uint8_t*>(twice) + at % 16);
    for (; at + 4 * lanes <= n; at += 4 * lanes) {
      for (int64_t k = 0; k < 4; ++k) hn::StoreU(v, d, to + at + k * lanes);
    }
  }
#endif
  for (; at + 16 <= n; at += 16) std::memcpy(dst + at, twice + at % 16, 16);
  std::memcpy(dst + n - 16, twice + n % 16, 16);
}

// Vectors reach beyond the end of a row, into the next one, which is written after it.
template <typename T>
void FillRowsOf(const char* from, int64_t step, int64_t rows, int64_t n, T* to) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* const end = to + rows * n;
  for (int64_t r = 0; r < rows; ++r, from += step, to += n) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    const auto v = hn::Set(d, value);
    int64_t k = 0;
    for (; k + lanes <= n; k += lanes) hn::StoreU(v, d, to + k);
    if (k < n && end - (to + k) >= lanes) {
      hn::StoreU(v, d, to + k);
    } else {
      for (; k < n; ++k) to[k] = value;
    }
  }
}
void RowsFilled(int64_t element_bytes, const char* from, int64_t step, int64_t rows, int64_t n, char* to) {
  switch (element_bytes) {
    case 1: return FillRowsOf(from, step, rows, n, reinterpret_cast<uint8_t*>(to));
    case 2: return FillRowsOf(from, step, rows, n, reinterpret_cast<uint16_t*>(to));
    case 4: return FillRowsOf(from, step, rows, n, reinterpret_cast<uint32_t*>(to));
    default: return FillRowsOf(from, step, rows, n, reinterpret_cast<uint64_t*>(to));
  }
}

void Ramp(float start, float step, int32_t first, float* to, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto v0 = hn::Set(d, start), v1 = hn::Set(d, step);
  auto at = hn::Add(hn::Iota(di, 0), hn::Set(di, first));
  const auto next = hn::Set(di, static_cast<int32_t>(lanes));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Add(v0, hn::Mul(v1, hn::ConvertTo(d, at))), d, to + i);
    at = hn::Add(at, next);
  }
  for (; i < n; ++i) to[i] = start + step * static_cast<float>(first + static_cast<int32_t>(i));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(Fill);
void FillPattern(char* dst, const char* pattern, int64_t n) { HWY_DYNAMIC_DISPATCH(Fill)(dst, pattern, n); }

HWY_EXPORT(RowsFilled);
void FillRows(int64_t element_bytes, const char* from, int64_t step, int64_t rows, int64_t n, char* to) {
  HWY_DYNAMIC_DISPATCH(RowsFilled)(element_bytes, from, step, rows, n, to);
}

HWY_EXPORT(Ramp);
void FillRamp(float start, float step, int32_t first, float* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Ramp)(start, step, first, to, n);
}

}  // namespace millrace
#endif
