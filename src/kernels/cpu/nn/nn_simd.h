// SPDX-License-Identifier: Apache-2.0
// Vector loops, compiled once per instruction set, for normalisation and biases.
// Matrices are `rows` rows of `cols` values without gaps. Every result element depends on its own column only, in row
// order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

// sum[c] += x[r][c]
void AddRows(const float* x, size_t rows, size_t cols, float* sum);
// With e = x[r][c] - shift[c]:  sum[c] += e, squares[c] += e * e
void AddMoments(const float* x, size_t rows, size_t cols, const float* shift, float* sum, float* squares);
// sum[c] += g[r][c], dot[c] += g[r][c] * (x[r][c] - shift[c])
void AddDots(const float* g, const float* x, size_t rows, size_t cols, const float* shift, float* sum, float* dot);
// y[r][c] = (x[r][c] - m[c]) * a[c] + b[c]; y may be x
void ScaleShift(const float* x, size_t rows, size_t cols, const float* m, const float* a, const float* b, float* y);
// y[r][c] = x[r][c] + b[c]; y may be x
void ShiftRows(const float* x, size_t rows, size_t cols, const float* b, float* y);
// y[r][c] = (g[r][c] - k[c]) * a[c] + (x[r][c] - m[c]) * b[c]; y may be g or x
void Combine(const float* g, const float* x, size_t rows, size_t cols, const float* m, const float* a, const float* b,
             const float* k, float* y);
// Sum of squares in lanes of the type, folded at the end.
float SumSquares(const float* x, size_t n);
double SumSquares(const double* x, size_t n);

}  // namespace millrace
