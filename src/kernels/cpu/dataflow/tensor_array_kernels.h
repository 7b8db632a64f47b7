// SPDX-License-Identifier: Apache-2.0
// The parts of the tensor array family.
#pragma once

#include "kernel/kernel_registry.h"
#include "kernels/cpu/dataflow/tensor_array.h"

namespace millrace {

// InvalidArgument unless the elements have the dtype that the node asks for.
Status CheckElementType(const KernelContext& ctx, const TensorArray& array, DType wanted);

void RegisterTensorArrayManyKernels(KernelRegistry& registry);  // all elements, or several, at once

}  // namespace millrace
