// SPDX-License-Identifier: Apache-2.0
// Small products of bfloat16 by the instruction that multiplies pairs of them.
#pragma once

#include "kernels/cpu/engine/linalg_gemm.h"

namespace millrace {

// Whether the processor has it, MILLRACE_MAX_ISA allows it, and the product is one for PairGemm: A as it is, B small.
bool IsPairGemm(const GemmArgs& args);
// bfloat16 factors and results (mode kSet), on the calling thread. Sums are floats, by pairs along k; numbers too small
// to be normal count as 0, as in oneDNN.
void PairGemm(const GemmArgs& args);

}  // namespace millrace
