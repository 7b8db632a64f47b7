// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/nn/nn_pool_simd.h"

#include <algorithm>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nn/nn_pool_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/engine/vector_runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls fn(how, cell offset of (window, channel), result offset) for all channels of all windows.
template <typename T, class Fn>
HWY_INLINE void ForRun(const WindowRun& run, Fn fn) {
  for (size_t w = 0; w < run.windows; ++w) {
    const int64_t at = static_cast<int64_t>(w) * run.step;
    const size_t to = w * run.channels_stride;
    ForVectors<T>(static_cast<int64_t>(run.channels), [&](auto how, int64_t c) HWY_ATTR {
      fn(how, at + c, to + static_cast<size_t>(c));
    });
  }
}

// Windows that lie side by side, and whose results do, as one of all their channels. Not for sums into cells, which
// would be in another order.
HWY_INLINE WindowRun Joined(const WindowRun& run) {
  if (run.step != static_cast<int64_t>(run.channels) || run.channels_stride != run.channels) return run;
  WindowRun one = run;
  one.channels = one.channels_stride = run.channels * run.windows;
  one.windows = 1;
  return one;
}

// Windows that are larger than the first cache are read as the cells lie, some channels of a few cells at a time.
template <typename T>
constexpr size_t kChannelsAtOnce = 4096 / sizeof(T);
template <typename T>
bool HasManyCells(const WindowRun& run) {
  constexpr size_t kManyCells = 16, kManyBytes = 24 << 10;
  return run.cells >= kManyCells && run.cells * run.channels * sizeof(T) >= kManyBytes;
}
constexpr size_t kCellsAtOnce = 8;
// Calls fn(offset of window and channel, result offset, channels).
template <typename T, class Fn>
HWY_INLINE void ForChannelBlocks(const WindowRun& run, Fn fn) {
  for (size_t w = 0; w < run.windows; ++w) {
    for (size_t first = 0; first < run.channels; first += kChannelsAtOnce<T>) {
      fn(static_cast<int64_t>(w) * run.step + static_cast<int64_t>(first), w * run.channels_stride + first,
         static_cast<int64_t>(std::min(kChannelsAtOnce<T>, run.channels - first)));
    }
  }
}

// The cells of a window, from its first: as many as a run says,
struct Cells {
  const int64_t* offsets;
  size_t size;
};
// or as many as the compiler knows.
template <size_t kSize>
struct KnownCells {
  int64_t offsets[kSize];
  static constexpr size_t size = kSize;
};
template <size_t kSize>
HWY_INLINE KnownCells<kSize> Known(const WindowRun& run) {
  KnownCells<kSize> cells;
  for (size_t i = 0; i < kSize; ++i) cells.offsets[i] = run.offsets[i];
  return cells;
}
// Calls fn(cells).
template <class Fn>
HWY_INLINE void WithCells(const WindowRun& run, Fn fn) {
  if (run.cells == 9 && run.channels >= 16) return fn(Known<9>(run));
  fn(Cells{run.offsets, run.cells});
}

// The processor's maximum may drop a NaN. A sum does not: where it is a number, so are all cells.
template <class How, class C, typename T>
HWY_INLINE typename How::V Largest(const How& how, const C& cells, const T* cell) {
  const auto d = how.d;
  auto best = how.Load(cell + cells.offsets[0]);
  auto sum = best;
#pragma GCC unroll 8
  for (size_t i = 1; i < cells.size; ++i) {
    const auto here = how.Load(cell + cells.offsets[i]);
    best = hn::Max(best, here);
    sum = hn::Add(sum, here);
  }
  if (HWY_LIKELY(hn::AllFalse(d, hn::IsNaN(sum)))) return best;
  auto is_nan = hn::IsNaN(how.Load(cell + cells.offsets[0]));  // or infinities of both signs
  for (size_t i = 1; i < cells.size; ++i) is_nan = hn::Or(is_nan, hn::IsNaN(how.Load(cell + cells.offsets[i])));
  return hn::IfThenElse(is_nan, hn::NaN(d), best);
}

template <typename T>
void MaxOfManyCells(const WindowRun& run, const T* image, T* out) {
  ForChannelBlocks<T>(run, [&](int64_t at, size_t result, int64_t n) HWY_ATTR {
    T* const to = out + result;
    for (size_t i = 0; i < run.cells; i += kCellsAtOnce) {
      const Cells some{run.offsets + i, std::min(kCellsAtOnce, run.cells - i)};
      ForVectors<T>(n, [&](auto how, int64_t c) HWY_ATTR {
        auto best = Largest(how, some, image + at + c);
        if (i > 0) {
          const auto before = how.Load(to + c);
          best = hn::IfThenElse(hn::Or(hn::Gt(before, best), hn::IsNaN(before)), before, best);
        }
        how.Store(best, to + c);
      });
    }
  });
}

