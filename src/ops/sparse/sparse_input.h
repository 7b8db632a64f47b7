// SPDX-License-Identifier: Apache-2.0
// What the declarations of sparse ops share.
#pragma once

#include <utility>

#include "op/op_registry.h"
#include "op/shape_context.h"

namespace millrace {

// Merges what three inputs say of n and rank: indices [n, rank] at `indices`, values [n], a shape [rank]. Returns
// {n, rank}.
StatusOr<std::pair<int64_t, int64_t>> SparseInput(ShapeContext& c, int indices, int values, int shape);
inline StatusOr<std::pair<int64_t, int64_t>> SparseInput(ShapeContext& c, int first) {
  return SparseInput(c, first, first + 1, first + 2);
}
// Three outputs from `first` on, where n or rank may be -1.
void SetSparseOutput(ShapeContext& c, int first, int64_t n, int64_t rank);

void RegisterSparseMathOps(OpRegistry& r);
void RegisterSparseReduceOps(OpRegistry& r);
void RegisterSparseLayoutOps(OpRegistry& r);
void RegisterSparseSerialOps(OpRegistry& r);
void RegisterSparseSetOps(OpRegistry& r);

}  // namespace millrace
