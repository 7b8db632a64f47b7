// SPDX-License-Identifier: Apache-2.0
// Kernels on devices with memory of their own.
#pragma once

#include <memory>

#include "kernel/device_memory.h"

namespace millrace {

// The kernel, with a check before and after it that its arguments are in the memory where `memory` says that they are:
// no kernel gets an address that it cannot use, whatever the one before it did. Internal names the argument.
std::shared_ptr<Kernel> WithMemoryChecks(std::shared_ptr<Kernel> kernel, ArgMemory memory);

}  // namespace millrace
