// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/engine/index_segment.h"

namespace millrace {

// Reduces the segments that begin in members [begin, end), columns [c0, c1), and fills the rows of the ids before each.
using SegmentRun = void (*)(const SegmentReduction& s, int64_t begin, int64_t end, int64_t c0, int64_t c1);

// Whether an id is less than the one before it.
bool IdsDescend(const SegmentIds& ids);

// Null where the operation is not defined for the type.
SegmentRun FindSegmentRun(RowOp op, DType dtype);

}  // namespace millrace
