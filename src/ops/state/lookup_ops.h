// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterLookupOps(OpRegistry& registry);  // tables from keys to values

}  // namespace millrace
