// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace millrace {

// Output 0: an optional with the value `components`; without any, one that has no value. InvalidArgument where
// optionals are nested too deep.
Status OutputOptional(KernelContext& ctx, std::vector<Tensor> components);

}  // namespace millrace
