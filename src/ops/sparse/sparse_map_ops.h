// SPDX-License-Identifier: Apache-2.0
// Part of the table of op families (ops/op_list.h).
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterSparseMapOps(OpRegistry& registry);

}  // namespace millrace
