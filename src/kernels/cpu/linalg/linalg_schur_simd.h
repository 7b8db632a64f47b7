// SPDX-License-Identifier: Apache-2.0
// What functions of matrices are made of: Schur's form, and square roots of triangular matrices. Row-major.
#pragma once

#include "tensor/dtype.h"

namespace millrace::dense {

// t and `adjoint` are n x n, t in Hessenberg's form, A = Q t Q^H with Q^H = adjoint. Turns both until t is triangular:
// QR steps with Wilkinson's shift. False when they do not converge. Below the diagonal t may keep rounding errors.
bool HessenbergToSchur(complex128* t, complex128* adjoint, int64_t n);

// Of a real matrix, in any form: Francis's steps with two shifts. Where t keeps a number below the diagonal, the two by
// two numbers around it have complex eigenvalues; SplitBlocks turns the complex form of both until t is triangular.
bool RealSchur(double* t, double* adjoint, int64_t n);
void SplitBlocks(complex128* t, complex128* adjoint, int64_t n);

// r, all zero before, becomes the square root of the upper triangular t: column by column (Bjoerck and Hammarling,
// 1983).
void RootOfTriangle(const complex128* t, complex128* r, int64_t n);
void RootOfTriangle(const double* t, double* r, int64_t n);

}  // namespace millrace::dense
