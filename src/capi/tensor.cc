// SPDX-License-Identifier: Apache-2.0
// TF_Tensor holds one Tensor. Memory of the caller is wrapped, not copied, when it is aligned well enough for every
// element type; kernels never write into it.
#include <cstring>

#include "capi/internal.h"
#include "tensor/memory_space.h"
#include "tensor/prepared.h"
#include "tensor/tensor_proto.h"

namespace millrace::capi {

StatusOr<Shape> MakeShape(const int64_t* dims, int num_dims) {
  MR_RETURN_IF_ERROR(CheckArray(dims, num_dims, "dimensions"));
  return Shape::Make(absl::Span<const int64_t>(dims, static_cast<size_t>(num_dims)));
}

StatusOr<PartialShape> MakePartialShape(const int64_t* dims, int num_dims) {
  if (num_dims == -1) return PartialShape::Unknown();
  MR_RETURN_IF_ERROR(CheckArray(dims, num_dims, "dimensions"));
  return PartialShape::Make(absl::Span<const int64_t>(dims, static_cast<size_t>(num_dims)));
}

namespace {

constexpr std::pair<TF_DataType, const char*> kTypesWithoutKernels[] = {
    {TF_FLOAT8_E5M2, "float8_e5m2"},
    {TF_FLOAT8_E4M3FN, "float8_e4m3fn"},
    {TF_FLOAT8_E4M3FNUZ, "float8_e4m3fnuz"},
    {TF_FLOAT8_E4M3B11FNUZ, "float8_e4m3b11fnuz"},
    {TF_FLOAT8_E5M2FNUZ, "float8_e5m2fnuz"},
    {TF_INT4, "int4"},
    {TF_UINT4, "uint4"},
    {TF_INT2, "int2"},
    {TF_UINT2, "uint2"},
    {TF_FLOAT4_E2M1FN, "float4_e2m1fn"}};

}  // namespace

StatusOr<DType> MakeDType(TF_DataType type) {
  if (auto dtype = DTypeFromNumber(static_cast<int32_t>(type))) return *dtype;
  for (const auto& [known, name] : kTypesWithoutKernels) {
    if (type == known) return Unimplemented("data type ", name, " is not provided");
  }
  return InvalidArgument("there is no data type ", static_cast<int>(type));
}

namespace {

// Memory that does not come from the library must be aligned to this to be used as it is.
constexpr uintptr_t kForeignAlignment = 16;

// Calls the caller's deallocator when it goes out of scope, unless the memory found another owner.
struct Handover {
  void* data;
  size_t size;
  void (*release)(void*, size_t, void*);
  void* arg;
  bool done = false;
  ~Handover() {
    if (!done && release != nullptr) release(data, size, arg);
  }
};

void KeepBytes(void*, size_t, void*) {}

StatusOr<Tensor> HandleFromBytes(const void* data, size_t size, const Shape& shape) {
  if (!shape.IsScalar()) return InvalidArgument("a resource tensor must be a scalar, got shape ", shape.ToString());
  wire::ResourceHandleProto proto;
  MR_RETURN_IF_ERROR(DecodeBytes(data, size, "ResourceHandleProto", &proto));
  MR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(DType::kResource, shape));
  ResourceHandle& handle = *tensor.mutable_data<ResourceHandle>();
  handle.device = std::move(proto.device);
  handle.container = std::move(proto.container);
  handle.name = std::move(proto.name);
  handle.type_name = std::move(proto.maybe_type_name);
  return tensor;
}

StatusOr<Tensor> AdoptMemory(TF_DataType type, const int64_t* dims, int num_dims, Handover& memory) {
  MR_ASSIGN_OR_RETURN(const DType dtype, MakeDType(type));
  MR_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, num_dims));
  if (dtype == DType::kResource) return HandleFromBytes(memory.data, memory.size, shape);
  if (dtype == DType::kVariant) return InvalidArgument("a variant tensor cannot be made of bytes");
  const size_t count = static_cast<size_t>(shape.num_elements());
  if (count > memory.size / DTypeSize(dtype)) {
    return InvalidArgument(memory.size, " bytes are too few for ", DTypeName(dtype), shape.ToString());
  }
  const size_t size = count * DTypeSize(dtype);
  if (size == 0) return Tensor::Make(dtype, shape);
  if (memory.data == nullptr) return NullArgument("data");
  const uintptr_t address = reinterpret_cast<uintptr_t>(memory.data);
  if (IsPlain(dtype) ? address % kForeignAlignment == 0 : address % alignof(TString) == 0) {
    RefPtr<Buffer> buffer = WrapBuffer(
        memory.data, memory.size, memory.release ? memory.release : KeepBytes, memory.arg, /*writable=*/false);
    memory.done = true;
    return Tensor::FromBuffer(dtype, shape, std::move(buffer));
  }
  if (!IsPlain(dtype)) return InvalidArgument("strings must be 8-byte aligned");
  MR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(dtype, shape));
  std::memcpy(tensor.mutable_raw(), memory.data, size);
  return tensor;
}

