// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/tree_ensemble.h"

namespace millrace {

// Takes splits back that lose, those first whose children are leaves; a split whose children are leaves afterwards is
// taken back too. `metadata` tells where each node went, and what that changed, for examples that were in it.
void PruneTree(wire::Tree* tree, wire::TreeMetadata* metadata);

}  // namespace millrace
