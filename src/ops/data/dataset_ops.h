// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterDatasetOps(OpRegistry& registry);  // data sets, and iterators over them

}  // namespace millrace
