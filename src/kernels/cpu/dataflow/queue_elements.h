// SPDX-License-Identifier: Apache-2.0
// Elements of queues and their like: taking batches apart, and putting them together.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "kernels/cpu/dataflow/queue.h"

namespace millrace {

// Whether a component with these dimensions is what `want` says.
bool IsElementShape(const PartialShape& want, absl::Span<const int64_t> dims);

// Memory that a client has lent for the step is copied.
Status KeepBeyondStep(Tensor* value);

// The same for a component of a batch. ResourceExhausted for very many rows without content.
Status KeepBatch(Tensor* batch);
// Row i of a batch, whose components have at least one dimension. With `share`, a large row is a part of the batch's
// memory.
StatusOr<Queue::Element> RowOfBatch(const Queue::Element& batch, int64_t i, bool share);

// One tensor per component with the elements' as rows; dimensions that `shapes` leaves open are as large as the largest
// element's (0 without elements), and what is not filled is 0 or empty. Takes strings out of `elements` only when it
// succeeds.
StatusOr<Queue::Element> StackElements(const std::vector<DType>& types, const std::vector<PartialShape>& shapes,
                                       std::vector<Queue::Element>& elements);

}  // namespace millrace
