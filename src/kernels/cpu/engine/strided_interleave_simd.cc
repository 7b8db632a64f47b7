// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/strided_interleave_simd.h"

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/strided_interleave_simd.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "hwy/highway.h"
#include "kernels/cpu/engine/strided_block.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::strided {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T, int kStreams>
void InterleaveOf(const char* src, int64_t apart, char* dst, int64_t n) {
  constexpr int64_t kSize = sizeof(T);
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto load = [&](int k, int64_t i) HWY_ATTR {
    return hn::LoadU(d, reinterpret_cast<const T*>(src + k * apart + i * kSize));
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    T* const to = reinterpret_cast<T*>(dst + i * kStreams * kSize);
    if constexpr (kStreams == 2) hn::StoreInterleaved2(load(0, i), load(1, i), d, to);
    if constexpr (kStreams == 3) hn::StoreInterleaved3(load(0, i), load(1, i), load(2, i), d, to);
    if constexpr (kStreams == 4) hn::StoreInterleaved4(load(0, i), load(1, i), load(2, i), load(3, i), d, to);
  }
  for (; i < n; ++i) {
    for (int k = 0; k < kStreams; ++k) Store(dst + (i * kStreams + k) * kSize, Load<T>(src + k * apart + i * kSize));
  }
}

template <typename T, int kStreams>
void SeparateOf(const char* src, char* dst, int64_t apart, int64_t n) {
  constexpr int64_t kSize = sizeof(T);
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto store = [&](hn::Vec<decltype(d)> v, int k, int64_t i) HWY_ATTR {
    hn::StoreU(v, d, reinterpret_cast<T*>(dst + k * apart + i * kSize));
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const T* const from = reinterpret_cast<const T*>(src + i * kStreams * kSize);
    hn::Vec<decltype(d)> a, b, c, e;
    if constexpr (kStreams == 2) hn::LoadInterleaved2(d, from, a, b);
    if constexpr (kStreams == 3) hn::LoadInterleaved3(d, from, a, b, c);
    if constexpr (kStreams == 4) hn::LoadInterleaved4(d, from, a, b, c, e);
    store(a, 0, i);
    store(b, 1, i);
    if constexpr (kStreams > 2) store(c, 2, i);
    if constexpr (kStreams > 3) store(e, 3, i);
  }
  for (; i < n; ++i) {
    for (int k = 0; k < kStreams; ++k) Store(dst + k * apart + i * kSize, Load<T>(src + (i * kStreams + k) * kSize));
  }
}

template <int kStreams>
void InterleaveStreams(int64_t item_bytes, const char* src, int64_t apart, char* dst, int64_t n) {
  switch (item_bytes) {
    case 1: return InterleaveOf<uint8_t, kStreams>(src, apart, dst, n);
    case 2: return InterleaveOf<uint16_t, kStreams>(src, apart, dst, n);
    case 4: return InterleaveOf<uint32_t, kStreams>(src, apart, dst, n);
    default: return InterleaveOf<uint64_t, kStreams>(src, apart, dst, n);
  }
}
template <int kStreams>
void SeparateStreams(int64_t item_bytes, const char* src, char* dst, int64_t apart, int64_t n) {
  switch (item_bytes) {
    case 1: return SeparateOf<uint8_t, kStreams>(src, dst, apart, n);
    case 2: return SeparateOf<uint16_t, kStreams>(src, dst, apart, n);
    case 4: return SeparateOf<uint32_t, kStreams>(src, dst, apart, n);
    default: return SeparateOf<uint64_t, kStreams>(src, dst, apart, n);
  }
}

void RunInterleave(int64_t item_bytes, int64_t streams, const char* src, int64_t apart, char* dst, int64_t n) {
  if (streams == 2) return InterleaveStreams<2>(item_bytes, src, apart, dst, n);
  if (streams == 3) return InterleaveStreams<3>(item_bytes, src, apart, dst, n);
  InterleaveStreams<4>(item_bytes, src, apart, dst, n);
}
void RunSeparate(int64_t item_bytes, int64_t streams, const char* src, char* dst, int64_t apart, int64_t n) {
  if (streams == 2) return SeparateStreams<2>(item_bytes, src, dst, apart, n);
  if (streams == 3) return SeparateStreams<3>(item_bytes, src, dst, apart, n);
  SeparateStreams<4>(item_bytes, src, dst, apart, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::strided
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::strided {

HWY_EXPORT(RunInterleave);
HWY_EXPORT(RunSeparate);

void Interleave(int64_t item_bytes, int64_t streams, const char* src, int64_t apart, char* dst, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RunInterleave)(item_bytes, streams, src, apart, dst, n);
}
void Separate(int64_t item_bytes, int64_t streams, const char* src, char* dst, int64_t apart, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RunSeparate)(item_bytes, streams, src, dst, apart, n);
}

}  // namespace millrace::strided
#endif
