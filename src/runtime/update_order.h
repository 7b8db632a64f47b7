// SPDX-License-Identifier: Apache-2.0
// Moves updates of variables, and reads of them, to the earliest place that changes nothing else.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace millrace {

// `order` is topological. An update (a node that takes a variable by reference, or a handle and returns nothing) moves
// up to behind its inputs and behind every node that stood before it and touches the same variable: its other updates
// and readers, and whoever reads what those returned, since that shares the variable's buffer. So every value stays
// what it was, no update has to copy a buffer that a later node still reads, and a gradient dies as soon as it has been
// applied. Reads move by the same rule, so that no update waits for one that stands late (the powers of Adam's betas).
void MoveUpdatesUp(std::vector<Node*>& order);

}  // namespace millrace
