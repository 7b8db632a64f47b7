// SPDX-License-Identifier: Apache-2.0
// The cast of values in host memory that travel with fewer bits; every device has it.
#pragma once

#include "kernels/cpu/any_device.h"

namespace millrace {

void AddHostCastKernels(AnyDeviceKernels& r);

}  // namespace millrace
