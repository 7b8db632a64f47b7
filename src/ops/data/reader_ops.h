// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterReaderOps(OpRegistry& registry);  // records of files whose names come from queues

}  // namespace millrace
