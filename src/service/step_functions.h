// SPDX-License-Identifier: Apache-2.0
// Functions that kernels run by themselves: compiled to plans of one device, each with kernels of its own.
#pragma once

#include <memory>

#include "graph/graph.h"
#include "kernel/kernel_registry.h"
#include "kernel/step_function.h"

namespace millrace {

// Tells `kernel`, if it wants to know, where the functions of `graph`'s library are. *functions is made when the first
// kernel wants it. Kernels and device outlive what is compiled.
Status GiveFunctions(Kernel& kernel, const Graph& graph, const KernelRegistry& kernels, Device& device,
                     std::shared_ptr<FunctionSource>* functions);

}  // namespace millrace
