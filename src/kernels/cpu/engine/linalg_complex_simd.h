// SPDX-License-Identifier: Apache-2.0
// Products of complex matrices, on the calling thread, without packing: for small ones and for blocks of larger ones.
#pragma once

#include "kernels/cpu/engine/linalg_gemm.h"

namespace millrace {

// complex64 or complex128; strides count complex numbers. The real and the imaginary parts of the factors meet in four
// sums over k, in order, with one rounding a step where the processor can.
void ComplexGemm(DType dtype, const GemmArgs& args, bool conjugate_a, bool conjugate_b);

}  // namespace millrace
