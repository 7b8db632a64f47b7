// SPDX-License-Identifier: Apache-2.0
// HistogramFixedWidth. Highway compiles the search for bins once per instruction set.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <type_traits>

#include "absl/synchronization/mutex.h"
#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/index/index_kernels.h"

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/index/index_histogram.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "hwy/highway.h"

#ifndef MILLRACE_INDEX_HISTOGRAM_
#define MILLRACE_INDEX_HISTOGRAM_
namespace millrace {
namespace {

// A value's bin is its distance to the lowest one, divided by `step`. Where its products with numbers on both sides of
// 1 / step have the same whole part, that is the quotient's too.
struct Bins {
  double lowest, step, last, below, above;  // the inverses

  Bins(double low, double high, int64_t bins)
      : lowest(low), step((high - low) / static_cast<double>(bins)), last(static_cast<double>(bins - 1)) {
    constexpr double kAside = 0x1p-50;  // more than three roundings
    int exponent;
    const bool exact = std::frexp(step, &exponent) == 0.5;
    below = (1 - (exact ? 0 : kAside)) / step;
    above = (1 + (exact ? 0 : kAside)) / step;
  }
  bool has_inverses() const { return std::isfinite(above); }
};
constexpr int64_t kHistogramPart = 1 << 16, kHistogramBlock = 512;  // values

}  // namespace
}  // namespace millrace
#endif

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The bins of n values, by products. False: there is one that the division must tell.
template <typename T>
bool FindBinsByProducts(const T* x, int64_t n, const Bins& bins, int32_t* at) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<T, decltype(d)> dx;
  const hn::Rebind<int32_t, decltype(d)> di;
  const auto zero = hn::Zero(d), lowest = hn::Set(d, bins.lowest), last = hn::Set(d, bins.last);
  const auto low = hn::Set(d, bins.below), high = hn::Set(d, bins.above);
  auto different = hn::Zero(di);
  for (int64_t k = 0; k < n; k += static_cast<int64_t>(hn::Lanes(d))) {
    auto distance = zero;
    if constexpr (std::is_same_v<T, double>) {
      distance = hn::Sub(hn::LoadU(d, x + k), lowest);
    } else {
      distance = hn::Sub(hn::PromoteTo(d, hn::LoadU(dx, x + k)), lowest);
    }
    distance = hn::IfThenElseZero(hn::Gt(distance, zero), distance);
    const auto first = hn::DemoteTo(di, hn::Min(hn::Mul(distance, low), last));
    const auto second = hn::DemoteTo(di, hn::Min(hn::Mul(distance, high), last));
    different = hn::Or(different, hn::Xor(first, second));
    hn::StoreU(first, di, at + k);
  }
  return hn::AllTrue(di, hn::Eq(different, hn::Zero(di)));
}

