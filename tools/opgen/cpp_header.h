// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "op/op_def.h"

namespace millrace::opgen {

// millrace/ops.h: one typed inline function per op and composite, over Scope of millrace/graph.h.
std::string CppHeader(const std::vector<const OpDef*>& ops, const std::vector<const OpDef*>& composites);

}  // namespace millrace::opgen
