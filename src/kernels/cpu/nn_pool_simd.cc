// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/nn_pool_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nn_pool_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T, class Fn>
HWY_INLINE void ForChannels(size_t channels, Fn fn) {
  const hn::ScalableTag<T> d;
  size_t c = 0;
  for (; c + hn::Lanes(d) <= channels; c += hn::Lanes(d)) fn(d, c);
  for (; c < channels; ++c) fn(hn::CappedTag<T, 1>(), c);
}

template <class D, typename T>
HWY_INLINE hn::Vec<D> Largest(D d, const T* const* cells, size_t n, size_t c) {
  auto best = hn::LoadU(d, cells[0] + c);
  for (size_t i = 1; i < n; ++i) best = hn::Max(best, hn::LoadU(d, cells[i] + c));
  return best;
}

template <typename T>
void MaxT(const T* const* cells, size_t n, size_t channels, T* out) {
  ForChannels<T>(channels, [&](auto d, size_t c) { hn::StoreU(Largest(d, cells, n, c), d, out + c); });
}

template <typename T>
void MeanT(const T* const* cells, size_t n, size_t channels, T* out) {
  ForChannels<T>(channels, [&](auto d, size_t c) {
    auto sum = hn::LoadU(d, cells[0] + c);
    for (size_t i = 1; i < n; ++i) sum = hn::Add(sum, hn::LoadU(d, cells[i] + c));
    hn::StoreU(hn::Div(sum, hn::Set(d, static_cast<T>(n))), d, out + c);
  });
}

template <typename T>
void ScatterT(const T* const* cells, T* const* into, size_t n, size_t channels, const T* g) {
  ForChannels<T>(channels, [&](auto d, size_t c) {
    const auto best = Largest(d, cells, n, c);
    auto left = hn::LoadU(d, g + c);  // what no cell has taken yet
    for (size_t i = 0; i < n; ++i) {
      const auto here = hn::Eq(hn::LoadU(d, cells[i] + c), best);
      hn::StoreU(hn::Add(hn::LoadU(d, into[i] + c), hn::IfThenElseZero(here, left)), d, into[i] + c);
      left = hn::IfThenZeroElse(here, left);
    }
  });
}

template <typename T>
void GatherT(const T* const* cells, const T* const* from, size_t n, size_t channels, const T* y, T* out) {
  ForChannels<T>(channels, [&](auto d, size_t c) {
    const auto best = hn::LoadU(d, y + c);
    auto found = hn::Zero(d);
    for (size_t i = n; i-- > 0;) {
      found = hn::IfThenElse(hn::Eq(hn::LoadU(d, cells[i] + c), best), hn::LoadU(d, from[i] + c), found);
    }
    hn::StoreU(found, d, out + c);
  });
}

template <typename T>
void SpreadT(T* const* into, size_t n, size_t channels, const T* g) {
  ForChannels<T>(channels, [&](auto d, size_t c) {
    const auto share = hn::Div(hn::LoadU(d, g + c), hn::Set(d, static_cast<T>(n)));
    for (size_t i = 0; i < n; ++i) hn::StoreU(hn::Add(hn::LoadU(d, into[i] + c), share), d, into[i] + c);
  });
}

#define MR_POOL(T, N)                                                                                      \
  void Max##N(const T* const* cells, size_t n, size_t channels, T* out) { MaxT<T>(cells, n, channels, out); } \
  void Mean##N(const T* const* cells, size_t n, size_t channels, T* out) { MeanT<T>(cells, n, channels, out); } \
  void Scatter##N(const T* const* cells, T* const* into, size_t n, size_t channels, const T* g) {         \
    ScatterT<T>(cells, into, n, channels, g);                                                              \
  }                                                                                                        \
  void Gather##N(const T* const* cells, const T* const* from, size_t n, size_t channels, const T* y, T* out) { \
    GatherT<T>(cells, from, n, channels, y, out);                                                          \
  }                                                                                                        \
  void Spread##N(T* const* into, size_t n, size_t channels, const T* g) { SpreadT<T>(into, n, channels, g); }
MR_POOL(float, F32)
MR_POOL(double, F64)
#undef MR_POOL

}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

#define MR_POOL(T, N)                                                                                  \
  HWY_EXPORT(Max##N);                                                                                  \
  HWY_EXPORT(Mean##N);                                                                                 \
  HWY_EXPORT(Scatter##N);                                                                              \
  HWY_EXPORT(Gather##N);                                                                               \
  HWY_EXPORT(Spread##N);                                                                               \
  template <>                                                                                          \
  void MaxOfCells<T>(const T* const* cells, size_t n, size_t channels, T* out) {                       \
    HWY_DYNAMIC_DISPATCH(Max##N)(cells, n, channels, out);                                             \
  }                                                                                                    \
  template <>                                                                                          \
  void MeanOfCells<T>(const T* const* cells, size_t n, size_t channels, T* out) {                      \
    HWY_DYNAMIC_DISPATCH(Mean##N)(cells, n, channels, out);                                            \
  }                                                                                                    \
  template <>                                                                                          \
  void ScatterToMax<T>(const T* const* cells, T* const* into, size_t n, size_t channels, const T* g) { \
    HWY_DYNAMIC_DISPATCH(Scatter##N)(cells, into, n, channels, g);                                     \
  }                                                                                                    \
  template <>                                                                                          \
  void GatherFromMax<T>(const T* const* cells, const T* const* from, size_t n, size_t channels, const T* y, T* out) { \
    HWY_DYNAMIC_DISPATCH(Gather##N)(cells, from, n, channels, y, out);                                 \
  }                                                                                                    \
  template <>                                                                                          \
  void SpreadToCells<T>(T* const* into, size_t n, size_t channels, const T* g) {                       \
    HWY_DYNAMIC_DISPATCH(Spread##N)(into, n, channels, g);                                             \
  }
MR_POOL(float, F32)
MR_POOL(double, F64)
#undef MR_POOL

}  // namespace millrace
#endif
