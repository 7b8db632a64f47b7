// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterParsingOps(OpRegistry& registry);  // all of it
void RegisterExampleOps(OpRegistry& registry);  // Example and SequenceExample messages

}  // namespace millrace