// The bin of each value; those outside the range have the first and the last one. False: there is a NaN.
template <typename T>
bool FindBins(const T* x, int64_t n, const Bins& bins, int32_t* at) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<double>()));
  int64_t k = bins.has_inverses() ? n / lanes * lanes : 0;
  if (!FindBinsByProducts(x, k, bins, at)) k = 0;
  for (; k < n; ++k) {
    const double above = static_cast<double>(x[k]) - bins.lowest;
    const double bin = (above > 0 ? above : 0) / bins.step;
    at[k] = static_cast<int32_t>(bin < bins.last ? bin : bins.last);
  }
  int32_t bad = 0;
  for (k = 0; k < n; ++k) bad |= x[k] != x[k] ? 1 : 0;
  return bad == 0;
}
bool FindBinsOfFloats(const float* x, int64_t n, const Bins& bins, int32_t* at) { return FindBins(x, n, bins, at); }
bool FindBinsOfDoubles(const double* x, int64_t n, const Bins& bins, int32_t* at) { return FindBins(x, n, bins, at); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {

HWY_EXPORT(FindBinsOfFloats);
HWY_EXPORT(FindBinsOfDoubles);

// At most kHistogramBlock values.
template <typename T>
bool FindBinsOf(const T* x, int64_t n, const Bins& bins, int32_t* at) {
  if constexpr (std::is_same_v<T, float>) {
    return HWY_DYNAMIC_DISPATCH(FindBinsOfFloats)(x, n, bins, at);
  } else {
    double wide[kHistogramBlock];
    for (int64_t k = 0; k < n; ++k) wide[k] = static_cast<double>(static_cast<Accumulator<T>>(x[k]));
    return HWY_DYNAMIC_DISPATCH(FindBinsOfDoubles)(wide, n, bins, at);
  }
}

// Few bins are counted in four places in turn, `bins` apart, so that equal neighbours need not wait for each other.
template <typename I>
void Count(const int32_t* at, int64_t n, int64_t bins, int64_t places, I* count) {
  int64_t k = 0;
  if (places == 4) {
    I *const second = count + bins, *const third = second + bins, *const fourth = third + bins;
    for (; k + 4 <= n; k += 4) {
      ++count[at[k]];
      ++second[at[k + 1]];
      ++third[at[k + 2]];
      ++fourth[at[k + 3]];
    }
  }
  for (; k < n; ++k) ++count[at[k]];
}

template <typename T, typename I>
Status Histogram(KernelContext& ctx, int64_t bins) {
  const Tensor& values = ctx.input(0);
  const auto bound = [&](int i) { return static_cast<double>(static_cast<Accumulator<T>>(ctx.input(1).data<T>()[i])); };
  const double low = bound(0), high = bound(1);
  if (!(low < high)) {
    return InvalidArgument(
        "value_range should satisfy value_range[0] < value_range[1], but got '[", low, ", ", high, "]'");
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(bins)));
  ZeroElements(out->dtype(), out->mutable_raw(), 0, bins);
  const Bins range(low, high, bins);
  const T* x = values.data<T>();
  I* count = out->mutable_data<I>();
  std::atomic<bool> nan = false;
  absl::Mutex mu;
  // A thread counts for itself; bins that are many beside the values are worth one thread at most.
  const int64_t n = values.num_elements(), parts = std::clamp<int64_t>(n / (8 * bins + 1), 1, n / kHistogramPart + 1);
  const int64_t part = (n + parts - 1) / parts, places = part / 32 >= bins ? 4 : 1;
  const bool aside = parts > 1 || places > 1;
  ctx.ParallelFor(parts, 1.2 * static_cast<double>(part), [&](int64_t begin, int64_t end) {
    std::vector<I> own(static_cast<size_t>(aside ? places * bins : 0));
    I* const mine = aside ? own.data() : count;
    int32_t at[kHistogramBlock];
    for (int64_t i = begin * part; i < std::min(n, end * part); i += kHistogramBlock) {
      StopIfAsked();
      const int64_t size = std::min(kHistogramBlock, std::min(n, end * part) - i);
      if (!FindBinsOf(x + i, size, range, at)) nan = true;
      Count(at, size, bins, places, mine);
    }
    if (!aside) return;
    const absl::MutexLock lock(&mu);
    for (int64_t k = 0; k < places * bins; ++k) count[k % bins] = static_cast<I>(count[k % bins] + mine[k]);
  });
  return nan ? InvalidArgument("Histogram values must not contain NaN") : absl::OkStatus();
}

Status HistogramFixedWidth(KernelContext& ctx) {
  const Tensor& range = ctx.input(1);
  if (range.rank() != 1) return InvalidArgument("value_range should be a vector.");
  if (range.num_elements() != 2) return InvalidArgument("value_range should be a vector of 2 elements.");
  if (ctx.input(2).rank() != 0) return InvalidArgument("nbins should be a scalar.");
  const int64_t bins = *ctx.input(2).data<int32_t>();
  if (bins <= 0) return InvalidArgument("nbins should be a positive number, but got '", bins, "'");
  Status status;
  VisitRealTypes(ctx.input(0).dtype(), [&]<typename T>() {
    VisitTypes<int32_t, int64_t>(ctx.output_dtype(0), [&]<typename I>() { status = Histogram<T, I>(ctx, bins); });
  });
  return status;
}

}  // namespace

void RegisterHistogramKernels(KernelRegistry& r) { r.AddFn({.op = "HistogramFixedWidth"}, HistogramFixedWidth); }

}  // namespace millrace
#endif  // HWY_ONCE
