// SPDX-License-Identifier: Apache-2.0
// What the loops over sequences share.
#pragma once

#include "graph/control_flow.h"
#include "ops/composite.h"
#include "ops/rnn/rnn_cell.h"

namespace millrace {

void RegisterAttention(CompositeRegistry& registry);
void RegisterDynamicLoops(CompositeRegistry& registry);
void RegisterSequenceLosses(CompositeRegistry& registry);

// The cell that attribute `attr` of a call names.
StatusOr<RnnCellPtr> CellOf(const CompositeCall& call, absl::string_view attr);

// The optional argument `name` (a list of none or one vector) as integers of this type, or null.
StatusOr<Output> LengthsOf(const GraphBuilder& b, const CompositeCall& call, absl::string_view name,
                           DType type = DType::kInt64);

struct RnnResult {
  Output outputs;            // of a whole sequence, or null
  std::vector<Output> list;  // or one per step
  std::vector<Output> states;
};

// The cell unrolled over `inputs` [batch, width] each. `lengths` (may be null): int64 [batch]; beyond its length an
// example's output is zero and its state stays.
StatusOr<RnnResult> UnrollCell(const RnnCell& cell, const GraphBuilder& b, const std::vector<Output>& inputs,
                               Output lengths, const std::vector<Output>& states,
                               const std::vector<Output>& parameters);

// The same over inputs [steps, batch, width]; `lengths` are int32, `batch` is how many examples there are (may be
// null).
StatusOr<RnnResult> LoopCell(const RnnCell& cell, const GraphBuilder& b, Output inputs, Output lengths,
                             const std::vector<Output>& states, const std::vector<Output>& parameters,
                             const LoopOptions& options, Output batch = {});

}  // namespace millrace
