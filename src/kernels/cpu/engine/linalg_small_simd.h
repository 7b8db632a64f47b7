// SPDX-License-Identifier: Apache-2.0
// Float products for which a call into a library costs as much as the work.
#pragma once

#include "kernels/cpu/engine/linalg_gemm.h"

namespace millrace {

inline constexpr int64_t kMostOfTurned = 8192;  // elements of a transposed B
// Whether SmallGemm is for this product: it needs rows of at least a few vectors' worth of work, and little of it.
bool IsSmallGemm(const GemmArgs& args);
// Sums run over k in order, with one rounding a step where the processor can.
void SmallGemm(const GemmArgs& args);

// Whether RowGemm is for this product: a vector by a matrix, which is read once and as it lies.
bool IsRowGemm(const GemmArgs& args);
// Sums run over k in order, eight products at a time.
void RowGemm(const GemmArgs& args);

}  // namespace millrace
