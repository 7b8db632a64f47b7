// SPDX-License-Identifier: Apache-2.0
// Plain loops over rows, for the compiler to vectorise, and vectors where several rows go together. Sums run in lanes.
#include <algorithm>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linalg/linalg_tiles_rows.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "hwy/highway.h"
#include "kernels/cpu/engine/vector_runs-inl.h"
#include "kernels/cpu/linalg/linalg_rows.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::dense {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using namespace millrace::HWY_NAMESPACE;  // vector_runs-inl.h

constexpr int64_t kLanes = 16;

template <typename T>
T Fold(T* lanes) {
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t k = 0; k < width; ++k) lanes[k] += lanes[k + width];
  }
  return lanes[0];
}

template <typename T>
T RealDot(const T* x, const T* y, int64_t n) {
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] += x[i + k] * y[i + k];
  }
  for (int64_t k = 0; i < n; ++i, ++k) lanes[k] += x[i] * y[i];
  return Fold(lanes);
}

// Complex numbers as pairs.
template <typename T>
void ComplexDot(const T* x, const T* y, int64_t n, T* result) {
  T real[kLanes] = {}, imaginary[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      const T *a = x + 2 * (i + k), *b = y + 2 * (i + k);
      real[k] += a[0] * b[0] + a[1] * b[1];
      imaginary[k] += a[0] * b[1] - a[1] * b[0];
    }
  }
  for (int64_t k = 0; i < n; ++i, ++k) {
    const T *a = x + 2 * i, *b = y + 2 * i;
    real[k] += a[0] * b[0] + a[1] * b[1];
    imaginary[k] += a[0] * b[1] - a[1] * b[0];
  }
  result[0] = Fold(real);
  result[1] = Fold(imaginary);
}

template <typename T>
void AddReal(T a, const T* HWY_RESTRICT x, T* HWY_RESTRICT y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

template <typename T>
void AddComplex(T real, T imaginary, const T* HWY_RESTRICT x, T* HWY_RESTRICT y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T u = x[2 * i], v = x[2 * i + 1];
    y[2 * i] += real * u - imaginary * v;
    y[2 * i + 1] += real * v + imaginary * u;
  }
}

// kCount vectors of columns. Mostly a rotation begins with the row that the one before it ended with: that is kept.
template <int kCount, typename T, class How>
HWY_INLINE void RotateColumns(const Rotation* rotations, int64_t count, T* rows, int64_t stride, How how) {
  using V = typename How::V;
  const auto d = how.d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (count == 0) return;
  int64_t kept = rotations[0].i;
  V x[kCount];
#pragma GCC unroll 8
  for (int k = 0; k < kCount; ++k) x[k] = how.Load(rows + kept * stride + k * lanes);
  for (int64_t r = 0; r < count; ++r) {
    const Rotation& g = rotations[r];
    T *const first = rows + g.i * stride, *const second = rows + g.j * stride;
    if (g.i != kept) {
#pragma GCC unroll 8
      for (int k = 0; k < kCount; ++k) {
        how.Store(x[k], rows + kept * stride + k * lanes);
        x[k] = how.Load(first + k * lanes);
      }
    }
    const V c = hn::Set(d, static_cast<T>(g.c)), s = hn::Set(d, static_cast<T>(g.s));
#pragma GCC unroll 8
    for (int k = 0; k < kCount; ++k) {
      const V y = how.Load(second + k * lanes);
      how.Store(hn::MulAdd(c, x[k], hn::Mul(s, y)), first + k * lanes);
      x[k] = hn::MulSub(c, y, hn::Mul(s, x[k]));
    }
    kept = g.j;
  }
#pragma GCC unroll 8
  for (int k = 0; k < kCount; ++k) how.Store(x[k], rows + kept * stride + k * lanes);
}

// A strip of columns at a time: it stays in cache while all rotations pass over it.
template <typename T>
void RotateRows(const Rotation* rotations, int64_t count, T* rows, int64_t stride, int64_t begin, int64_t end) {
  constexpr int kCount = 4;
  const hn::ScalableTag<T> d;
  const int64_t strip = kCount * static_cast<int64_t>(hn::Lanes(d));
  for (; begin + strip <= end; begin += strip) {
    RotateColumns<kCount>(rotations, count, rows + begin, stride, Whole<decltype(d)>{d});
  }
  const int64_t whole = (end - begin) / static_cast<int64_t>(hn::Lanes(d));
  if (whole == 3) RotateColumns<3>(rotations, count, rows + begin, stride, Whole<decltype(d)>{d});
  if (whole == 2) RotateColumns<2>(rotations, count, rows + begin, stride, Whole<decltype(d)>{d});
  if (whole == 1) RotateColumns<1>(rotations, count, rows + begin, stride, Whole<decltype(d)>{d});
  begin += whole * static_cast<int64_t>(hn::Lanes(d));
  ForVectors<T>(end - begin, [&](auto how, int64_t at) HWY_ATTR {
    RotateColumns<1>(rotations, count, rows + begin + at, stride, how);
  });
}

