// SPDX-License-Identifier: Apache-2.0
// A number for what a function says, TensorFlow's: functions made by either get the same names. It does not depend on
// the order of nodes, attributes and control inputs, on attributes whose names begin with '_', nor on how tensors are
// written.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "wire/graph.h"

namespace millrace {

// InvalidArgument when a tensor among the attributes cannot be read.
StatusOr<uint64_t> FunctionHash(const wire::FunctionDef& def);
// The same as eleven letters and digits.
StatusOr<std::string> FunctionHashText(const wire::FunctionDef& def);

}  // namespace millrace
