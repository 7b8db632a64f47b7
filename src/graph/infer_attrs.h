// SPDX-License-Identifier: Apache-2.0
// What the inputs of a new node say about its attributes.
#pragma once

#include "graph/graph.h"

namespace millrace {

// Outputs that a node of an unknown op may grow.
inline constexpr int kMaxUnknownOutputs = 65536;

// Adds the types, list lengths and type lists that are absent from spec->attrs and follow from its inputs.
// InvalidArgument when the number of inputs does not fit, or the lists among them cannot be told apart.
Status InferAttrs(const OpDef& op, NodeSpec& spec);

}  // namespace millrace
