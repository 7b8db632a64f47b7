// SPDX-License-Identifier: Apache-2.0
// Work on rows of matrices, compiled once per instruction set: what reflections and plane rotations are made of.
#pragma once

#include <complex>
#include <cstdint>

namespace millrace::dense {

// sum of conj(x[i]) y[i]; in a fixed order, so the result is the same everywhere with one instruction set.
float ConjugateDot(const float* x, const float* y, int64_t n);
double ConjugateDot(const double* x, const double* y, int64_t n);
std::complex<float> ConjugateDot(const std::complex<float>* x, const std::complex<float>* y, int64_t n);
std::complex<double> ConjugateDot(const std::complex<double>* x, const std::complex<double>* y, int64_t n);

// y += a x.
void AddScaled(float a, const float* x, float* y, int64_t n);
void AddScaled(double a, const double* x, double* y, int64_t n);
void AddScaled(std::complex<float> a, const std::complex<float>* x, std::complex<float>* y, int64_t n);
void AddScaled(std::complex<double> a, const std::complex<double>* x, std::complex<double>* y, int64_t n);

// Rows i and j become c i + s j and c j - s i.
struct Rotation {
  int64_t i, j;
  double c, s;
};
// Columns [begin, end) of a matrix whose rows are `stride` apart.
void Rotate(const Rotation* rotations, int64_t count, float* rows, int64_t stride, int64_t begin, int64_t end);
void Rotate(const Rotation* rotations, int64_t count, double* rows, int64_t stride, int64_t begin, int64_t end);

// y = A x for a symmetric matrix given by its lower triangle, whose rows are `stride` apart.
void TimesSymmetric(const float* a, int64_t stride, int64_t n, const float* x, float* y);
void TimesSymmetric(const double* a, int64_t stride, int64_t n, const double* x, double* y);
// A -= x y^T + y x^T, its lower triangle.
void SubtractSymmetric(const float* x, const float* y, int64_t n, float* a, int64_t stride);
void SubtractSymmetric(const double* x, const double* y, int64_t n, double* a, int64_t stride);

}  // namespace millrace::dense
