// SPDX-License-Identifier: Apache-2.0
// The parts of the array family, and what its kernels (and those that are close to it) share.
#pragma once

#include "absl/container/inlined_vector.h"
#include "kernel/kernel_registry.h"
#include "tensor/strided_slice.h"

namespace millrace {

void RegisterArraySourceKernels(KernelRegistry& registry);
void RegisterArrayFillKernels(KernelRegistry& registry);
void RegisterArrayReshapeKernels(KernelRegistry& registry);
void RegisterArrayJoinKernels(KernelRegistry& registry);
void RegisterArraySliceKernels(KernelRegistry& registry);
void RegisterArrayPadKernels(KernelRegistry& registry);

// A kernel without attributes that costs less than handing it to another thread.
void AddCheapFn(KernelRegistry& registry, absl::string_view op, KernelRegistry::Fn fn);

using Ints = absl::InlinedVector<int64_t, 8>;
// The contents of an int8, int32 or int64 vector; InvalidArgument for another dtype or rank, naming `what`.
StatusOr<Ints> IntVectorOf(const Tensor& t, absl::string_view what);
// The one element of an int8, int32 or int64 tensor; InvalidArgument otherwise.
StatusOr<int64_t> IntScalarOf(const Tensor& t, absl::string_view what);
// A vector of dimensions as a Shape.
StatusOr<Shape> ShapeOf(const Tensor& t, absl::string_view what);

// `count` elements of `t` in row-major order from `offset` on, as `shape`. Shares the buffer of `t` when that leaves
// the elements aligned as tensors are, else copies. The caller has checked the range.
StatusOr<Tensor> ContiguousPart(KernelContext& ctx, const Tensor& t, int64_t offset, const Shape& shape);

// Attributes begin_mask ... shrink_axis_mask.
StatusOr<StridedSliceMasks> ReadStridedSliceMasks(const KernelInit& init);
// The slice of a tensor of shape `of` that inputs first (begin), first + 1 (end) and first + 2 (strides) describe.
StatusOr<StridedSlice> ReadStridedSlice(const KernelContext& ctx, int first, const StridedSliceMasks& masks,
                                        const Shape& of);
// target[slice] = value. InvalidArgument when the shapes differ; an empty slice takes any value. `target` must have its
// buffer to itself.
Status WriteStridedSlice(const KernelContext& ctx, const StridedSlice& slice, const Tensor& value, Tensor* target);

}  // namespace millrace