// Two rows at a time of a lower triangle, of which row i has i + 1 elements: each is read once, for the product with it
// and with what it is the mirror image of.
template <typename T>
void TimesSymmetric(const T* HWY_RESTRICT a, int64_t stride, int64_t n, const T* HWY_RESTRICT x, T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  std::fill(y, y + n, T(0));
  for (int64_t i = 0; i < n; i += 2) {
    const bool two = i + 1 < n;
    const T *const row0 = a + i * stride, *const row1 = two ? row0 + stride : row0;
    const T x0 = x[i], x1 = two ? x[i + 1] : T(0);
    const auto v0 = hn::Set(d, x0), v1 = hn::Set(d, x1);
    hn::Vec<decltype(d)> sums0[2] = {hn::Zero(d), hn::Zero(d)}, sums1[2] = {hn::Zero(d), hn::Zero(d)};
    int64_t j = 0;
    for (int which = 0; j + lanes <= i; j += lanes, which ^= 1) {
      const auto r0 = hn::LoadU(d, row0 + j), r1 = hn::LoadU(d, row1 + j), xj = hn::LoadU(d, x + j);
      hn::StoreU(hn::MulAdd(v1, r1, hn::MulAdd(v0, r0, hn::LoadU(d, y + j))), d, y + j);
      sums0[which] = hn::MulAdd(r0, xj, sums0[which]);
      sums1[which] = hn::MulAdd(r1, xj, sums1[which]);
    }
    T sum0 = hn::GetLane(hn::SumOfLanes(d, hn::Add(sums0[0], sums0[1])));
    T sum1 = hn::GetLane(hn::SumOfLanes(d, hn::Add(sums1[0], sums1[1])));
    for (; j < i; ++j) {
      y[j] += x0 * row0[j] + x1 * row1[j];
      sum0 += row0[j] * x[j];
      sum1 += row1[j] * x[j];
    }
    y[i] = sum0 + x0 * row0[i];
    if (!two) continue;
    y[i] += x1 * row1[i];
    y[i + 1] = sum1 + x0 * row1[i] + x1 * row1[i + 1];
  }
}

// The lower triangle of A - x y^T - y x^T, two rows at a time.
template <typename T>
void SubtractSymmetric(const T* HWY_RESTRICT x, const T* HWY_RESTRICT y, int64_t n, T* HWY_RESTRICT a, int64_t stride) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += 2) {
    const bool two = i + 1 < n;
    T *const row0 = a + i * stride, *const row1 = row0 + stride;
    const T x0 = x[i], y0 = y[i], x1 = two ? x[i + 1] : T(0), y1 = two ? y[i + 1] : T(0);
    const auto vx0 = hn::Set(d, x0), vy0 = hn::Set(d, y0), vx1 = hn::Set(d, x1), vy1 = hn::Set(d, y1);
    int64_t j = 0;
    for (; two && j + lanes <= i + 1; j += lanes) {
      const auto xj = hn::LoadU(d, x + j), yj = hn::LoadU(d, y + j);
      hn::StoreU(hn::NegMulAdd(vy0, xj, hn::NegMulAdd(vx0, yj, hn::LoadU(d, row0 + j))), d, row0 + j);
      hn::StoreU(hn::NegMulAdd(vy1, xj, hn::NegMulAdd(vx1, yj, hn::LoadU(d, row1 + j))), d, row1 + j);
    }
    for (; j <= i; ++j) {
      row0[j] -= x0 * y[j] + y0 * x[j];
      if (two) row1[j] -= x1 * y[j] + y1 * x[j];
    }
    if (two) row1[i + 1] -= x1 * y[i + 1] + y1 * x[i + 1];
  }
}

