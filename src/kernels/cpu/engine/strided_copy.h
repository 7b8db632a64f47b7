// SPDX-License-Identifier: Apache-2.0
// Moving elements between two arrangements in memory: the one engine below slices, transpositions, concatenations,
// padding, tiling and their gradients.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "kernel/kernel.h"

namespace millrace {

// One level of the loop nest. Strides are in elements and may be negative; a source stride of 0 repeats an element.
struct CopyDim {
  int64_t size = 0;
  int64_t dst_stride = 0;
  int64_t src_stride = 0;
};
using CopyDims = absl::InlinedVector<CopyDim, 8>;

// dst[sum(i_d * dst_stride_d)] = src[sum(i_d * src_stride_d)] for all index tuples, outermost dimension first. The two
// regions must not overlap; strings, resources and variants are assigned. `ctx` lends its threads; null: this thread
// only.
void StridedCopy(const KernelContext* ctx, DType dtype, void* dst, const void* src, absl::Span<const CopyDim> dims);

// `n` copies of the element at `value`.
void FillElements(const KernelContext* ctx, DType dtype, void* dst, const void* value, int64_t n);

// Elements that lie one after another on both sides.
inline void CopyElements(const KernelContext* ctx, DType dtype, void* dst, const void* src, int64_t n) {
  const CopyDim dim{n, 1, 1};
  StridedCopy(ctx, dtype, dst, src, absl::MakeConstSpan(&dim, 1));
}

// `rows` rows of `dst`, each the rows of all parts one after another, written in one sweep. Plain bytes.
struct JoinedPart {
  const void* from;
  int64_t row_bytes;
};
void JoinRows(const KernelContext* ctx, void* dst, int64_t rows, absl::Span<const JoinedPart> parts);

// Address of element i of a buffer of this dtype.
inline void* ElementAt(void* p, DType dtype, int64_t i) {
  return static_cast<char*>(p) + i * static_cast<int64_t>(DTypeSize(dtype));
}
inline const void* ElementAt(const void* p, DType dtype, int64_t i) {
  return static_cast<const char*>(p) + i * static_cast<int64_t>(DTypeSize(dtype));
}

// For kernels with loops of their own: n elements from src one after another, or n times the one at src. Both pointers
// and the dtype must be the same kind of thing as above.
using RunFn = void (*)(void* dst, const void* src, int64_t n);
struct RunFns {
  RunFn copy;
  RunFn fill;
};
RunFns RunFunctions(DType dtype);

// Row-major strides of `shape`, in elements.
absl::InlinedVector<int64_t, 8> RowMajorStrides(const Shape& shape);

// `out` as the transposition of `in` by a valid permutation: out dimension i is in dimension perm[i].
void TransposeInto(const KernelContext* ctx, const Tensor& in, absl::Span<const int64_t> perm, Tensor* out);

}  // namespace millrace
