// SPDX-License-Identifier: Apache-2.0
// Products for which a call into a library costs as much as the work.
#pragma once

#include "kernels/cpu/engine/linalg_gemm.h"

namespace millrace {

inline constexpr int64_t kMostOfTurned = 8192;  // elements of a transposed B
// Whether SmallGemm is for this product: it needs rows of at least a few vectors' worth of work, and little of it.
bool IsSmallGemm(DType dtype, const GemmArgs& args);
// float and double. Sums run over k in order, with one rounding a step where the processor can.
void SmallGemm(DType dtype, const GemmArgs& args);

}  // namespace millrace
