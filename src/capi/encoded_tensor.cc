// SPDX-License-Identifier: Apache-2.0
// Tensors for programs linked to libtensorflow.so.1: their strings are in the form of 1.x, made when they are asked
// for.
#include "absl/synchronization/mutex.h"
#include "capi/entry_points.h"
#include "capi/internal.h"

namespace millrace::capi {
namespace {

// Guards what readers of a constant TF_Tensor add to it: another form of its strings.
absl::Mutex& FormsMutex() {
  static absl::Mutex& mu = *new absl::Mutex();
  return mu;
}

// Null for other elements than strings, and when memory runs out.
const EncodedStrings* ForOldReader(const TF_Tensor* t) {
  if (t == nullptr || DTypeOfTensor(t) != DType::kString) return nullptr;
  if (IsEncoded(t)) return t->encoded.get();
  return Try<const EncodedStrings*>(nullptr, [&]() -> const EncodedStrings* {
    const absl::MutexLock lock(&FormsMutex());
    if (t->encoded) return t->encoded.get();
    StatusOr<Tensor> value = FeedValue(t);
    if (!value.ok()) return nullptr;
    StatusOr<RefPtr<EncodedStrings>> made = EncodeStrings(*value);
    if (!made.ok()) return nullptr;
    const_cast<TF_Tensor*>(t)->encoded = *std::move(made);
    return t->encoded.get();
  });
}

bool IsString(const TF_Tensor* t) { return t != nullptr && DTypeOfTensor(t) == DType::kString; }

StatusOr<TF_Tensor*> MakeEncoded(const int64_t* dims, int num_dims, RefPtr<Buffer> bytes, size_t size) {
  RefPtr<EncodedStrings> encoded = MakeRef<EncodedStrings>();
  MR_ASSIGN_OR_RETURN(encoded->shape, MakeShape(dims, num_dims));
  encoded->bytes = std::move(bytes);
  encoded->size = size;
  encoded->is_source = true;
  return new TF_Tensor{Tensor(), std::move(encoded)};
}

void KeepBytes(void*, size_t, void*) {}

}  // namespace

const Tensor* ForReader(const TF_Tensor& t) {
  if (!IsEncoded(&t)) return &t.tensor;
  return Try<const Tensor*>(nullptr, [&]() -> const Tensor* {
    const absl::MutexLock lock(&FormsMutex());
    if (t.tensor.IsInitialized()) return &t.tensor;
    StatusOr<Tensor> decoded = DecodeStrings(*t.encoded);
    if (!decoded.ok()) return nullptr;
    const_cast<TF_Tensor&>(t).tensor = *std::move(decoded);
    return &t.tensor;
  });
}

}  // namespace millrace::capi

using millrace::capi::EncodedStrings;
using millrace::capi::ForOldReader;
using millrace::capi::IsString;
using millrace::capi::Try;

const char* MR_OldVersion() { return "1.15.5"; }

TF_Tensor* MR_OldNewTensor(TF_DataType type, const int64_t* dims, int num_dims, void* data, size_t len,
                           void (*deallocator)(void* data, size_t len, void* arg), void* deallocator_arg) {
  if (type != TF_STRING) return TF_NewTensor(type, dims, num_dims, data, len, deallocator, deallocator_arg);
  TF_Tensor* made = nullptr;
  bool handed_over = false;
  if (data != nullptr || len == 0) {
    made = Try<TF_Tensor*>(nullptr, [&]() -> TF_Tensor* {
      if (!millrace::capi::MakeShape(dims, num_dims).ok()) return nullptr;
      millrace::RefPtr<millrace::Buffer> bytes = millrace::WrapBuffer(
          data, len, deallocator ? deallocator : millrace::capi::KeepBytes, deallocator_arg, /*writable=*/false);
      handed_over = true;
      return millrace::capi::MakeEncoded(dims, num_dims, std::move(bytes), len).value_or(nullptr);
    });
  }
  if (!handed_over && deallocator != nullptr) deallocator(data, len, deallocator_arg);
  return made;
}

TF_Tensor* MR_OldAllocateTensor(TF_DataType type, const int64_t* dims, int num_dims, size_t len) {
  if (type != TF_STRING) return TF_AllocateTensor(type, dims, num_dims, len);
  return Try<TF_Tensor*>(nullptr, [&]() -> TF_Tensor* {
    auto bytes = millrace::AllocateBuffer(millrace::HostAllocator(), len > 0 ? len : 1);
    if (!bytes.ok()) return nullptr;
    return millrace::capi::MakeEncoded(dims, num_dims, *std::move(bytes), len).value_or(nullptr);
  });
}

void* MR_OldTensorData(const TF_Tensor* tensor) {
  if (!IsString(tensor)) return TF_TensorData(tensor);
  const EncodedStrings* strings = ForOldReader(tensor);
  return strings ? const_cast<char*>(strings->data()) : nullptr;
}

size_t MR_OldTensorByteSize(const TF_Tensor* tensor) {
  if (!IsString(tensor)) return TF_TensorByteSize(tensor);
  const EncodedStrings* strings = ForOldReader(tensor);
  return strings ? strings->size : 0;
}

bool MR_OldTensorIsAligned(const TF_Tensor* tensor) {
  return tensor && reinterpret_cast<uintptr_t>(MR_OldTensorData(tensor)) % millrace::Allocator::kAlignment == 0;
}
