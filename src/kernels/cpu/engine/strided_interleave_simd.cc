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

#if HWY_TARGET == HWY_SCALAR
template <typename T, size_t... I>
inline typename Vector16<T>::Type ReversedItems(typename Vector16<T>::Type v, std::index_sequence<I...>) {
  return __builtin_shufflevector(v, v, (Vector16<T>::kLanes - 1 - static_cast<int>(I))...);
}
#else
template <class D>
HWY_INLINE hn::Vec<D> ReversedItems(D d, hn::Vec<D> v) {
  if constexpr (sizeof(hn::TFromD<D>) > 1) {
    return hn::Reverse(d, v);
  } else {  // pairs of bytes, and the bytes in them
    const hn::Repartition<uint16_t, D> pairs;
    const auto reversed = hn::Reverse(pairs, hn::BitCast(pairs, v));
    return hn::BitCast(d, hn::Or(hn::ShiftLeft<8>(reversed), hn::ShiftRight<8>(reversed)));
  }
}
#endif

template <typename T>
void ReverseOf(const char* src, char* dst, int64_t n) {
  constexpr int64_t kSize = sizeof(T);
  int64_t i = 0;
#if HWY_TARGET == HWY_SCALAR
  if constexpr (kSize < 16) {
    constexpr int64_t kLanes = Vector16<T>::kLanes;
    for (; i + kLanes <= n; i += kLanes) {
      const auto v = Load<typename Vector16<T>::Type>(src - (i + kLanes - 1) * kSize);
      Store(dst + i * kSize, ReversedItems<T>(v, std::make_index_sequence<kLanes>()));
    }
  }
#else
  if constexpr (kSize < 16) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= n; i += lanes) {
      const auto v = hn::LoadU(d, reinterpret_cast<const T*>(src - (i + lanes - 1) * kSize));
      hn::StoreU(ReversedItems(d, v), d, reinterpret_cast<T*>(dst + i * kSize));
    }
  }
#endif
  for (; i < n; ++i) Store(dst + i * kSize, Load<T>(src - i * kSize));
}

void RunReverse(int64_t item_bytes, const char* src, char* dst, int64_t n) {
  switch (item_bytes) {
    case 1: return ReverseOf<uint8_t>(src, dst, n);
    case 2: return ReverseOf<uint16_t>(src, dst, n);
    case 4: return ReverseOf<uint32_t>(src, dst, n);
    case 8: return ReverseOf<uint64_t>(src, dst, n);
    default: return ReverseOf<Bytes16>(src, dst, n);
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
HWY_EXPORT(RunReverse);

void Interleave(int64_t item_bytes, int64_t streams, const char* src, int64_t apart, char* dst, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RunInterleave)(item_bytes, streams, src, apart, dst, n);
}
void Separate(int64_t item_bytes, int64_t streams, const char* src, char* dst, int64_t apart, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RunSeparate)(item_bytes, streams, src, dst, apart, n);
}

void Reverse(int64_t item_bytes, const char* src, char* dst, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RunReverse)(item_bytes, src, dst, n);
}

}  // namespace millrace::strided
#endif
