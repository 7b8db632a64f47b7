// SPDX-License-Identifier: Apache-2.0
// The one engine of every scatter: rows of updates combined into rows of a destination.
#pragma once

#include "kernel/kernel.h"
#include "kernels/cpu/engine/index_arithmetic.h"

namespace millrace {

struct RowScatter {
  RowOp op = RowOp::kAssign;
  DType dtype = DType::kInvalid;  // of dst and updates
  void* dst = nullptr;
  int64_t dst_rows = 0;
  const int64_t* rows = nullptr;  // the destination of each update, in [0, dst_rows), or negative: dropped
  int64_t n = 0;
  const void* updates = nullptr;
  const int64_t* sources = nullptr;  // where given: update i is row sources[i] of `updates`, not row i
  bool one_update = false;           // a single element stands for all updates
  int64_t width = 0;                 // elements per row
  bool keep_wide = false;            // half types: sums are kept in float until the end (dst as a whole is rewritten)
};

// Updates to one row are applied in index order, whatever the number of threads. Unimplemented for a dtype that op does
// not know; InvalidArgument for an integer division by zero, before anything is written.
Status ScatterRows(KernelContext& ctx, const RowScatter& s);

}  // namespace millrace