bool IsOpaque(const Tensor& t) { return t.dtype() == DType::kResource || t.dtype() == DType::kVariant; }

// True when a byte is neither 0 nor 1.
bool HasStrangeBool(const unsigned char* bytes, size_t size) {
  typedef uint64_t Words __attribute__((vector_size(16)));
  Words seen[4] = {};
  size_t i = 0;
  for (; i + sizeof(seen) <= size; i += sizeof(seen)) {
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; ++k) {
      Words here;
      std::memcpy(&here, bytes + i + k * sizeof(here), sizeof(here));
      seen[k] |= here;
    }
  }
  uint64_t all = 0;
  for (; i < size; ++i) all |= bytes[i];
  for (const Words& words : seen) all |= words[0] | words[1];
  return (all & 0xfefefefefefefefeu) != 0;
}

StatusOr<Tensor> NormalizedBools(const Tensor& t) {
  MR_ASSIGN_OR_RETURN(Tensor copy, Tensor::Make(DType::kBool, t.shape()));
  const auto* from = static_cast<const unsigned char*>(t.raw());
  auto* to = static_cast<unsigned char*>(copy.mutable_raw());
  for (size_t i = 0; i < t.TotalBytes(); ++i) to[i] = from[i] != 0;
  return copy;
}

}  // namespace

StatusOr<Tensor> FeedValue(const TF_Tensor* t) {
  if (IsEncoded(t)) return DecodeStrings(*t->encoded);
  const Tensor& tensor = t->tensor;
  MR_RETURN_IF_ERROR(CheckOnHost(tensor));
  if (t->strings_by_client && tensor.buffer() != nullptr) {
    MR_RETURN_IF_ERROR(CheckStrings(tensor.flat<TString>(), tensor.buffer()->data(), tensor.buffer()->size()));
  }
  if (tensor.dtype() == DType::kBool &&
      HasStrangeBool(static_cast<const unsigned char*>(tensor.raw()), tensor.TotalBytes())) {
    return NormalizedBools(tensor);
  }
  return tensor;
}

Status ReturnTensors(std::vector<Tensor>& fetched, TF_Tensor** values, int count) {
  if (fetched.size() != static_cast<size_t>(count)) {
    return Internal("the session returned ", fetched.size(), " values for ", count, " fetches");
  }
  for (int i = 0; i < count; ++i) {
    values[i] = new (std::nothrow) TF_Tensor{std::move(fetched[static_cast<size_t>(i)])};
    if (values[i] != nullptr) continue;
    for (int k = 0; k < i; ++k) {
      delete values[k];
      values[k] = nullptr;
    }
    return ResourceExhausted("out of memory");
  }
  return absl::OkStatus();
}

}  // namespace millrace::capi

