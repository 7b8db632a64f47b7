// SPDX-License-Identifier: Apache-2.0
// The rows of a window are combined first, all columns at once, then the columns. Plain loops, which the compiler makes
// vector code of. A window that is the whole plane is one run of numbers.
#include "kernels/cpu/nn/nn_pool_planes_simd.h"

#include <algorithm>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nn/nn_pool_planes_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

struct Larger {
  static constexpr bool kMean = false;
  template <typename T>
  static T Of(T a, T b) {
    const T larger = b > a ? b : a;  // a NaN stays
    return b != b ? b : larger;
  }
  template <class V>
  static V OfVectors(V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(b)), b, a);
  }
};
struct Added {
  static constexpr bool kMean = true;
  template <typename T>
  static T Of(T a, T b) {
    return a + b;
  }
  template <class V>
  static V OfVectors(V a, V b) {
    return hn::Add(a, b);
  }
};

template <typename T, typename Op>
T OfRun(const T* in, int64_t n) {
  const hn::ScalableTag<T> d;
  constexpr size_t kMostLanes = hn::MaxLanes(hn::ScalableTag<T>());
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  T all[kMostLanes] = {};
  int64_t i = lanes, count = lanes;
  if (n >= lanes) {
    auto v = hn::LoadU(d, in);
    for (; i + lanes <= n; i += lanes) v = Op::OfVectors(v, hn::LoadU(d, in + i));
    hn::StoreU(v, d, all);
  } else {
    std::copy_n(in, n, all);
    i = count = n;
  }
  for (int64_t l = 0; i < n; ++i, ++l) all[l] = Op::Of(all[l], in[i]);
  for (; count > 1; count = (count + 1) / 2) {
    for (int64_t l = 0; l < count / 2; ++l) all[l] = Op::Of(all[l], all[count - 1 - l]);
  }
  return all[0];
}

// Windows that lie wholly inside: `kStride` and `kKernel` are known for the usual ones, else 0.
template <typename T, typename Op, int kStride, int kKernel>
void Across(const T* line, int64_t stride, int64_t kernel, int64_t n, T cells, T* out) {
  if (kStride > 0) stride = kStride;
  if (kKernel > 0) kernel = kKernel;
#pragma GCC ivdep
  for (int64_t x = 0; x < n; ++x) {
    T v = line[x * stride];
#pragma GCC unroll 4
    for (int64_t c = 1; c < kernel; ++c) v = Op::Of(v, line[x * stride + c]);
    out[x] = Op::kMean ? v / cells : v;
  }
}

template <typename T, typename Op>
void AcrossAny(const T* line, int64_t stride, int64_t kernel, int64_t n, T cells, T* out) {
  if (stride == 2 && kernel == 2) return Across<T, Op, 2, 2>(line, stride, kernel, n, cells, out);
  if (stride == 2 && kernel == 3) return Across<T, Op, 2, 3>(line, stride, kernel, n, cells, out);
  if (stride == 1 && kernel == 2) return Across<T, Op, 1, 2>(line, stride, kernel, n, cells, out);
  if (stride == 1 && kernel == 3) return Across<T, Op, 1, 3>(line, stride, kernel, n, cells, out);
  Across<T, Op, 0, 0>(line, stride, kernel, n, cells, out);
}

// The rows [begin, end) as one.
template <typename T, typename Op>
const T* Down(const T* in, int64_t width, int64_t begin, int64_t end, T* line) {
  const T* const first = in + begin * width;
  if (end - begin == 1) return first;
#pragma GCC ivdep
  for (int64_t x = 0; x < width; ++x) line[x] = Op::Of(first[x], first[width + x]);
  for (int64_t r = begin + 2; r < end; ++r) {
    const T* const row = in + r * width;
#pragma GCC ivdep
    for (int64_t x = 0; x < width; ++x) line[x] = Op::Of(line[x], row[x]);
  }
  return line;
}

template <typename T, typename Op>
void Plane(const PlaneAxis& rows, const PlaneAxis& columns, const T* in, T* line, T* out) {
  const PlaneAxis& c = columns;
  if (rows.out == 1 && c.out == 1 && rows.end(0) - rows.begin(0) == rows.in && c.end(0) - c.begin(0) == c.in) {
    const T v = OfRun<T, Op>(in, rows.in * c.in);
    *out = Op::kMean ? v / static_cast<T>(rows.in * c.in) : v;
    return;
  }
  // Columns of windows that lie wholly inside.
  const int64_t first = std::min((c.pad + c.stride - 1) / c.stride, c.out);
  const int64_t room = c.in + c.pad - c.kernel;
  const int64_t last = std::max(first, room < 0 ? 0 : std::min(c.out, room / c.stride + 1));
  for (int64_t y = 0; y < rows.out; ++y, out += c.out) {
    const int64_t begin = rows.begin(y), end = rows.end(y);
    const T* const row = Down<T, Op>(in, c.in, begin, end, line);
    const auto edge = [&](int64_t x) {
      const int64_t from = c.begin(x), to = c.end(x);
      T v = row[from];
      for (int64_t k = from + 1; k < to; ++k) v = Op::Of(v, row[k]);
      out[x] = Op::kMean ? v / static_cast<T>((end - begin) * (to - from)) : v;
    };
    for (int64_t x = 0; x < first; ++x) edge(x);
    if (last > first) {
      AcrossAny<T, Op>(row + first * c.stride - c.pad, c.stride, c.kernel, last - first,
                       static_cast<T>((end - begin) * c.kernel), out + first);
    }
    for (int64_t x = last; x < c.out; ++x) edge(x);
  }
}

void MaxFloat(const PlaneAxis& r, const PlaneAxis& c, const float* in, float* line, float* out) {
  Plane<float, Larger>(r, c, in, line, out);
}
void MaxDouble(const PlaneAxis& r, const PlaneAxis& c, const double* in, double* line, double* out) {
  Plane<double, Larger>(r, c, in, line, out);
}
void MeanFloat(const PlaneAxis& r, const PlaneAxis& c, const float* in, float* line, float* out) {
  Plane<float, Added>(r, c, in, line, out);
}
void MeanDouble(const PlaneAxis& r, const PlaneAxis& c, const double* in, double* line, double* out) {
  Plane<double, Added>(r, c, in, line, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(MaxFloat);
HWY_EXPORT(MaxDouble);
HWY_EXPORT(MeanFloat);
HWY_EXPORT(MeanDouble);
template <>
void MaxOfPlane<float>(const PlaneAxis& r, const PlaneAxis& c, const float* in, float* line, float* out) {
  HWY_DYNAMIC_DISPATCH(MaxFloat)(r, c, in, line, out);
}
template <>
void MaxOfPlane<double>(const PlaneAxis& r, const PlaneAxis& c, const double* in, double* line, double* out) {
  HWY_DYNAMIC_DISPATCH(MaxDouble)(r, c, in, line, out);
}
template <>
void MeanOfPlane<float>(const PlaneAxis& r, const PlaneAxis& c, const float* in, float* line, float* out) {
  HWY_DYNAMIC_DISPATCH(MeanFloat)(r, c, in, line, out);
}
template <>
void MeanOfPlane<double>(const PlaneAxis& r, const PlaneAxis& c, const double* in, double* line, double* out) {
  HWY_DYNAMIC_DISPATCH(MeanDouble)(r, c, in, line, out);
}

}  // namespace millrace
#endif
