// SPDX-License-Identifier: Apache-2.0
// The Python module of op functions, and its stub.
#pragma once

#include <string>
#include <vector>

#include "op/op_def.h"

namespace millrace::opgen {

std::string PythonModule(const std::vector<const OpDef*>& ops, const std::vector<const OpDef*>& composites);
std::string PythonStub(const std::vector<const OpDef*>& ops, const std::vector<const OpDef*>& composites);

}  // namespace millrace::opgen
