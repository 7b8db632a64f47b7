// SPDX-License-Identifier: Apache-2.0
// Which arguments of a node lie in host memory where its device has memory of its own: sizes, axes, predicates, and
// everything that is no plain number. On the CPU all memory is host memory and nobody asks.
#pragma once

#include <vector>

namespace millrace {

struct ArgMemory {
  std::vector<bool> host_inputs, host_outputs;  // by flat position
};

}  // namespace millrace
