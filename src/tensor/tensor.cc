// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "absl/strings/escaping.h"
#include "base/checked.h"
#include "tensor/memory_space.h"

namespace millrace {
namespace {

// Elements that are C++ objects, in memory of an allocator: they live as long as the buffer.
template <typename T>
class ElementBuffer final : public Buffer {
 public:
  ElementBuffer(RefPtr<Buffer> memory, size_t count)
      : Buffer(memory->data(), memory->size(), true), memory_(std::move(memory)), count_(count) {
    std::uninitialized_value_construct_n(elements(), count_);
  }

 private:
  ~ElementBuffer() override { std::destroy_n(elements(), count_); }
  T* elements() { return static_cast<T*>(data_); }

  const RefPtr<Buffer> memory_;
  const size_t count_;
};

template <typename T>
RefPtr<Buffer> WithElements(RefPtr<Buffer> memory, size_t count) {
  return RefPtr<Buffer>(MakeRef<ElementBuffer<T>>(std::move(memory), count));
}

template <typename T>
void CopyElements(const Tensor& from, Tensor* to) {
  std::copy_n(from.data<T>(), from.num_elements(), to->mutable_data<T>());
}

Status CheckBytes(DType dtype, const Shape& shape, size_t* bytes) {
  const size_t size = DTypeSize(dtype);
  if (size == 0 || IsRef(dtype)) return InvalidArgument("no tensor can have dtype ", DTypeName(dtype));
  if (!CheckedMul(static_cast<size_t>(shape.num_elements()), size, bytes)) {
    return InvalidArgument("a tensor ", DTypeName(dtype), shape.ToString(), " is larger than memory can be");
  }
  return absl::OkStatus();
}

// Element sizes of the plain types by number, 0 elsewhere; and a number of elements that is too small to overflow.
constexpr std::array<uint8_t, 24> kPlainSizes = [] {
  std::array<uint8_t, 24> sizes{};
  auto set = [&sizes](uint8_t size, std::initializer_list<DType> types) {
    for (DType t : types) sizes[static_cast<size_t>(t)] = size;
  };
  set(1, {DType::kBool, DType::kInt8, DType::kUInt8, DType::kQInt8, DType::kQUInt8});
  set(2, {DType::kHalf, DType::kBFloat16, DType::kInt16, DType::kUInt16, DType::kQInt16, DType::kQUInt16});
  set(4, {DType::kFloat, DType::kInt32, DType::kUInt32, DType::kQInt32});
  set(8, {DType::kDouble, DType::kInt64, DType::kUInt64, DType::kComplex64});
  set(16, {DType::kComplex128});
  return sizes;
}();
constexpr int64_t kFew = 1 << 20;

// A view starts where its elements may: kernels read them with ordinary loads.
size_t AlignmentOf(DType dtype) { return IsPlain(dtype) ? std::min(DTypeSize(dtype), sizeof(double)) : alignof(void*); }

// What is in a device's memory is cloned there.
StatusOr<Tensor> CloneIn(MemorySpace& space, const Tensor& t) {
  MR_ASSIGN_OR_RETURN(Tensor copy, MakeTensorIn(space, t.dtype(), t.shape()));
  if (t.TotalBytes() > 0) MR_RETURN_IF_ERROR(space.CopyWithin(t.raw(), copy.mutable_raw(), t.TotalBytes()));
  return copy;
}

template <typename T>
void AppendNumbers(const Tensor& t, int64_t count, std::string* out) {
  for (int64_t i = 0; i < count; ++i) absl::StrAppend(out, " ", +t.data<T>()[i]);
}
template <typename T>
void AppendFloats(const Tensor& t, int64_t count, std::string* out) {
  for (int64_t i = 0; i < count; ++i) absl::StrAppend(out, " ", static_cast<float>(t.data<T>()[i]));
}
template <typename T>
void AppendComplex(const Tensor& t, int64_t count, std::string* out) {
  for (int64_t i = 0; i < count; ++i) {
    const T& v = t.data<T>()[i];
    absl::StrAppend(out, " (", v.real(), ",", v.imag(), ")");
  }
}
void AppendStrings(const Tensor& t, int64_t count, std::string* out) {
  constexpr size_t kShown = 64;
  for (int64_t i = 0; i < count; ++i) {
    const absl::string_view s = t.data<TString>()[i].view();
    absl::StrAppend(out, " \"", absl::CHexEscape(s.substr(0, kShown)), s.size() > kShown ? "...\"" : "\"");
  }
}
void AppendHandles(const Tensor& t, int64_t count, std::string* out) {
  for (int64_t i = 0; i < count; ++i) {
    const ResourceHandle& h = t.data<ResourceHandle>()[i];
    absl::StrAppend(out, " <", h.type_name, " ", h.container, "/", h.name, " on ", h.device, ">");
  }
}
void AppendVariants(const Tensor& t, int64_t count, std::string* out) {
  for (int64_t i = 0; i < count; ++i) {
    const VariantValue* const v = t.data<Variant>()[i].get();
    absl::StrAppend(out, " <", v ? v->DebugString() : "empty", ">");
  }
}

void AppendValues(const Tensor& t, int64_t count, std::string* out) {
  switch (t.dtype()) {
    case DType::kFloat: return AppendNumbers<float>(t, count, out);
    case DType::kDouble: return AppendNumbers<double>(t, count, out);
    case DType::kHalf: return AppendFloats<Half>(t, count, out);
    case DType::kBFloat16: return AppendFloats<BFloat16>(t, count, out);
    case DType::kBool:
    case DType::kQUInt8:
    case DType::kUInt8: return AppendNumbers<uint8_t>(t, count, out);
    case DType::kQInt8:
    case DType::kInt8: return AppendNumbers<int8_t>(t, count, out);
    case DType::kQInt16:
    case DType::kInt16: return AppendNumbers<int16_t>(t, count, out);
    case DType::kQUInt16:
    case DType::kUInt16: return AppendNumbers<uint16_t>(t, count, out);
    case DType::kQInt32:
    case DType::kInt32: return AppendNumbers<int32_t>(t, count, out);
    case DType::kUInt32: return AppendNumbers<uint32_t>(t, count, out);
    case DType::kInt64: return AppendNumbers<int64_t>(t, count, out);
    case DType::kUInt64: return AppendNumbers<uint64_t>(t, count, out);
    case DType::kComplex64: return AppendComplex<complex64>(t, count, out);
    case DType::kComplex128: return AppendComplex<complex128>(t, count, out);
    case DType::kString: return AppendStrings(t, count, out);
    case DType::kResource: return AppendHandles(t, count, out);
    case DType::kVariant: return AppendVariants(t, count, out);
    case DType::kInvalid: return;
  }
}

}  // namespace

StatusOr<Tensor> Tensor::Make(DType dtype, const Shape& shape, Allocator& allocator) {
  Tensor t;
  MR_RETURN_IF_ERROR(MakeIn(&t, dtype, shape, allocator));
  return t;
}

Status Tensor::MakeIn(Tensor* out, DType dtype, const Shape& shape, Allocator& allocator) {
  const auto number = static_cast<size_t>(dtype);
  const size_t size = number < kPlainSizes.size() ? kPlainSizes[number] : 0;
  if (size != 0 && shape.num_elements() <= kFew) {
    if (Buffer* const buffer = TryAllocateBuffer(allocator, static_cast<size_t>(shape.num_elements()) * size)) {
      out->dtype_ = dtype;
      out->shape_ = shape;
      out->buffer_ = RefPtr<Buffer>::Adopt(buffer);
      out->data_ = buffer->data();
      return absl::OkStatus();
    }
  }
  return MakeAny(out, dtype, shape, allocator);
}

Status Tensor::MakeAny(Tensor* out, DType dtype, const Shape& shape, Allocator& allocator) {
  size_t bytes;
  MR_RETURN_IF_ERROR(CheckBytes(dtype, shape, &bytes));
  auto made = AllocateBuffer(allocator, bytes);
  if (!made.ok()) return Annotate(made.status(), absl::StrCat("a tensor ", DTypeName(dtype), shape.ToString(), ": "));
  RefPtr<Buffer> buffer = *std::move(made);
  const auto count = static_cast<size_t>(shape.num_elements());
  if (dtype == DType::kString) {
    buffer = WithElements<TString>(std::move(buffer), count);
  } else if (dtype == DType::kResource) {
    buffer = WithElements<ResourceHandle>(std::move(buffer), count);
  } else if (dtype == DType::kVariant) {
    buffer = WithElements<Variant>(std::move(buffer), count);
  }
  out->dtype_ = dtype;
  out->shape_ = shape;
  out->data_ = buffer->data();
  out->buffer_ = std::move(buffer);
  return absl::OkStatus();
}

StatusOr<Tensor> Tensor::Zeros(DType dtype, const Shape& shape) {
  MR_ASSIGN_OR_RETURN(Tensor t, Make(dtype, shape));
  if (IsPlain(dtype)) std::memset(t.data_, 0, t.TotalBytes());
  return t;
}

StatusOr<Tensor> Tensor::FromBuffer(DType dtype, const Shape& shape, RefPtr<Buffer> buffer, size_t offset) {
  size_t bytes;
  MR_RETURN_IF_ERROR(CheckBytes(dtype, shape, &bytes));
  if (!buffer) return InvalidArgument("a tensor ", DTypeName(dtype), shape.ToString(), " without a buffer");
  if (offset > buffer->size() || bytes > buffer->size() - offset) {
    return InvalidArgument("a tensor ", DTypeName(dtype), shape.ToString(), " needs ", bytes, " bytes at ", offset,
                           ", got a buffer of ", buffer->size());
  }
  char* const data = static_cast<char*>(buffer->data()) + offset;
  if (bytes > 0 && reinterpret_cast<uintptr_t>(data) % AlignmentOf(dtype) != 0) {
    return InvalidArgument("elements of ", DTypeName(dtype), " need an address that ", AlignmentOf(dtype),
                           " divides, got a buffer that starts elsewhere");
  }
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = shape;
  t.buffer_ = std::move(buffer);
  t.data_ = data;
  return t;
}

StatusOr<std::vector<int64_t>> Tensor::IntValues() const {
  MR_RETURN_IF_ERROR(CheckOnHost(*this));
  if (dtype_ == DType::kInt32) {
    const auto values = flat<int32_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  }
  if (dtype_ == DType::kInt64) {
    const auto values = flat<int64_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  }
  return InvalidArgument("expected int32 or int64, got ", DTypeName(dtype_), shape_.ToString());
}

StatusOr<int64_t> Tensor::IntScalar() const {
  MR_RETURN_IF_ERROR(CheckOnHost(*this));
  if (num_elements() == 1 && dtype_ == DType::kInt32) return *data<int32_t>();
  if (num_elements() == 1 && dtype_ == DType::kInt64) return *data<int64_t>();
  return InvalidArgument("expected one int32 or int64, got ", DTypeName(dtype_), shape_.ToString());
}

StatusOr<Tensor> Tensor::Reshaped(const Shape& shape) const {
  if (shape.num_elements() != num_elements()) {
    return InvalidArgument("cannot reshape ", shape_.ToString(), " (", num_elements(), " elements) to ",
                           shape.ToString(), " (", shape.num_elements(), ")");
  }
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

StatusOr<Tensor> Tensor::Rows(int64_t begin, int64_t end) const {
  if (rank() == 0) return InvalidArgument("a scalar has no rows");
  if (begin < 0 || begin > end || end > dim(0)) {
    return InvalidArgument("rows [", begin, ",", end, ") are not within ", shape_.ToString());
  }
  Tensor t = *this;
  MR_ASSIGN_OR_RETURN(t.shape_, shape_.WithDim(0, end - begin));
  if (dim(0) > 0)
    t.data_ = static_cast<char*>(data_) + TotalBytes() / static_cast<size_t>(dim(0)) * static_cast<size_t>(begin);
  return t;
}

StatusOr<Tensor> Tensor::Clone(Allocator& allocator) const {
  if (!IsInitialized()) return Tensor();
  if (MemorySpace* const space = SpaceOf(*this)) return CloneIn(*space, *this);
  MR_ASSIGN_OR_RETURN(Tensor copy, Make(dtype_, shape_, allocator));
  if (dtype_ == DType::kString) {
    CopyElements<TString>(*this, &copy);
  } else if (dtype_ == DType::kResource) {
    CopyElements<ResourceHandle>(*this, &copy);
  } else if (dtype_ == DType::kVariant) {
    CopyElements<Variant>(*this, &copy);
  } else if (TotalBytes() > 0) {
    std::memcpy(copy.data_, data_, TotalBytes());
  }
  return copy;
}

std::string Tensor::DebugString(int max_values) const {
  if (!IsInitialized()) return "uninitialised";
  std::string out = absl::StrCat(DTypeName(dtype_), shape_.ToString());
  if (const MemorySpace* const space = SpaceOf(*this)) return absl::StrCat(out, " in the memory of ", space->name());
  const int64_t shown = std::min<int64_t>(num_elements(), std::max(max_values, 0));
  AppendValues(*this, shown, &out);
  if (shown < num_elements()) out += " ...";
  return out;
}

Status NotOneElement(DType want, const Tensor& got) {
  return InvalidArgument(
      "expected one ", DTypeName(want), ", got ",
      got.IsInitialized() ? absl::StrCat(DTypeName(got.dtype()), got.shape().ToString()) : "an uninitialised tensor");
}

}  // namespace millrace