float DotOfFloat(const float* x, const float* y, int64_t n) { return RealDot(x, y, n); }
double DotOfDouble(const double* x, const double* y, int64_t n) { return RealDot(x, y, n); }
void DotOfComplex64(const float* x, const float* y, int64_t n, float* result) { ComplexDot(x, y, n, result); }
void DotOfComplex128(const double* x, const double* y, int64_t n, double* result) { ComplexDot(x, y, n, result); }
void AddFloat(float a, const float* x, float* y, int64_t n) { AddReal(a, x, y, n); }
void AddDouble(double a, const double* x, double* y, int64_t n) { AddReal(a, x, y, n); }
void AddComplex64(float r, float i, const float* x, float* y, int64_t n) { AddComplex(r, i, x, y, n); }
void AddComplex128(double r, double i, const double* x, double* y, int64_t n) { AddComplex(r, i, x, y, n); }
void RotateFloat(const Rotation* r, int64_t count, float* rows, int64_t stride, int64_t begin, int64_t end) {
  RotateRows(r, count, rows, stride, begin, end);
}
void RotateDouble(const Rotation* r, int64_t count, double* rows, int64_t stride, int64_t begin, int64_t end) {
  RotateRows(r, count, rows, stride, begin, end);
}
void TimesSymmetricFloat(const float* a, int64_t stride, int64_t n, const float* x, float* y) {
  TimesSymmetric(a, stride, n, x, y);
}
void TimesSymmetricDouble(const double* a, int64_t stride, int64_t n, const double* x, double* y) {
  TimesSymmetric(a, stride, n, x, y);
}
void SubtractSymmetricFloat(const float* x, const float* y, int64_t n, float* a, int64_t stride) {
  SubtractSymmetric(x, y, n, a, stride);
}
void SubtractSymmetricDouble(const double* x, const double* y, int64_t n, double* a, int64_t stride) {
  SubtractSymmetric(x, y, n, a, stride);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::dense {

HWY_EXPORT(DotOfFloat);
HWY_EXPORT(DotOfDouble);
HWY_EXPORT(DotOfComplex64);
HWY_EXPORT(DotOfComplex128);
HWY_EXPORT(AddFloat);
HWY_EXPORT(AddDouble);
HWY_EXPORT(AddComplex64);
HWY_EXPORT(AddComplex128);
HWY_EXPORT(RotateFloat);
HWY_EXPORT(RotateDouble);
HWY_EXPORT(TimesSymmetricFloat);
HWY_EXPORT(TimesSymmetricDouble);
HWY_EXPORT(SubtractSymmetricFloat);
HWY_EXPORT(SubtractSymmetricDouble);

float ConjugateDot(const float* x, const float* y, int64_t n) { return HWY_DYNAMIC_DISPATCH(DotOfFloat)(x, y, n); }
double ConjugateDot(const double* x, const double* y, int64_t n) { return HWY_DYNAMIC_DISPATCH(DotOfDouble)(x, y, n); }
std::complex<float> ConjugateDot(const std::complex<float>* x, const std::complex<float>* y, int64_t n) {
  float sum[2];
  HWY_DYNAMIC_DISPATCH(DotOfComplex64)(reinterpret_cast<const float*>(x), reinterpret_cast<const float*>(y), n, sum);
  return {sum[0], sum[1]};
}
std::complex<double> ConjugateDot(const std::complex<double>* x, const std::complex<double>* y, int64_t n) {
  double sum[2];
  HWY_DYNAMIC_DISPATCH(DotOfComplex128)
  (reinterpret_cast<const double*>(x), reinterpret_cast<const double*>(y), n, sum);
  return {sum[0], sum[1]};
}

void AddScaled(float a, const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(AddFloat)(a, x, y, n); }
void AddScaled(double a, const double* x, double* y, int64_t n) { HWY_DYNAMIC_DISPATCH(AddDouble)(a, x, y, n); }
void AddScaled(std::complex<float> a, const std::complex<float>* x, std::complex<float>* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AddComplex64)
  (a.real(), a.imag(), reinterpret_cast<const float*>(x), reinterpret_cast<float*>(y), n);
}
void AddScaled(std::complex<double> a, const std::complex<double>* x, std::complex<double>* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AddComplex128)
  (a.real(), a.imag(), reinterpret_cast<const double*>(x), reinterpret_cast<double*>(y), n);
}

void Rotate(const Rotation* r, int64_t count, float* rows, int64_t stride, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(RotateFloat)(r, count, rows, stride, begin, end);
}
void Rotate(const Rotation* r, int64_t count, double* rows, int64_t stride, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(RotateDouble)(r, count, rows, stride, begin, end);
}

void TimesSymmetric(const float* a, int64_t stride, int64_t n, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(TimesSymmetricFloat)(a, stride, n, x, y);
}
void TimesSymmetric(const double* a, int64_t stride, int64_t n, const double* x, double* y) {
  HWY_DYNAMIC_DISPATCH(TimesSymmetricDouble)(a, stride, n, x, y);
}
void SubtractSymmetric(const float* x, const float* y, int64_t n, float* a, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(SubtractSymmetricFloat)(x, y, n, a, stride);
}
void SubtractSymmetric(const double* x, const double* y, int64_t n, double* a, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(SubtractSymmetricDouble)(x, y, n, a, stride);
}

}  // namespace millrace::dense
#endif
