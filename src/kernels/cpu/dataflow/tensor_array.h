// SPDX-License-Identifier: Apache-2.0
// TensorArray: tensors of one dtype by index, for one step. Every element is written once and read; what is read can be
// dropped with it, so that a loop over an array holds each element only as long as it is needed.
//
// The array of its gradients has the same size; there, writing an element again adds to it, and reading one that was
// never written gives zeros. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "kernels/cpu/engine/chunked_vector.h"
#include "kernels/cpu/engine/step_object.h"

namespace millrace {

class TensorArray final : public StepObject {
 public:
  static constexpr char kContainer[] = "_tensor_arrays";
  static constexpr int64_t kMaxSize = int64_t{1} << 24;

  struct Options {
    DType dtype = DType::kInvalid;
    PartialShape element_shape;
    bool identical_element_shapes = false;
    bool dynamic_size = false;
    bool clear_after_read = true;
  };
  // InvalidArgument for a negative size, ResourceExhausted above kMaxSize.
  static StatusOr<RefPtr<TensorArray>> Make(std::string name, Options options, int64_t size);

  DType dtype() const { return options_.dtype; }
  std::string DebugString() const override;
  void Close() override;

  StatusOr<int64_t> Size();
  // The size that all elements together have: of a gradient, that of the forward array when it was unpacked or split.
  StatusOr<int64_t> JoinedSize();
  // Makes room for writing indices below `size`, where the array may grow; answers the size then.
  StatusOr<int64_t> SizeForWrite(int64_t size, bool mark);
  // Adds what is known of the elements' shape.
  Status MergeElementShape(const PartialShape& shape);
  StatusOr<PartialShape> ElementShape();

  Status Write(int64_t index, const Tensor& value);
  Status WriteMany(absl::Span<const int64_t> indices, absl::Span<const Tensor> values);
  Status Read(int64_t index, Allocator& allocator, Tensor* value);
  Status ReadMany(absl::Span<const int64_t> indices, Allocator& allocator, std::vector<Tensor>* values);

  // The array of gradients that belongs to `source`; made, and added to the step, the first time. Its elements have
  // `prepend` before the shapes of ours. From here on this array does not grow.
  StatusOr<RefPtr<TensorArray>> Gradient(const std::string& source, const Shape& prepend, const StepContext& step);

 private:
  struct Element {
    Tensor value;
    Shape shape;  // of what was written, or of the zeros that take its place
    bool has_shape = false;
    bool written = false;
    bool read = false;
    bool cleared = false;
  };
  using Elements = ChunkedVector<Element, 16>;

  TensorArray(std::string name, Options options, int64_t size, bool is_gradient);

  Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status WriteLocked(int64_t index, const Tensor& value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status AddTo(Element& e, int64_t index, const Tensor& value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // `zeros` is kept from one element to the next.
  Status ReadLocked(int64_t index, Allocator& allocator, Tensor* zeros, Tensor* value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status MakeZeros(const Element& e, int64_t index, Allocator& allocator, Tensor* zeros)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status TakeShapesFrom(const Elements& from, const Shape& prepend);

  Options options_;  // element_shape and dynamic_size change, under mu_
  const bool is_gradient_;
  absl::Mutex mu_;
  Elements elements_ ABSL_GUARDED_BY(mu_);
  int64_t joined_size_ ABSL_GUARDED_BY(mu_) = -1;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool summed_ ABSL_GUARDED_BY(mu_) = false;  // an element was written twice
  std::vector<std::pair<std::string, RefPtr<TensorArray>>> gradients_ ABSL_GUARDED_BY(mu_);
};

// sum += value, in place when nobody else holds the buffer of `sum`. InvalidArgument when the shapes differ or the
// dtype cannot be added.
Status AddInPlace(Tensor* sum, const Tensor& value, Allocator& allocator);

// Rows: `values`, of equal dtype and row sizes, one after another into `out`, which has room for them.
void JoinInto(const KernelContext& ctx, absl::Span<const Tensor> values, Tensor* out);

}  // namespace millrace
