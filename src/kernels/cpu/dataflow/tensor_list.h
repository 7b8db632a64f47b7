// SPDX-License-Identifier: Apache-2.0
// TensorList: an immutable list of tensors as the value of a variant. An op that changes a list changes it in place
// when it is the only holder, so that a loop that appends costs the same every time round; else it makes a new one,
// which shares the elements.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernel/kernel_registry.h"
#include "kernels/cpu/engine/chunked_vector.h"

namespace millrace {

class TensorList final : public VariantValue {
 public:
  static constexpr int64_t kMaxSize = int64_t{1} << 24;
  static constexpr int kMaxDepth = 64;  // of lists in lists

  TensorList(DType dtype, PartialShape shape, int64_t max_size)
      : dtype_(dtype), shape_(std::move(shape)), max_size_(max_size) {}
  TensorList(const TensorList& o)
      : VariantValue(),
        dtype_(o.dtype_),
        shape_(o.shape_),
        max_size_(o.max_size_),
        depth_(o.depth_),
        items_(o.items_) {}

  std::string TypeName() const override { return "tensorflow::TensorList"; }
  std::string DebugString() const override;

  DType dtype() const { return dtype_; }
  const PartialShape& shape() const { return shape_; }  // of every element
  void set_shape(PartialShape shape) { shape_ = std::move(shape); }
  int64_t max_size() const { return max_size_; }  // negative: none
  int64_t size() const { return items_.size(); }
  // An element never set is uninitialised.
  const Tensor& operator[](int64_t i) const { return items_[i]; }

  // The first position from i on that may be set.
  int64_t NextInUse(int64_t i) const { return items_.NextInUse(i); }

  // InvalidArgument for another dtype or shape, too deep a nesting, or an index outside.
  Status CheckElement(const Tensor& value) const;
  Status PushBack(Tensor value);
  Status Set(int64_t i, Tensor value);
  Tensor PopBack() { return items_.PopBack(); }
  Status Resize(int64_t n);  // ResourceExhausted above kMaxSize
  Tensor* MutableItem(int64_t i) { return &items_.Mutable(i); }

 private:
  const DType dtype_;
  PartialShape shape_;
  const int64_t max_size_;
  int depth_ = 1;
  ChunkedVector<Tensor, 32> items_;
};

// Null when the variant holds something else.
const TensorList* ListIn(const Variant& v);
// The list in scalar input i; InvalidArgument otherwise.
StatusOr<const TensorList*> ListFromInput(const KernelContext& ctx, int i);
// The same, checked against the dtype that the node asks for.
StatusOr<const TensorList*> ListFromInput(const KernelContext& ctx, int i, DType dtype);
// The list of input i to be changed, as output o: itself when it dies here and nobody else holds it, else a copy.
StatusOr<TensorList*> TakeList(KernelContext& ctx, int i, int o);
Status OutputList(KernelContext& ctx, int o, RefPtr<TensorList> list);

// A vector of dimensions, of which negative ones are unknown, or a scalar -1 for unknown rank.
StatusOr<PartialShape> ElementShapeFrom(const Tensor& t);

// Elements by position, without copies; an uninitialised one is missing.
using ItemFn = absl::FunctionRef<const Tensor&(int64_t)>;
// Where they agree; InvalidArgument elsewhere.
StatusOr<PartialShape> MergeShapes(const PartialShape& a, const PartialShape& b);
// What the first n items and `shape` agree on; InvalidArgument when they do not, or, beginning with `unknown`, when it
// is not fully known.
StatusOr<Shape> CommonShape(int64_t n, ItemFn item, const PartialShape& shape, absl::string_view unknown);
StatusOr<Tensor> ZeroTensor(KernelContext& ctx, DType dtype, const Shape& shape);

// Zeros of the elements, and sums of elements; an empty variant is a zero.
StatusOr<Variant> ZerosLikeVariant(const Variant& v);
StatusOr<Variant> AddVariants(const Variant& a, const Variant& b);

void RegisterTensorListManyKernels(KernelRegistry& registry);
void RegisterTensorListArithmeticKernels(KernelRegistry& registry);

}  // namespace millrace