using millrace::DType;
using millrace::Shape;
using millrace::Status;
using millrace::StatusOr;
using millrace::Tensor;
using millrace::capi::IsEncoded;
using millrace::capi::IsOpaque;
using millrace::capi::ShapeOfTensor;
using millrace::capi::Try;

extern "C" {

size_t TF_DataTypeSize(TF_DataType dt) {
  const auto dtype = millrace::DTypeFromNumber(static_cast<int32_t>(dt));
  return dtype && millrace::IsPlain(*dtype) ? millrace::DTypeSize(*dtype) : 0;
}

size_t TF_TensorDefaultAlignment(void) { return millrace::Allocator::kAlignment; }

TF_Tensor* TF_NewTensor(TF_DataType type, const int64_t* dims, int num_dims, void* data, size_t len,
                        void (*deallocator)(void* data, size_t len, void* arg), void* deallocator_arg) {
  millrace::capi::Handover memory{data, len, deallocator, deallocator_arg};
  return Try<TF_Tensor*>(nullptr, [&]() -> TF_Tensor* {
    StatusOr<Tensor> tensor = millrace::capi::AdoptMemory(type, dims, num_dims, memory);
    if (!tensor.ok()) return nullptr;
    const bool strings = tensor->dtype() == DType::kString;
    return new TF_Tensor{*std::move(tensor), nullptr, strings};
  });
}

TF_Tensor* TF_AllocateTensor(TF_DataType type, const int64_t* dims, int num_dims, size_t len) {
  return Try<TF_Tensor*>(nullptr, [&]() -> TF_Tensor* {
    const StatusOr<DType> dtype = millrace::capi::MakeDType(type);
    const StatusOr<Shape> shape = millrace::capi::MakeShape(dims, num_dims);
    if (!dtype.ok() || !shape.ok() || *dtype == DType::kResource || *dtype == DType::kVariant) return nullptr;
    if (static_cast<size_t>(shape->num_elements()) > len / millrace::DTypeSize(*dtype)) return nullptr;
    StatusOr<Tensor> tensor = Tensor::Make(*dtype, *shape);
    if (!tensor.ok()) return nullptr;
    if (tensor->buffer() != nullptr) millrace::SetLent(*tensor->buffer());
    return new TF_Tensor{*std::move(tensor), nullptr, *dtype == DType::kString};
  });
}

TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor) {
  if (tensor == nullptr) return nullptr;
  if (IsEncoded(tensor)) {
    const millrace::Buffer* bytes = tensor->encoded->bytes.get();
    if (bytes == nullptr || !bytes->writable() || !bytes->HasOneRef() || tensor->tensor.IsInitialized()) return nullptr;
  } else if (!tensor->tensor.OwnsBufferAlone()) {
    return nullptr;
  }
  auto* moved = new (std::nothrow) TF_Tensor{std::move(*tensor)};
  if (moved != nullptr) delete tensor;
  return moved;
}

void TF_DeleteTensor(TF_Tensor* tensor) { delete tensor; }

TF_DataType TF_TensorType(const TF_Tensor* tensor) {
  return static_cast<TF_DataType>(tensor ? millrace::capi::DTypeOfTensor(tensor) : DType::kInvalid);
}

void TF_SetShape(TF_Tensor* tensor, const int64_t* dims, int num_dims) {
  if (tensor == nullptr) return;
  Try(0, [&] {
    const StatusOr<Shape> shape = millrace::capi::MakeShape(dims, num_dims);
    if (!shape.ok() || shape->num_elements() != ShapeOfTensor(tensor).num_elements()) return 0;
    if (tensor->encoded) tensor->encoded->shape = *shape;
    if (!tensor->tensor.IsInitialized()) return 0;
    StatusOr<Tensor> reshaped = tensor->tensor.Reshaped(*shape);
    if (reshaped.ok()) tensor->tensor = *std::move(reshaped);
    return 0;
  });
}

