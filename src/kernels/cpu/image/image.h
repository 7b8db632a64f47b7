// SPDX-License-Identifier: Apache-2.0
// The parts of the image family.
#pragma once

#include "kernel/kernel_registry.h"

namespace millrace {

void RegisterImageKernels(KernelRegistry& registry);  // all of it
void RegisterImageResizeKernels(KernelRegistry& registry);
void RegisterImageColourKernels(KernelRegistry& registry);
void RegisterImageBoxKernels(KernelRegistry& registry);
void RegisterImageCropKernels(KernelRegistry& registry);
void RegisterImageDrawKernels(KernelRegistry& registry);
void RegisterImageSampleKernels(KernelRegistry& registry);
void RegisterImageFileKernels(KernelRegistry& registry);
void RegisterImageScaleKernels(KernelRegistry& registry);
void RegisterImageTransformKernels(KernelRegistry& registry);
void RegisterImageResamplerKernels(KernelRegistry& registry);
void RegisterImageMatchKernels(KernelRegistry& registry);
void RegisterImageStereogramKernels(KernelRegistry& registry);

}  // namespace millrace
