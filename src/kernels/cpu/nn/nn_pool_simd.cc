// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/nn/nn_pool_simd.h"

#include <algorithm>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nn/nn_pool_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls fn(tag, cell offset of (window, channel), result offset) for all channels of all windows.
template <typename T, class Fn>
HWY_INLINE void ForRun(const WindowRun& run, Fn fn) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t w = 0; w < run.windows; ++w) {
    const int64_t at = static_cast<int64_t>(w) * run.step;
    const size_t to = w * run.channels_stride;
    size_t c = 0;
    for (; c + lanes <= run.channels; c += lanes) fn(d, at + static_cast<int64_t>(c), to + c);
    for (; c < run.channels; ++c) fn(hn::CappedTag<T, 1>(), at + static_cast<int64_t>(c), to + c);
  }
}

// The processor's maximum may drop a NaN. A sum does not: where it is a number, so are all cells.
template <class D, typename T>
HWY_INLINE hn::Vec<D> Largest(D d, const WindowRun& run, const T* cell) {
  auto best = hn::LoadU(d, cell + run.offsets[0]);
  auto sum = best;
  for (size_t i = 1; i < run.cells; ++i) {
    const auto here = hn::LoadU(d, cell + run.offsets[i]);
    best = hn::Max(best, here);
    sum = hn::Add(sum, here);
  }
  if (HWY_LIKELY(hn::AllFalse(d, hn::IsNaN(sum)))) return best;
  auto is_nan = hn::IsNaN(hn::LoadU(d, cell + run.offsets[0]));  // or infinities of both signs
  for (size_t i = 1; i < run.cells; ++i) is_nan = hn::Or(is_nan, hn::IsNaN(hn::LoadU(d, cell + run.offsets[i])));
  return hn::IfThenElse(is_nan, hn::NaN(d), best);
}

template <typename T>
void MaxT(const WindowRun& run, const T* image, T* out) {
  ForRun<T>(run, [&](auto d, int64_t at, size_t to) { hn::StoreU(Largest(d, run, image + at), d, out + to); });
}

// v / n, correctly rounded but for subnormal results: where multiplication and addition fuse, the remainder of the
// product with 1 / n says what that lacks. Division takes as long as all the rest.
template <class D>
HWY_INLINE hn::Vec<D> Share(D, hn::Vec<D> v, hn::Vec<D> n, hn::Vec<D> inverse) {
#if HWY_NATIVE_FMA
  const auto q = hn::Mul(v, inverse);
  const auto better = hn::MulAdd(hn::NegMulAdd(q, n, v), inverse, q);
  return hn::IfThenElse(hn::IsFinite(q), better, q);
#else
  (void)inverse;
  return hn::Div(v, n);
#endif
}

// Windows of many cells, each read as it lies: sums are kept in the result, some channels at a time.
template <typename T>
void MeanOfManyCells(const WindowRun& run, const T* image, T* out) {
  constexpr size_t kChannels = 4096 / sizeof(T);
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  const T cells = static_cast<T>(run.cells), inverse = T(1) / cells;
  const auto for_all = [&](size_t n, auto fn) HWY_ATTR {
    size_t c = 0;
    for (; c + lanes <= n; c += lanes) fn(d, c);
    for (; c < n; ++c) fn(hn::CappedTag<T, 1>(), c);
  };
  for (size_t w = 0; w < run.windows; ++w) {
    for (size_t first = 0; first < run.channels; first += kChannels) {
      const size_t n = std::min(kChannels, run.channels - first);
      const T* from = image + static_cast<int64_t>(w) * run.step + first;
      T* to = out + w * run.channels_stride + first;
      std::copy_n(from + run.offsets[0], n, to);
      size_t i = 1;
      for (; i + 2 <= run.cells; i += 2) {
        const T *a = from + run.offsets[i], *b = from + run.offsets[i + 1];
        for_all(n, [&](auto dd, size_t c) HWY_ATTR {
          const auto sum = hn::Add(hn::LoadU(dd, to + c), hn::LoadU(dd, a + c));
          hn::StoreU(hn::Add(sum, hn::LoadU(dd, b + c)), dd, to + c);
        });
      }
      for (; i < run.cells; ++i) {
        const T* a = from + run.offsets[i];
        for_all(n, [&](auto dd, size_t c) HWY_ATTR {
          hn::StoreU(hn::Add(hn::LoadU(dd, to + c), hn::LoadU(dd, a + c)), dd, to + c);
        });
      }
      for_all(n, [&](auto dd, size_t c) HWY_ATTR {
        hn::StoreU(Share(dd, hn::LoadU(dd, to + c), hn::Set(dd, cells), hn::Set(dd, inverse)), dd, to + c);
      });
    }
  }
}

template <typename T>
void MeanT(const WindowRun& run, const T* image, T* out) {
  constexpr size_t kManyCells = 16, kWide = 128;  // bytes of the channels
  if (run.cells >= kManyCells && run.channels * sizeof(T) >= kWide) return MeanOfManyCells<T>(run, image, out);
  const T cells = static_cast<T>(run.cells), inverse = T(1) / cells;
  ForRun<T>(run, [&](auto d, int64_t at, size_t to) {
    auto sum = hn::LoadU(d, image + at + run.offsets[0]);
    for (size_t i = 1; i < run.cells; ++i) sum = hn::Add(sum, hn::LoadU(d, image + at + run.offsets[i]));
    hn::StoreU(Share(d, sum, hn::Set(d, cells), hn::Set(d, inverse)), d, out + to);
  });
}

