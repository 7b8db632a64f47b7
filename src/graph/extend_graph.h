// SPDX-License-Identifier: Apache-2.0
// GraphDefs that go on with a graph.
#pragma once

#include "graph/graph_def.h"

namespace millrace {

// Adds the nodes of `def`, whose inputs are nodes of `def`, or else of the graph. As of ImportGraphDef otherwise.
Status ExtendGraph(const wire::GraphDef& def, Graph* graph);

}  // namespace millrace
