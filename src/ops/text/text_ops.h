// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterTextOps(OpRegistry& registry);  // strings as text: patterns, encodings, words

}  // namespace millrace
