// SPDX-License-Identifier: Apache-2.0
// Tensor: a dtype, a shape and a share of a buffer. Copies share the buffer; nobody writes into a buffer that others
// hold, so a Tensor behaves as a value. Row-major, contiguous.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "base/ref_counted.h"
#include "base/status.h"
#include "tensor/allocator.h"
#include "tensor/dtype.h"
#include "tensor/handles.h"
#include "tensor/shape.h"
#include "tensor/tstring.h"

namespace millrace {

class Tensor {
 public:
  Tensor() = default;  // uninitialised: dtype kInvalid

  // New memory; plain elements are not initialised, strings, resources and variants are empty.
  static StatusOr<Tensor> Make(DType dtype, const Shape& shape, Allocator& allocator = HostAllocator());
  static Status MakeIn(Tensor* out, DType dtype, const Shape& shape, Allocator& allocator);  // the same
  static StatusOr<Tensor> Zeros(DType dtype, const Shape& shape);
  // `buffer` must hold num_elements * DTypeSize bytes from `offset` on (checked).
  static StatusOr<Tensor> FromBuffer(DType dtype, const Shape& shape, RefPtr<Buffer> buffer, size_t offset = 0);
  template <typename T>
  static Tensor Scalar(const T& v);  // small allocations only; an exhausted host gives an uninitialised tensor
  template <typename T>
  static Tensor Vector(absl::Span<const T> v);
  template <typename T>
  static Tensor Vector(std::initializer_list<T> v) {
    return Vector(absl::Span<const T>(v.begin(), v.size()));
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_.dim(i); }
  int64_t num_elements() const { return shape_.num_elements(); }
  size_t TotalBytes() const { return static_cast<size_t>(num_elements()) * DTypeSize(dtype_); }
  bool IsInitialized() const { return dtype_ != DType::kInvalid; }

  const void* raw() const { return data_; }
  void* mutable_raw() { return data_; }
  // The caller knows the dtype: the framework has checked it against the op's declaration.
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(data_);
  }
  template <typename T>
  T* mutable_data() {
    return static_cast<T*>(data_);
  }
  template <typename T>
  absl::Span<const T> flat() const {
    return absl::Span<const T>(data<T>(), static_cast<size_t>(num_elements()));
  }
  template <typename T>
  absl::Span<T> mutable_flat() {
    return absl::Span<T>(mutable_data<T>(), static_cast<size_t>(num_elements()));
  }

  // The value of a one-element tensor of this dtype; InvalidArgument otherwise.
  template <typename T>
  StatusOr<T> ScalarValue() const;
  // Integer contents of an int32 or int64 tensor of any shape, widened.
  StatusOr<std::vector<int64_t>> IntValues() const;
  StatusOr<int64_t> IntScalar() const;  // int32 or int64, one element

  // Same buffer seen with another shape of as many elements.
  StatusOr<Tensor> Reshaped(const Shape& shape) const;
  // Rows [begin, end) of dimension 0, sharing the buffer. May be unaligned: kernels must not assume 64 bytes here.
  StatusOr<Tensor> Rows(int64_t begin, int64_t end) const;
  // Deep copy into fresh memory.
  StatusOr<Tensor> Clone(Allocator& allocator = HostAllocator()) const;

  Buffer* buffer() const { return buffer_.get(); }
  // True when this is the only holder of its buffer and kernels may reuse it in place.
  bool OwnsBufferAlone() const { return buffer_ && buffer_->writable() && buffer_->HasOneRef(); }
  bool SharesBufferWith(const Tensor& o) const { return buffer_ && buffer_ == o.buffer_; }

  std::string DebugString(int max_values = 8) const;  // "float[2,2] 1 2 3 4"

 private:
  static Status MakeAny(Tensor* out, DType dtype, const Shape& shape, Allocator& allocator);
  friend class TensorAccess;  // executor fast paths
  DType dtype_ = DType::kInvalid;
  Shape shape_;
  RefPtr<Buffer> buffer_;
  void* data_ = nullptr;
};

// Error text "expected one int32, got float[2]".
Status NotOneElement(DType want, const Tensor& got);

template <typename T>
StatusOr<T> Tensor::ScalarValue() const {
  if (dtype_ != DTypeOf<T>::value || num_elements() != 1) return NotOneElement(DTypeOf<T>::value, *this);
  return *data<T>();
}
template <typename T>
Tensor Tensor::Scalar(const T& v) {
  auto t = Make(DTypeOf<T>::value, Shape());
  if (!t.ok()) return Tensor();
  *t->template mutable_data<T>() = v;
  return *std::move(t);
}
template <typename T>
Tensor Tensor::Vector(absl::Span<const T> v) {
  auto t = Make(DTypeOf<T>::value, Shape::Vector(static_cast<int64_t>(v.size())));
  if (!t.ok()) return Tensor();
  for (size_t i = 0; i < v.size(); ++i) t->template mutable_data<T>()[i] = v[i];
  return *std::move(t);
}

}  // namespace millrace
