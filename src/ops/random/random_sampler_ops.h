// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterStatelessSamplerOps(OpRegistry& registry);  // shuffles, gamma, Poisson and binomial numbers of seeds

}  // namespace millrace
