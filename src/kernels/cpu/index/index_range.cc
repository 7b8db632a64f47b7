// SPDX-License-Identifier: Apache-2.0
// Range, LinSpace.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/strided_fill_simd.h"
#include "kernels/cpu/index/index_kernels.h"
#include "kernels/cpu/index/index_tiles_range.h"

namespace millrace {
namespace {

// In TensorFlow's words.
template <typename T>
Status CheckRange(T start, T limit, T delta) {
  if (delta == 0) return InvalidArgument("Requires delta != 0: ", delta);
  if (delta > 0 && start > limit) {
    return InvalidArgument("Requires start <= limit when delta > 0: ", start, "/", limit);
  }
  if (delta < 0 && start < limit) {
    return InvalidArgument("Requires start >= limit when delta < 0: ", start, "/", limit);
  }
  return absl::OkStatus();
}

template <typename T>
Status IntegerRange(KernelContext& ctx) {
  using U = std::make_unsigned_t<T>;
  const T start = *ctx.input(0).data<T>(), limit = *ctx.input(1).data<T>(), delta = *ctx.input(2).data<T>();
  MR_RETURN_IF_ERROR(CheckRange(start, limit, delta));
  // Distances fit in the unsigned type even where they do not in T.
  const U span =
      delta > 0 ? static_cast<U>(limit) - static_cast<U>(start) : static_cast<U>(start) - static_cast<U>(limit);
  const U step = delta > 0 ? static_cast<U>(delta) : U{0} - static_cast<U>(delta);
  const U count = span == 0 ? 0 : (span - 1) / step + 1;
  if (static_cast<uint64_t>(count) > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return InvalidArgument("a range of ", count, " elements is too long");
  }
  MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make({static_cast<int64_t>(count)}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  U* y = reinterpret_cast<U*>(out->mutable_data<T>());
  ctx.ParallelFor(shape.num_elements(), 0.1, [&](int64_t begin, int64_t end) {
    const U d = static_cast<U>(delta);
    FillSteps(static_cast<U>(start) + static_cast<U>(begin) * d, d, y + begin, end - begin);
  });
  return absl::OkStatus();
}

template <typename T>
Status FloatRange(KernelContext& ctx) {
  auto value = [&](int i) { return static_cast<double>(static_cast<Accumulator<T>>(*ctx.input(i).data<T>())); };
  const double start = value(0), limit = value(1), delta = value(2);
  if (!std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(delta)) {
    return InvalidArgument("start, limit and delta must be finite, got ", start, ", ", limit, ", ", delta);
  }
  MR_RETURN_IF_ERROR(CheckRange(start, limit, delta));
  const double count = std::ceil((limit - start) / delta);
  if (!(count < 0x1p62)) return InvalidArgument("a range of ", count, " elements is too long");
  MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make({static_cast<int64_t>(count)}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  T* y = out->mutable_data<T>();
  ctx.ParallelFor(shape.num_elements(), kIsHalf<T> ? 2 : 0.3, [&](int64_t begin, int64_t end) {
    if constexpr (kIsHalf<T>) {
      for (int64_t i = begin; i < end; ++i) y[i] = T(static_cast<float>(start + static_cast<double>(i) * delta));
    } else {
      FillSteps(start, delta, begin, y + begin, end - begin);
    }
  });
  return absl::OkStatus();
}

Status Range(KernelContext& ctx) {
  const char* names[] = {"start", "limit", "delta"};
  for (int i = 0; i < 3; ++i) {
    const Tensor& t = ctx.input(i);
    if (t.rank() == 1 && t.num_elements() == 1) continue;  // as old graphs have it
    MR_RETURN_IF_ERROR(RequireScalar(names[i], t));
  }
  Status status;
  VisitTypes<int32_t, int64_t>(ctx.input(0).dtype(), [&]<typename T>() { status = IntegerRange<T>(ctx); });
  VisitTypes<float, double, Half, BFloat16>(ctx.input(0).dtype(), [&]<typename T>() { status = FloatRange<T>(ctx); });
  return status;
}

Status LinSpace(KernelContext& ctx) {
  const char* names[] = {"start", "stop", "num"};
  for (int i = 0; i < 3; ++i) MR_RETURN_IF_ERROR(RequireScalar(names[i], ctx.input(i)));
  MR_ASSIGN_OR_RETURN(int64_t num, ctx.input(2).IntScalar());
  if (num < 1) return InvalidArgument("Requires num > 0: ", num);
  MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make({num}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  VisitTypes<float, double, BFloat16>(out->dtype(), [&]<typename T>() {
    using A = Accumulator<T>;
    const A start = static_cast<A>(*ctx.input(0).data<T>()), stop = static_cast<A>(*ctx.input(1).data<T>());
    const A step = num > 1 ? (stop - start) / static_cast<A>(num - 1) : A{0};
    T* y = out->mutable_data<T>();
    ctx.ParallelFor(num, 0.5, [&](int64_t begin, int64_t end) {
      // Counted in 32 bits where that goes: there are vector conversions from them.
      constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
      const int64_t narrow = end <= kMost ? end : begin;
      const int32_t last = static_cast<int32_t>(std::min(narrow, kMost));
      if constexpr (std::is_same_v<T, float>) {
        if (narrow == end) return FillRamp(start, step, static_cast<int32_t>(begin), y + begin, end - begin);
      }
      for (int32_t i = static_cast<int32_t>(std::min(begin, kMost)); i < last; ++i) {
        y[i] = static_cast<T>(start + step * static_cast<A>(i));
      }
      for (int64_t i = narrow; i < end; ++i) y[i] = static_cast<T>(start + step * static_cast<A>(i));
    });
    // Both ends as they were given: a step may be infinite, and rounds.
    y[0] = *ctx.input(0).data<T>();
    if (num > 1) y[num - 1] = *ctx.input(1).data<T>();
  });
  return absl::OkStatus();
}

}  // namespace

void RegisterRangeKernels(KernelRegistry& r) {
  r.AddFn({.op = "Range"}, Range);
  r.AddFn({.op = "LinSpace"}, LinSpace);
}

}  // namespace millrace
