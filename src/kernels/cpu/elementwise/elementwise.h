// SPDX-License-Identifier: Apache-2.0
// Parts of the element-wise kernels, and what other families may use of them.
#pragma once

#include "kernel/kernel_registry.h"
#include "kernels/cpu/elementwise/elementwise_table.h"

namespace millrace {

// Elements of one unit of parallel work. Fixed, so that results cannot depend on the number of threads.
inline constexpr int64_t kElementwiseBlock = 8192;

// out[i] = op(a[i]) over the threads of the context.
void ParallelUnary(KernelContext& ctx, const TileOp& op, const void* a, void* out, int64_t n);
// out[i] = op(a[i], b[i]); one side may be a single element, as `form` says.
void ParallelBinary(KernelContext& ctx, const TileOp& op, BinaryForm form, const void* a, const void* b, void* out,
                    int64_t n);
// Input a op input b with broadcasting, into output 0, in place where an input dies. InvalidArgument when the shapes do
// not fit or the right operand is not legal.
Status BroadcastBinary(KernelContext& ctx, const TileOp& op, int a, int b);

void RegisterUnaryBinaryKernels(KernelRegistry& r);
void RegisterCastKernels(KernelRegistry& r);
void RegisterSelectKernels(KernelRegistry& r);
void RegisterBroadcastKernels(KernelRegistry& r);
void RegisterElementwiseRestKernels(KernelRegistry& r);
void RegisterSpecialKernels(KernelRegistry& r);

}  // namespace millrace