template <typename T>
void MaxT(const WindowRun& windows, const T* image, T* out) {
  const WindowRun run = Joined(windows);
  if (HasManyCells<T>(windows)) return MaxOfManyCells<T>(windows, image, out);
  WithCells(run, [&](const auto& cells) HWY_ATTR {
    ForRun<T>(
        run, [&](auto how, int64_t at, size_t to) HWY_ATTR { how.Store(Largest(how, cells, image + at), out + to); });
  });
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

// The sum of cells, by halves that do not wait for each other.
template <class How, class C, typename T>
HWY_INLINE typename How::V SumOfCells(const How& how, const C& cells, const T* cell) {
  auto even = how.Load(cell + cells.offsets[0]);
  if (cells.size == 1) return even;
  auto odd = how.Load(cell + cells.offsets[1]);
  size_t i = 2;
#pragma GCC unroll 4
  for (; i + 2 <= cells.size; i += 2) {
    even = hn::Add(even, how.Load(cell + cells.offsets[i]));
    odd = hn::Add(odd, how.Load(cell + cells.offsets[i + 1]));
  }
  if (i < cells.size) even = hn::Add(even, how.Load(cell + cells.offsets[i]));
  return hn::Add(even, odd);
}

template <typename T>
void MeanOfManyCells(const WindowRun& run, const T* image, T* out) {
  const T divisor = static_cast<T>(run.divisor), inverse = T(1) / divisor;
  ForChannelBlocks<T>(run, [&](int64_t at, size_t result, int64_t n) HWY_ATTR {
    const T* const from = image + at;
    T* const to = out + result;
    for (size_t i = 0; i < run.cells; i += kCellsAtOnce) {
      const size_t end = std::min(i + kCellsAtOnce, run.cells);
      ForVectors<T>(n, [&](auto how, int64_t c) HWY_ATTR {
        auto sum = SumOfCells(how, Cells{run.offsets + i, end - i}, from + c);
        if (i > 0) sum = hn::Add(how.Load(to + c), sum);
        if (end == run.cells) sum = Share(how.d, sum, hn::Set(how.d, divisor), hn::Set(how.d, inverse));
        how.Store(sum, to + c);
      });
    }
  });
}

template <typename T>
void MeanT(const WindowRun& windows, const T* image, T* out) {
  const WindowRun run = Joined(windows);
  if (HasManyCells<T>(windows)) return MeanOfManyCells<T>(windows, image, out);
  const T divisor = static_cast<T>(run.divisor), inverse = T(1) / divisor;
  WithCells(run, [&](const auto& cells) HWY_ATTR {
    ForRun<T>(run, [&](auto how, int64_t at, size_t to) HWY_ATTR {
      const auto sum = SumOfCells(how, cells, image + at);
      how.Store(Share(how.d, sum, hn::Set(how.d, divisor), hn::Set(how.d, inverse)), out + to);
    });
  });
}

template <typename T>
void ScatterT(const WindowRun& run, const T* image, T* into, const T* g) {
  ForRun<T>(run, [&](auto how, int64_t at, size_t to) {
    const auto best = Largest(how, Cells{run.offsets, run.cells}, image + at);
    const auto by_nan = hn::IsNaN(best);
    const bool some_nan = !hn::AllFalse(how.d, by_nan);
    auto left = how.Load(g + to);  // what no cell has taken yet
    for (size_t i = 0; i < run.cells; ++i) {
      const int64_t cell = at + run.offsets[i];
      const auto x = how.Load(image + cell);
      auto here = hn::Eq(x, best);
      if (HWY_UNLIKELY(some_nan)) here = hn::Or(here, hn::And(by_nan, hn::IsNaN(x)));
      how.Store(hn::Add(how.Load(into + cell), hn::IfThenElseZero(here, left)), into + cell);
      left = hn::IfThenZeroElse(here, left);
    }
  });
}

template <typename T>
void GatherT(const WindowRun& windows, const T* image, const T* from, const T* y, T* out) {
  const WindowRun run = Joined(windows);
  ForRun<T>(run, [&](auto how, int64_t at, size_t to) {
    const auto best = how.Load(y + to);
    const auto by_nan = hn::IsNaN(best);
    const bool some_nan = !hn::AllFalse(how.d, by_nan);
    auto found = hn::Zero(how.d);
    for (size_t i = run.cells; i-- > 0;) {
      const int64_t cell = at + run.offsets[i];
      const auto x = how.Load(image + cell);
      auto here = hn::Eq(x, best);
      if (HWY_UNLIKELY(some_nan)) here = hn::Or(here, hn::And(by_nan, hn::IsNaN(x)));
      found = hn::IfThenElse(here, how.Load(from + cell), found);
    }
    how.Store(found, out + to);
  });
}

template <typename T>
void SpreadToManyCells(const WindowRun& run, T* into, const T* g) {
  const T divisor = static_cast<T>(run.divisor), inverse = T(1) / divisor;
  HWY_ALIGN T share[kChannelsAtOnce<T>];
  ForChannelBlocks<T>(run, [&](int64_t at, size_t result, int64_t n) HWY_ATTR {
    ForVectors<T>(n, [&](auto how, int64_t c) HWY_ATTR {
      how.Store(Share(how.d, how.Load(g + result + c), hn::Set(how.d, divisor), hn::Set(how.d, inverse)), share + c);
    });
    for (size_t i = 0; i < run.cells; ++i) {
      T* const cell = into + at + run.offsets[i];
      ForVectors<T>(n, [&](auto how, int64_t c) HWY_ATTR {
        how.Store(hn::Add(how.Load(cell + c), how.Load(share + c)), cell + c);
      });
    }
  });
}

template <typename T>
void SpreadT(const WindowRun& run, T* into, const T* g) {
  if (HasManyCells<T>(run)) return SpreadToManyCells<T>(run, into, g);
  const T divisor = static_cast<T>(run.divisor), inverse = T(1) / divisor;
  WithCells(run, [&](const auto& cells) HWY_ATTR {
    ForRun<T>(run, [&](auto how, int64_t at, size_t to) HWY_ATTR {
      const auto share = Share(how.d, how.Load(g + to), hn::Set(how.d, divisor), hn::Set(how.d, inverse));
#pragma GCC unroll 9
      for (size_t i = 0; i < cells.size; ++i) {
        T* cell = into + at + cells.offsets[i];
        how.Store(hn::Add(how.Load(cell), share), cell);
      }
    });
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
