// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

namespace millrace {

// Finds what the variables of loops keep of their shapes from one iteration to the next, where a graph does not say: an
// import adds a loop's Merge before what feeds its back edge, and knows nothing of its shape then. Cheap when there is
// nothing to find. Shapes that the graph knows already only become more exact.
void RefineLoopShapes(Graph* graph);

}  // namespace millrace
