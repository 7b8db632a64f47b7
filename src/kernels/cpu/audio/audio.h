// SPDX-License-Identifier: Apache-2.0
// The kernels of sounds.
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterAudioKernels(KernelRegistry& registry);  // all of them
void RegisterSpectrumKernels(KernelRegistry& registry);

}  // namespace millrace
