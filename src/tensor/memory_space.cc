// SPDX-License-Identifier: Apache-2.0
#include "tensor/memory_space.h"

#include <typeinfo>
#include <utility>

#include "base/checked.h"

namespace millrace {
namespace {

class RemoteBuffer final : public Buffer {
 public:
  explicit RemoteBuffer(MemorySpace& space) : Buffer(nullptr, 0, true), space_(space) {}
  MemorySpace& space() const { return space_; }
  // Once. False: there is no room.
  bool Allocate(size_t size) {
    data_ = space_.Allocate(size);
    size_ = data_ != nullptr ? size : 0;
    return data_ != nullptr;
  }

 private:
  ~RemoteBuffer() override {
    if (data_ != nullptr) space_.Deallocate(data_, size_);
  }

  MemorySpace& space_;
};

}  // namespace

MemorySpace* SpaceOf(const Tensor& t) {
  const Buffer* const buffer = t.buffer();
  if (buffer == nullptr || typeid(*buffer) != typeid(RemoteBuffer)) return nullptr;
  return &static_cast<const RemoteBuffer*>(buffer)->space();
}

Status CheckOnHost(const Tensor& t) {
  const MemorySpace* const space = SpaceOf(t);
  if (space == nullptr) return absl::OkStatus();
  return FailedPrecondition("the bytes of a tensor ", DTypeName(t.dtype()), t.shape().ToString(),
                            " lie in the memory of ", space->name(), ", which the host cannot read");
}

StatusOr<Tensor> MakeTensorIn(MemorySpace& space, DType dtype, const Shape& shape) {
  if (!IsPlain(dtype)) return InvalidArgument("a tensor ", DTypeName(dtype), " in the memory of ", space.name());
  size_t bytes;
  if (!CheckedMul(static_cast<size_t>(shape.num_elements()), DTypeSize(dtype), &bytes)) {
    return InvalidArgument("a tensor ", DTypeName(dtype), shape.ToString(), " is larger than memory can be");
  }
  RefPtr<RemoteBuffer> buffer = MakeRef<RemoteBuffer>(space);  // first: it has the memory as soon as there is any
  if (bytes > 0 && !buffer->Allocate(bytes)) {
    const AllocatorStats stats = space.Stats();
    return ResourceExhausted(
        "a tensor ", DTypeName(dtype), shape.ToString(), ": OOM, ", space.name(), " cannot allocate ", bytes,
        " bytes (", stats.bytes_in_use, " in use, limit ", stats.bytes_limit, ")");
  }
  return Tensor::FromBuffer(dtype, shape, RefPtr<Buffer>(std::move(buffer)));
}

}  // namespace millrace
