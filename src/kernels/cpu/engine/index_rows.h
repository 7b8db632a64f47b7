// SPDX-License-Identifier: Apache-2.0
// What the index kernels share: checked indices, and copies of equally long runs of elements of any dtype.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernel/kernel.h"

namespace millrace {

// Copies runs of `run` elements. Plain dtypes move as bytes; strings and handles element by element.
class RunCopier {
 public:
  RunCopier(DType dtype, int64_t run);
  // n runs; positions and strides count elements, strides may be negative. Source and destination do not overlap.
  void Copy(void* dst, int64_t dst_at, int64_t dst_stride, const void* src, int64_t src_at, int64_t src_stride,
            int64_t n) const {
    const int64_t s = size_;
    copy_(static_cast<char*>(dst) + dst_at * s, dst_stride * s, static_cast<const char*>(src) + src_at * s,
          src_stride * s, n, count_);
  }
  void CopyOne(void* dst, int64_t dst_at, const void* src, int64_t src_at) const {
    char* const to = static_cast<char*>(dst) + dst_at * size_;
    const char* const from = static_cast<const char*>(src) + src_at * size_;
    // The commonest without a call.
    if (plain_ && count_ == 4) {
      std::memcpy(to, from, 4);
    } else if (plain_ && count_ == 8) {
      std::memcpy(to, from, 8);
    } else {
      copy_(to, 0, from, 0, 1, count_);
    }
  }
  // dst[i] = src[from[i]] and dst[to[i]] = src[i * src_stride], in runs, for i in [0, n), in order.
  void Gather(void* dst, const void* src, const int64_t* from, int64_t n) const;
  void Scatter(void* dst, const int64_t* to, const void* src, int64_t src_stride, int64_t n) const;
  // About nanoseconds per run.
  double cost() const { return cost_; }

 private:
  using Fn = void (*)(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n, size_t count);
  Fn copy_;
  int64_t size_;  // bytes per element
  size_t count_;  // bytes (plain) or elements per run
  int64_t run_;   // elements
  bool plain_;
  double cost_;
};

// Zeroes plain elements [at, at + n); others of a fresh tensor are empty already.
void ZeroElements(DType dtype, void* dst, int64_t at, int64_t n);
// Sets elements [at, at + n) to *value.
void FillElements(DType dtype, void* dst, int64_t at, int64_t n, const void* value);

// Product of dimensions [from, to).
int64_t DimProduct(const Shape& s, int from, int to);
// Dimensions [from, to).
std::vector<int64_t> DimsOf(const Shape& s, int from, int to);

// "name[1,0] = 7 is not in [0, 5)", where `at` is a flat position in a tensor of shape `shape`.
Status IndexOutOfRange(absl::string_view name, const Shape& shape, int64_t at, int64_t value, int64_t limit);
// InvalidArgument unless every element of the int32 or int64 tensor lies in [0, limit).
Status CheckIndices(absl::string_view name, const Tensor& indices, int64_t limit);
// The same for lists in which negative indices stand for "none".
Status CheckIndicesBelow(absl::string_view name, const Tensor& indices, int64_t limit);
// InvalidArgument unless t holds one element in a scalar; names it.
Status RequireScalar(absl::string_view name, const Tensor& t);
Status RequireVector(absl::string_view name, const Tensor& t);

// The elements of an int32 or int64 tensor as int64, without a copy where they are.
class WideIndices {
 public:
  static StatusOr<WideIndices> Make(KernelContext& ctx, const Tensor& indices);
  const int64_t* data() const { return tensor_.data<int64_t>(); }
  int64_t size() const { return tensor_.num_elements(); }

 private:
  Tensor tensor_;
};

// For indices [..., depth] into a tensor of shape `target`: the flat number of the slice that each names. Checks ranks
// and every coordinate.
StatusOr<Tensor> SliceNumbers(KernelContext& ctx, const Tensor& indices, const Shape& target);

// The arguments of a scatter by coordinates: indices [..., depth] (a vector counts as [n, 1]) and updates of shape
// indices.shape[:-1] + target.shape[depth:].
struct SliceUpdates {
  Tensor numbers;  // int64: the slice that each update goes to
  int64_t slices = 0, width = 0;
};
StatusOr<SliceUpdates> CheckSliceUpdates(KernelContext& ctx, const Tensor& indices, const Tensor& updates,
                                         const Shape& target);

}  // namespace millrace