int TF_NumDims(const TF_Tensor* tensor) { return tensor ? ShapeOfTensor(tensor).rank() : -1; }

int64_t TF_Dim(const TF_Tensor* tensor, int dim_index) {
  if (tensor == nullptr || dim_index < 0 || dim_index >= ShapeOfTensor(tensor).rank()) return -1;
  return ShapeOfTensor(tensor).dim(dim_index);
}

size_t TF_TensorByteSize(const TF_Tensor* tensor) {
  const Tensor* value = tensor ? millrace::capi::ForReader(*tensor) : nullptr;
  return value && !IsOpaque(*value) ? value->TotalBytes() : 0;
}

void* TF_TensorData(const TF_Tensor* tensor) {
  const Tensor* value = tensor ? millrace::capi::ForReader(*tensor) : nullptr;
  return value && !IsOpaque(*value) ? const_cast<void*>(value->raw()) : nullptr;
}

int64_t TF_TensorElementCount(const TF_Tensor* tensor) { return tensor ? ShapeOfTensor(tensor).num_elements() : 0; }

bool TF_TensorIsAligned(const TF_Tensor* tensor) {
  return tensor && reinterpret_cast<uintptr_t>(TF_TensorData(tensor)) % millrace::Allocator::kAlignment == 0;
}

void TF_TensorBitcastFrom(const TF_Tensor* from, TF_DataType type, TF_Tensor* to, const int64_t* new_dims,
                          int num_new_dims, TF_Status* status) {
  millrace::capi::Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(from);
    MR_CAPI_REQUIRE(to);
    MR_ASSIGN_OR_RETURN(const DType dtype, millrace::capi::MakeDType(type));
    MR_ASSIGN_OR_RETURN(const Shape shape, millrace::capi::MakeShape(new_dims, num_new_dims));
    MR_ASSIGN_OR_RETURN(const Tensor source, millrace::capi::FeedValue(from));
    to->encoded.reset();
    to->strings_by_client = from->strings_by_client;
    if (dtype == source.dtype()) {
      MR_ASSIGN_OR_RETURN(to->tensor, source.Reshaped(shape));
      return absl::OkStatus();
    }
    if (!millrace::IsPlain(dtype) || !millrace::IsPlain(source.dtype())) {
      return millrace::InvalidArgument(
          "cannot see ", millrace::DTypeName(source.dtype()), " as ", millrace::DTypeName(dtype));
    }
    // The shape says that its elements can be counted, not that its bytes can.
    const size_t element = millrace::DTypeSize(dtype);
    if (source.TotalBytes() % element != 0 ||
        source.TotalBytes() / element != static_cast<size_t>(shape.num_elements())) {
      return millrace::InvalidArgument(
          source.TotalBytes(), " bytes cannot be seen as ", millrace::DTypeName(dtype), shape.ToString());
    }
    if (source.buffer() == nullptr || source.TotalBytes() == 0) {
      MR_ASSIGN_OR_RETURN(to->tensor, Tensor::Make(dtype, shape));
      return absl::OkStatus();
    }
    const auto offset =
        static_cast<size_t>(static_cast<const char*>(source.raw()) - static_cast<const char*>(source.buffer()->data()));
    MR_ASSIGN_OR_RETURN(
        to->tensor,
        Tensor::FromBuffer(dtype, shape, millrace::RefPtr<millrace::Buffer>::Share(source.buffer()), offset));
    return absl::OkStatus();
  });
}

void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to, TF_Status* status) {
  millrace::capi::Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(from);
    MR_CAPI_REQUIRE(to);
    millrace::wire::TensorProto proto;
    MR_RETURN_IF_ERROR(millrace::capi::DecodeBytes(from->data, from->length, "TensorProto", &proto));
    MR_ASSIGN_OR_RETURN(to->tensor, millrace::TensorFromProto(proto));
    to->encoded.reset();
    to->strings_by_client = false;
    return absl::OkStatus();
  });
}

}  // extern "C"
