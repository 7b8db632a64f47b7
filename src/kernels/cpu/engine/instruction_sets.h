// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

// Keeps kernels to the instruction sets that MILLRACE_MAX_ISA in the environment allows: sse2 (what every x86-64 has),
// sse4, avx2 or avx512. For tests of what other machines run. Before the first kernel; oneDNN has DNNL_MAX_CPU_ISA.
void LimitInstructionSets();

}  // namespace millrace
