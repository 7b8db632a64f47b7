// SPDX-License-Identifier: Apache-2.0
// The ops of a saver, with the names that TensorFlow gives them.
#pragma once

#include <vector>

#include "client/saver.h"
#include "graph/graph_builder.h"

namespace millrace {

struct SaverNodes {
  Output filename;
  Output save;
  Node* restore = nullptr;
};

// InvalidArgument: a node that is no variable and no table, a key twice.
Status CheckSaved(const std::vector<SavedVariable>& variables);

// `number` keeps the files of a checkpoint in shards apart from those of other programs, until they are one.
StatusOr<SaverNodes> BuildSaver(const GraphBuilder& b, const std::vector<SavedVariable>& variables,
                                const SaverOptions& options, uint64_t number);

}  // namespace millrace
