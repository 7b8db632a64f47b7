// SPDX-License-Identifier: Apache-2.0
// Products of which one factor is a few vectors: the other, the matrix, is read once and as it lies.
#pragma once

#include "kernels/cpu/engine/linalg_gemm.h"

namespace millrace {

// Whether ThinGemm is for this product; of float, where oneDNN's own is slower.
bool IsThinGemm(DType dtype, const GemmArgs& args);
// Whether it is also for a product of float whose k is long beside m and n: oneDNN would copy the matrix into a form of
// its own, for little use of it.
bool IsThinSum(DType dtype, const GemmArgs& args);
// float, double, int32, int64. Sums run over k by blocks; how they are cut depends on the shape alone.
void ThinGemm(DType dtype, const GemmArgs& args);

}  // namespace millrace
