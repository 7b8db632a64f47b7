// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterSignalOps(OpRegistry& registry);

}  // namespace millrace