template <typename T>
void ScatterT(const WindowRun& run, const T* image, T* into, const T* g) {
  ForRun<T>(run, [&](auto d, int64_t at, size_t to) {
    const auto best = Largest(d, run, image + at);
    const auto by_nan = hn::IsNaN(best);
    const bool some_nan = !hn::AllFalse(d, by_nan);
    auto left = hn::LoadU(d, g + to);  // what no cell has taken yet
    for (size_t i = 0; i < run.cells; ++i) {
      const int64_t cell = at + run.offsets[i];
      const auto x = hn::LoadU(d, image + cell);
      auto here = hn::Eq(x, best);
      if (HWY_UNLIKELY(some_nan)) here = hn::Or(here, hn::And(by_nan, hn::IsNaN(x)));
      hn::StoreU(hn::Add(hn::LoadU(d, into + cell), hn::IfThenElseZero(here, left)), d, into + cell);
      left = hn::IfThenZeroElse(here, left);
    }
  });
}

template <typename T>
void GatherT(const WindowRun& run, const T* image, const T* from, const T* y, T* out) {
  ForRun<T>(run, [&](auto d, int64_t at, size_t to) {
    const auto best = hn::LoadU(d, y + to);
    const auto by_nan = hn::IsNaN(best);
    const bool some_nan = !hn::AllFalse(d, by_nan);
    auto found = hn::Zero(d);
    for (size_t i = run.cells; i-- > 0;) {
      const int64_t cell = at + run.offsets[i];
      const auto x = hn::LoadU(d, image + cell);
      auto here = hn::Eq(x, best);
      if (HWY_UNLIKELY(some_nan)) here = hn::Or(here, hn::And(by_nan, hn::IsNaN(x)));
      found = hn::IfThenElse(here, hn::LoadU(d, from + cell), found);
    }
    hn::StoreU(found, d, out + to);
  });
}

template <typename T>
void SpreadT(const WindowRun& run, T* into, const T* g) {
  const T cells = static_cast<T>(run.cells), inverse = T(1) / cells;
  ForRun<T>(run, [&](auto d, int64_t at, size_t to) {
    const auto share = Share(d, hn::LoadU(d, g + to), hn::Set(d, cells), hn::Set(d, inverse));
    for (size_t i = 0; i < run.cells; ++i) {
      T* cell = into + at + run.offsets[i];
      hn::StoreU(hn::Add(hn::LoadU(d, cell), share), d, cell);
    }
  });
}

#define MR_POOL(T, N)                                                                                              \
  void Max##N(const WindowRun& run, const T* image, T* out) { MaxT<T>(run, image, out); }                          \
  void Mean##N(const WindowRun& run, const T* image, T* out) { MeanT<T>(run, image, out); }                        \
  void Scatter##N(const WindowRun& run, const T* image, T* into, const T* g) { ScatterT<T>(run, image, into, g); } \
  void Gather##N(const WindowRun& run, const T* image, const T* from, const T* y, T* out) {                        \
    GatherT<T>(run, image, from, y, out);                                                                          \
  }                                                                                                                \
  void Spread##N(const WindowRun& run, T* into, const T* g) { SpreadT<T>(run, into, g); }
MR_POOL(float, F32)
MR_POOL(double, F64)
#undef MR_POOL

}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

#define MR_POOL(T, N)                                                                              \
  HWY_EXPORT(Max##N);                                                                              \
  HWY_EXPORT(Mean##N);                                                                             \
  HWY_EXPORT(Scatter##N);                                                                          \
  HWY_EXPORT(Gather##N);                                                                           \
  HWY_EXPORT(Spread##N);                                                                           \
  template <>                                                                                      \
  void MaxOfWindows<T>(const WindowRun& run, const T* image, T* out) {                             \
    HWY_DYNAMIC_DISPATCH(Max##N)(run, image, out);                                                 \
  }                                                                                                \
  template <>                                                                                      \
  void MeanOfWindows<T>(const WindowRun& run, const T* image, T* out) {                            \
    HWY_DYNAMIC_DISPATCH(Mean##N)(run, image, out);                                                \
  }                                                                                                \
  template <>                                                                                      \
  void ScatterToMax<T>(const WindowRun& run, const T* image, T* into, const T* g) {                \
    HWY_DYNAMIC_DISPATCH(Scatter##N)(run, image, into, g);                                         \
  }                                                                                                \
  template <>                                                                                      \
  void GatherFromMax<T>(const WindowRun& run, const T* image, const T* from, const T* y, T* out) { \
    HWY_DYNAMIC_DISPATCH(Gather##N)(run, image, from, y, out);                                     \
  }                                                                                                \
  template <>                                                                                      \
  void SpreadToWindows<T>(const WindowRun& run, T* into, const T* g) {                             \
    HWY_DYNAMIC_DISPATCH(Spread##N)(run, into, g);                                                 \
  }
MR_POOL(float, F32)
MR_POOL(double, F64)
#undef MR_POOL

}  // namespace millrace
#endif
