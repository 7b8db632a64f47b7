// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/dataflow/tensor_array.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/elementwise/elementwise_in_place.h"
#include "kernels/cpu/engine/strided_copy.h"

namespace millrace {

TensorArray::TensorArray(std::string name, Options options, int64_t size, bool is_gradient)
    : StepObject(std::move(name)), options_(std::move(options)), is_gradient_(is_gradient) {
  elements_.Resize(size);
}

StatusOr<RefPtr<TensorArray>> TensorArray::Make(std::string name, Options options, int64_t size) {
  if (size < 0) return InvalidArgument("Size should be >= 0, got ", size);
  if (size > kMaxSize) return ResourceExhausted("a TensorArray of ", size, " elements; the limit is ", kMaxSize);
  return RefPtr<TensorArray>::Adopt(new TensorArray(std::move(name), std::move(options), size, false));
}

std::string TensorArray::DebugString() const { return absl::StrCat("TensorArray[", name(), "]"); }

void TensorArray::Close() {
  Elements elements;  // freed outside the lock
  decltype(gradients_) gradients;
  absl::MutexLock lock(&mu_);
  closed_ = true;
  std::swap(elements, elements_);
  std::swap(gradients, gradients_);
}

Status TensorArray::CheckOpen() const {
  if (closed_) return InvalidArgument("TensorArray ", name(), " has already been closed.");
  return absl::OkStatus();
}

StatusOr<int64_t> TensorArray::Size() {
  absl::MutexLock lock(&mu_);
  MR_RETURN_IF_ERROR(CheckOpen());
  return elements_.size();
}

StatusOr<int64_t> TensorArray::JoinedSize() {
  absl::MutexLock lock(&mu_);
  MR_RETURN_IF_ERROR(CheckOpen());
  return is_gradient_ && joined_size_ >= 0 ? joined_size_ : elements_.size();
}

StatusOr<int64_t> TensorArray::SizeForWrite(int64_t size, bool mark) {
  absl::MutexLock lock(&mu_);
  MR_RETURN_IF_ERROR(CheckOpen());
  int64_t now = elements_.size();
  if (options_.dynamic_size) now = std::max(now, size);
  if (now > kMaxSize) return ResourceExhausted("TensorArray ", name(), " is limited to ", kMaxSize, " elements");
  if (mark && !is_gradient_) joined_size_ = now;  // a gradient is joined as what it is the gradient of was split
  return now;
}

Status TensorArray::MergeElementShape(const PartialShape& shape) {
  absl::MutexLock lock(&mu_);
  auto merged = options_.element_shape.Merge(shape);
  if (!merged.ok()) {
    return InvalidArgument("TensorArray ", name(), " has elements of shape ", options_.element_shape.ToString(),
                           ", but the node wants ", shape.ToString());
  }
  options_.element_shape = *std::move(merged);
  return absl::OkStatus();
}

StatusOr<PartialShape> TensorArray::ElementShape() {
  absl::MutexLock lock(&mu_);
  MR_RETURN_IF_ERROR(CheckOpen());
  return options_.element_shape;
}

Status TensorArray::Write(int64_t index, const Tensor& value) {
  absl::MutexLock lock(&mu_);
  MR_RETURN_IF_ERROR(CheckOpen());
  return WriteLocked(index, value);
}

Status TensorArray::WriteMany(absl::Span<const int64_t> indices, absl::Span<const Tensor> values) {
  absl::MutexLock lock(&mu_);
  MR_RETURN_IF_ERROR(CheckOpen());
  for (size_t i = 0; i < indices.size(); ++i) MR_RETURN_IF_ERROR(WriteLocked(indices[i], values[i]));
  return absl::OkStatus();
}

Status TensorArray::WriteLocked(int64_t index, const Tensor& value) {
  if (value.dtype() != options_.dtype) {
    return InvalidArgument(
        "TensorArray ", name(), ": Could not write to TensorArray index ", index, ": TensorArray dtype is ",
        DTypeName(options_.dtype), " but Op is trying to write dtype ", DTypeName(value.dtype()), ".");
  }
  if (index < 0 || (!options_.dynamic_size && index >= elements_.size())) {
    return InvalidArgument("TensorArray ", name(), ": Tried to write to index ", index,
                           " but array is not resizeable and size is: ", elements_.size());
  }
  if (!options_.element_shape.IsCompatibleWith(value.shape())) {
    return InvalidArgument(
        "TensorArray ", name(), ": Could not write to TensorArray index ", index, " because the value shape is ",
        value.shape().ToString(),
        " which is incompatible with the TensorArray's inferred element shape: ", options_.element_shape.ToString(),
        " (consider setting infer_shape=False).");
  }
  if (index >= elements_.size()) {
    if (index >= kMaxSize) return ResourceExhausted("TensorArray ", name(), " is limited to ", kMaxSize, " elements");
    elements_.Resize(index + 1);
  }
  Element& e = elements_.Mutable(index);
  if (e.read) {
    return InvalidArgument(
        "TensorArray ", name(), ": Could not write to TensorArray index ", index, " because it has already been read.");
  }
  if (e.written && !is_gradient_) {
    return InvalidArgument("TensorArray ", name(), ": Could not write to TensorArray index ", index,
                           " because it has already been written to.");
  }
  if (options_.identical_element_shapes && !options_.element_shape.IsFullyDefined()) {
    options_.element_shape = PartialShape(value.shape());
  }
  if (e.written) return AddTo(e, index, value);
  e.value = value;
  e.shape = value.shape();
  e.has_shape = e.written = true;
  return absl::OkStatus();
}

Status TensorArray::AddTo(Element& e, int64_t index, const Tensor& value) {
  summed_ = true;
  if (!(e.value.shape() == value.shape())) {
    return InvalidArgument(
        "TensorArray ", name(), ": Could not aggregate to TensorArray index ", index, " because the existing shape is ",
        e.value.shape().ToString(), " but the new input shape is ", value.shape().ToString(), ".");
  }
  return AddInPlace(&e.value, value, HostAllocator());
}

Status TensorArray::Read(int64_t index, Allocator& allocator, Tensor* value) {
  absl::MutexLock lock(&mu_);
  MR_RETURN_IF_ERROR(CheckOpen());
  Tensor zeros;
  return ReadLocked(index, allocator, &zeros, value);
}

Status TensorArray::ReadMany(absl::Span<const int64_t> indices, Allocator& allocator, std::vector<Tensor>* values) {
  values->clear();
  values->resize(indices.size());
  Tensor zeros;
  absl::MutexLock lock(&mu_);
  MR_RETURN_IF_ERROR(CheckOpen());
  for (size_t i = 0; i < indices.size(); ++i) {
    MR_RETURN_IF_ERROR(ReadLocked(indices[i], allocator, &zeros, &(*values)[i]));
  }
  return absl::OkStatus();
}

Status TensorArray::ReadLocked(int64_t index, Allocator& allocator, Tensor* zeros, Tensor* value) {
  if (index < 0 || index >= elements_.size()) {
    return InvalidArgument(
        "TensorArray ", name(), ": Tried to read from index ", index, " but array size is: ", elements_.size());
  }
  if (elements_[index].cleared) {
    return InvalidArgument(
        "TensorArray ", name(), ": Could not read index ", index,
        " twice because it was cleared after a previous read (perhaps try setting "
        "clear_after_read = false?).");
  }
  Element& e = elements_.Mutable(index);
  if (!e.written) {
    MR_RETURN_IF_ERROR(MakeZeros(e, index, allocator, zeros));
    e.value = *zeros;
    e.shape = zeros->shape();
    e.has_shape = e.written = true;
  }
  e.read = true;
  if (options_.clear_after_read) {
    e.cleared = true;
    *value = std::move(e.value);
    e.value = Tensor();
  } else {
    *value = e.value;
  }
  return absl::OkStatus();
}

Status TensorArray::MakeZeros(const Element& e, int64_t index, Allocator& allocator, Tensor* zeros) {
  if (options_.dtype == DType::kString) {
    return InvalidArgument("TensorArray ", name(), ": index ", index, " was never written, and strings have no zero");
  }
  Shape shape = e.shape;
  if (!e.has_shape) {
    if (!options_.element_shape.IsFullyDefined()) {
      return InvalidArgument(
          "TensorArray ", name(), ": Could not read from TensorArray index ", index,
          ".  Furthermore, the element shape is not fully defined: ", options_.element_shape.ToString(),
          ".  It is possible you are working with a resizeable TensorArray and stop_gradients is not "
          "allowing the gradients to be written.  If you set the full element_shape property on the "
          "forward TensorArray, the proper all-zeros tensor will be returned instead of incurring "
          "this error.");
    }
    MR_ASSIGN_OR_RETURN(shape, options_.element_shape.ToShape());
  }
  if (zeros->IsInitialized() && zeros->shape() == shape) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(*zeros, Tensor::Make(options_.dtype, shape, allocator));
  if (IsPlain(options_.dtype) && zeros->TotalBytes() > 0) std::memset(zeros->mutable_raw(), 0, zeros->TotalBytes());
  return absl::OkStatus();
}

StatusOr<RefPtr<TensorArray>> TensorArray::Gradient(const std::string& source, const Shape& prepend,
                                                    const StepContext& step) {
  absl::MutexLock lock(&mu_);
  MR_RETURN_IF_ERROR(CheckOpen());
  options_.dynamic_size = false;
  if (summed_) {
    return InvalidArgument(
        "Unable to create a gradients TensorArray for ", name(),
        ": several writes to one element were added up, and the gradients of each cannot be told "
        "apart.");
  }
  for (const auto& [known, array] : gradients_) {
    if (known == source) return array;
  }
  Options options = options_;
  options.clear_after_read = true;
  if (prepend.rank() > 0 && options.element_shape.has_rank()) {
    std::vector<int64_t> dims(prepend.dims().begin(), prepend.dims().end());
    dims.insert(dims.end(), options.element_shape.dims().begin(), options.element_shape.dims().end());
    MR_ASSIGN_OR_RETURN(options.element_shape, PartialShape::Make(dims));
  }
  auto array = RefPtr<TensorArray>::Adopt(
      new TensorArray(absl::StrCat(name(), "@", source), std::move(options), elements_.size(), true));
  {
    absl::MutexLock its_lock(&array->mu_);
    array->joined_size_ = joined_size_;
  }
  MR_RETURN_IF_ERROR(array->TakeShapesFrom(elements_, prepend));
  MR_RETURN_IF_ERROR(AddToStep(step, kContainer, array));
  gradients_.emplace_back(source, array);
  return array;
}

Status TensorArray::TakeShapesFrom(const Elements& from, const Shape& prepend) {
  absl::MutexLock lock(&mu_);
  for (int64_t i = 0; i < from.size(); ++i) {
    if (!from[i].has_shape) continue;
    Element& e = elements_.Mutable(i);
    e.has_shape = true;
    if (prepend.rank() == 0) {
      e.shape = from[i].shape;
    } else {
      MR_ASSIGN_OR_RETURN(e.shape, prepend.Concatenate(from[i].shape));
    }
  }
  return absl::OkStatus();
}

Status AddInPlace(Tensor* sum, const Tensor& value, Allocator& allocator) {
  if (!(sum->shape() == value.shape()) || sum->dtype() != value.dtype()) {
    return InvalidArgument("cannot add ", DTypeName(value.dtype()), value.shape().ToString(), " to ",
                           DTypeName(sum->dtype()), sum->shape().ToString());
  }
  const InPlaceOp add("Add", sum->dtype());
  if (!add) return InvalidArgument("values of ", DTypeName(sum->dtype()), " cannot be added");
  if (!sum->OwnsBufferAlone()) {
    MR_ASSIGN_OR_RETURN(*sum, sum->Clone(allocator));
  }
  if (value.num_elements() > 0) add(sum->mutable_raw(), value.raw(), value.num_elements());
  return absl::OkStatus();
}

void JoinInto(const KernelContext& ctx, absl::Span<const Tensor> values, Tensor* out) {
  if (out->num_elements() == 0) return;
  std::vector<int64_t> starts(values.size());
  int64_t at = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    starts[i] = at;
    at += values[i].num_elements();
  }
  const DType dtype = out->dtype();
  const RunFn copy = RunFunctions(dtype).copy;
  const double bytes = static_cast<double>(out->TotalBytes()) / static_cast<double>(values.size());
  ctx.ParallelFor(static_cast<int64_t>(values.size()), 10 + bytes / 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Tensor& v = values[static_cast<size_t>(i)];
      if (v.num_elements() == 0) continue;
      copy(ElementAt(out->mutable_raw(), dtype, starts[static_cast<size_t>(i)]), v.raw(), v.num_elements());
    }
  });
}

}  // namespace millrace
