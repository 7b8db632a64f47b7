// SPDX-License-Identifier: Apache-2.0
// Plain loops over rows, for the compiler to vectorise. Sums run in kLanes lanes.
#include <algorithm>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linalg/linalg_tiles_rows.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "hwy/highway.h"
#include "kernels/cpu/linalg/linalg_rows.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::dense {
namespace HWY_NAMESPACE {
namespace {

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

template <typename T>
void RotatePair(T c, T s, T* HWY_RESTRICT x, T* HWY_RESTRICT y, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    const T u = x[k], v = y[k];
    x[k] = c * u + s * v;
    y[k] = c * v - s * u;
  }
}

// A strip of columns at a time: it stays in cache while all rotations pass over it.
template <typename T>
void RotateRows(const Rotation* rotations, int64_t count, T* rows, int64_t stride, int64_t begin, int64_t end) {
  constexpr int64_t kStrip = 256 / static_cast<int64_t>(sizeof(T));
  for (int64_t at = begin; at < end; at += kStrip) {
    const int64_t n = std::min(kStrip, end - at);
    for (int64_t r = 0; r < count; ++r) {
      const Rotation& g = rotations[r];
      RotatePair(static_cast<T>(g.c), static_cast<T>(g.s), rows + g.i * stride + at, rows + g.j * stride + at, n);
    }
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

}  // namespace millrace::dense
#endif
