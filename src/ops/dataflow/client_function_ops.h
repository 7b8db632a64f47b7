// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterClientFunctionOps(OpRegistry& registry);  // calls of the client's language

}  // namespace millrace
