// SPDX-License-Identifier: Apache-2.0
// What kernels on stacks of matrices share: the last two axes are the matrices, which are independent work; a single
// one uses the threads inside its products.
#pragma once

#include <atomic>
#include <type_traits>

#include "absl/synchronization/mutex.h"
#include "kernel/kernel.h"
#include "tensor/allocator.h"

namespace millrace {

inline Status CheckMatrices(const Tensor& t) {
  if (t.rank() >= 2) return absl::OkStatus();
  return InvalidArgument("Input tensor must have rank >= 2, got shape ", t.shape().ToString());
}

inline Status CheckSquare(const Tensor& t) {
  MR_RETURN_IF_ERROR(CheckMatrices(t));
  if (t.dim(t.rank() - 1) != t.dim(t.rank() - 2)) {
    return InvalidArgument("Input matrix must be square, got shape ", t.shape().ToString());
  }
  return absl::OkStatus();
}

// fn(matrix number, context to use inside) for each of `count` matrices of about n x n.
template <typename Fn>
void ForEachMatrix(const KernelContext& ctx, int64_t count, int64_t n, Fn fn) {
  if (count == 1) return fn(int64_t{0}, &ctx);
  const double cost = 50 + 0.5 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  ctx.ParallelFor(count, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(i, static_cast<const KernelContext*>(nullptr));
  });
}

// The same for fn that may fail; the first failure ends the rest.
template <typename Fn>
Status TryEachMatrix(const KernelContext& ctx, int64_t count, int64_t n, Fn fn) {
  absl::Mutex mu;
  Status first;
  std::atomic<bool> failed = false;
  ForEachMatrix(ctx, count, n, [&](int64_t i, const KernelContext* inner) {
    if (failed) return;
    Status s = fn(i, inner);
    if (s.ok()) return;
    absl::MutexLock lock(&mu);
    if (first.ok()) first = std::move(s);
    failed = true;
  });
  return first;
}

// The element type of a kernel made for `dtype`, as fn(T()).
template <typename Fn>
Status WithMatrixType(DType dtype, Fn fn) {
  switch (dtype) {
    case DType::kFloat: return fn(float());
    case DType::kDouble: return fn(double());
    case DType::kComplex64: return fn(complex64());
    case DType::kComplex128: return fn(complex128());
    default: return Unimplemented("no factorisation of ", DTypeName(dtype));
  }
}

// Memory for the work on one matrix: one allocation, handed out in zeroed pieces.
class Workspace {
 public:
  template <typename T>
  void Plan(int64_t n) {
    bytes_ += Padded(static_cast<size_t>(n) * sizeof(T));
  }
  Status Allocate() {
    MR_ASSIGN_OR_RETURN(buffer_, AllocateBuffer(HostAllocator(), bytes_));
    return absl::OkStatus();
  }
  // No more than was planned.
  template <typename T>
  T* Take(int64_t n) {
    char* at = static_cast<char*>(buffer_->data()) + taken_;
    taken_ += Padded(static_cast<size_t>(n) * sizeof(T));
    T* p = reinterpret_cast<T*>(at);
    for (int64_t i = 0; i < n; ++i) p[i] = T();
    return p;
  }

 private:
  static size_t Padded(size_t bytes) { return (bytes + 63) / 64 * 64; }
  size_t bytes_ = 0, taken_ = 0;
  RefPtr<Buffer> buffer_;
};

}  // namespace millrace
