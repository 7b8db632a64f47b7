// SPDX-License-Identifier: Apache-2.0
// What the kernels of sparse tensors share.
#pragma once

#include <vector>

#include "kernel/kernel_registry.h"

namespace millrace {

// Three inputs of a kernel: indices [n, rank], values [n], a dense shape [rank].
struct SparseArg {
  const Tensor* values = nullptr;
  const Tensor* shape = nullptr;
  const Tensor* indices = nullptr;
  int64_t n = 0, rank = 0;

  const int64_t* at(int64_t i) const { return indices->data<int64_t>() + i * rank; }
  const int64_t* dims() const { return shape->data<int64_t>(); }
};
// InvalidArgument unless ranks and sizes fit each other; what the indices and dimensions are is not looked at.
StatusOr<SparseArg> SparseArgOf(const KernelContext& ctx, int indices, int values, int shape, absl::string_view name);
inline StatusOr<SparseArg> SparseArgOf(const KernelContext& ctx, int first, absl::string_view name) {
  return SparseArgOf(ctx, first, first + 1, first + 2, name);
}
// Of an operation of two: InvalidArgument unless both have the same shape.
Status CheckSameShape(const SparseArg& a, const SparseArg& b);
// The dense shape: InvalidArgument for negative dimensions, or when the number of elements overflows.
StatusOr<Shape> DenseShapeOf(const SparseArg& s);
// InvalidArgument unless every index lies in the shape.
Status CheckInside(const SparseArg& s, absl::string_view name);
// InvalidArgument unless, besides, elements are in row-major order without repetition.
Status CheckOrdered(const SparseArg& s, absl::string_view name);
// The order alone, of `indices` [n, rank].
Status CheckOrder(const Tensor& indices, absl::string_view name);

// < 0, 0, > 0 as index a comes before, is, or comes after b.
int CompareIndices(const int64_t* a, const int64_t* b, int64_t rank);
// Whether no element's first `columns` indices come before those of the element in front of it.
bool InRowMajorOrder(const SparseArg& s, int64_t columns);
// Elements in row-major order of the first `columns` of their indices; equal ones stay in order.
std::vector<int64_t> RowMajorOrder(const SparseArg& s, int64_t columns);

// The output `o` with elements `from` of `values`.
Status GatherValues(KernelContext& ctx, int o, const Tensor& values, const std::vector<int64_t>& from);
// A vector as output o.
Status SetVector(KernelContext& ctx, int o, const std::vector<int64_t>& v);

void RegisterSparseMathKernels(KernelRegistry& registry);
void RegisterSparseDenseKernels(KernelRegistry& registry);
void RegisterSparseReduceKernels(KernelRegistry& registry);
void RegisterSparseLayoutKernels(KernelRegistry& registry);
void RegisterSparseFillKernels(KernelRegistry& registry);
void RegisterSparseSerialKernels(KernelRegistry& registry);
void RegisterSparseSetKernels(KernelRegistry& registry);
void RegisterSparseCrossKernels(KernelRegistry& registry);

}  // namespace millrace
