// SPDX-License-Identifier: Apache-2.0
// What a reduction does to memory: the input's axes merged into as few as possible, which alternate between kept and
// reduced.
#pragma once

#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernel/kernel.h"

namespace millrace {

// A loop nest, outermost first; strides in elements.
struct LoopNest {
  absl::InlinedVector<int64_t, 4> sizes, strides;
  int64_t count = 1;  // product of sizes
  void Push(int64_t size, int64_t stride);
  int64_t Offset(int64_t index) const;  // of the index-th tuple
};

struct ReducePlan {
  Shape result;
  bool inner_reduced = false;  // whether the innermost merged axis is reduced
  int64_t inner = 1;           // its size
  LoopNest kept, reduced;      // the other axes
  int64_t reduced_elements = 1;
};

// InvalidArgument when an axis is out of range or comes twice.
Status PlanReduction(const Shape& in, const Tensor& axes, bool keep_dims, ReducePlan* out);

}  // namespace millrace
