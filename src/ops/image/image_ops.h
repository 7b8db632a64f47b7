// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterImageOps(OpRegistry& registry);  // all of it
void RegisterImageFileOps(OpRegistry& registry);
void RegisterImageWindowOps(OpRegistry& registry);
void RegisterImageBoxOps(OpRegistry& registry);
void RegisterImageTransformOps(OpRegistry& registry);
void RegisterImageMatchOps(OpRegistry& registry);

}  // namespace millrace
