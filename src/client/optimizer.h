// SPDX-License-Identifier: Apache-2.0
// Optimizers: each is one row (its update op, slots and hyper-parameters); this code makes slots and updates from the
// row.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/gradient.h"

namespace millrace {

struct OptimizerDef {
  const char* name;    // "Adam"
  const char* update;  // "ApplyAdam" is the op; "SparseApplyAdam" where it exists
  // Slot variables "<variable>/<slot>", in the order of the op's reference inputs after `var`.
  std::vector<std::pair<const char*, double>> slots;
  // Hyper-parameters with defaults; an op's input "lr" or "alpha" is the learning rate.
  std::vector<std::pair<const char*, double>> hyper;
  // Hyper-parameters of which a running power is kept in a variable "<name>_power" (Adam's beta1).
  std::vector<const char*> powers;
  const char* doc;
};

const std::vector<OptimizerDef>& Optimizers();
const OptimizerDef* FindOptimizer(absl::string_view name);

// The variables that an optimizer keeps, by "<variable>/<slot as in OptimizerDef>" and "<name>_power/<dtype>". Later
// updates by the same optimizer find theirs here.
using OptimizerState = std::map<std::string, Output>;

struct UpdateRequest {
  const OptimizerDef* optimizer = nullptr;
  OptimizerState* state = nullptr;            // optional
  std::map<std::string, double> slot_values;  // first values by slot, where they are not the rule's
  std::string slot_name;                      // of slot variables instead of the optimizer's name
  std::string slot_scope;                     // above the variable's name in theirs
  bool use_locking = false;
  std::map<std::string, Output> hyper;  // overrides; scalars, cast to each variable's dtype
  bool use_nesterov = false;
  std::string name;    // of the node returned, which must be unused, and of the scope of the updates
  Output global_step;  // optional integer variable, incremented after the updates
};

// Adds slots and one update per variable; returns the node that runs them all. Sparse gradients use
// the sparse update where the rule has one, and are made dense otherwise. InvalidArgument: a variable that is neither
// a reference nor a resource handle of known type, an unknown hyper-parameter, no gradient at all.
StatusOr<Node*> ApplyGradients(const GraphBuilder& b, const UpdateRequest& request,
                               const std::vector<std::pair<Output, Gradient>>& variables_and_gradients);

}  // namespace millrace
