// SPDX-License-Identifier: Apache-2.0
#include "cluster/tensor_codec.h"

#include <cstring>
#include <memory>

#include "tensor/allocator.h"
#include "tensor/shared_memory.h"

namespace millrace {
namespace {

constexpr size_t kWorthSharing = 2048;  // bytes; below, a copy costs less

void Copy(const absl::Cord& from, void* to) {
  char* next = static_cast<char*>(to);
  for (absl::string_view chunk : from.Chunks()) {
    std::memcpy(next, chunk.data(), chunk.size());
    next += chunk.size();
  }
}

// Null where the elements cannot be used as they lie.
RefPtr<Buffer> Hold(const absl::Cord& bytes) {
  const auto flat = bytes.TryFlat();
  if (!flat || flat->size() < kWorthPlacing) return nullptr;
  if (reinterpret_cast<uintptr_t>(flat->data()) % Allocator::kAlignment != 0) return nullptr;
  auto held = std::make_unique<absl::Cord>(bytes);
  RefPtr<Buffer> buffer = WrapBuffer(
      const_cast<char*>(flat->data()), flat->size(),
      [](void*, size_t, void* cord) { delete static_cast<absl::Cord*>(cord); }, held.get(), /*writable=*/false);
  held.release();
  return buffer;
}

// A bool of any other bits is no bool.
void MakeBools(Tensor* t) {
  auto* bytes = static_cast<unsigned char*>(t->mutable_raw());
  for (size_t i = 0, n = t->TotalBytes(); i < n; ++i) bytes[i] = bytes[i] != 0;
}

StatusOr<Tensor> StringsFrom(const Shape& shape, const absl::Cord& bytes) {
  const size_t n = static_cast<size_t>(shape.num_elements());
  if (bytes.size() / kLengthBytes < n) {
    return InvalidArgument("a string", shape.ToString(), " tensor has ", bytes.size(), " bytes, which are too few");
  }
  MR_ASSIGN_OR_RETURN(Tensor t, Tensor::Make(DType::kString, shape));
  std::string lengths;
  absl::CopyCordToString(bytes.Subcord(0, n * kLengthBytes), &lengths);
  absl::Cord rest = bytes.Subcord(n * kLengthBytes, bytes.size());
  absl::Cord::CharIterator at = rest.char_begin();
  size_t left = rest.size();
  std::string text;
  for (size_t i = 0; i < n; ++i) {
    const uint64_t length = ReadLength(lengths.data() + i * kLengthBytes);
    if (length > left) {
      return InvalidArgument("string ", i, " of a tensor has length ", length, ", but ", left, " bytes are left");
    }
    left -= length;
    text.clear();
    absl::CopyCordToString(absl::Cord::AdvanceAndRead(&at, length), &text);
    t.mutable_data<TString>()[i] = text;
  }
  if (left > 0) return InvalidArgument(left, " bytes are behind the last string of a tensor");
  return t;
}

}  // namespace

void AppendLength(uint64_t length, std::string* out) {
  for (size_t i = 0; i < kLengthBytes; ++i) out->push_back(static_cast<char>(length >> (8 * i)));
}

uint64_t ReadLength(const char* bytes) {
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return length;
}

Status AppendElements(const Tensor& t, absl::Cord* out) {
  if (t.dtype() == DType::kString) {
    const absl::Span<const TString> strings = t.flat<TString>();
    std::string lengths;
    lengths.reserve(strings.size() * kLengthBytes);
    for (const TString& s : strings) AppendLength(s.size(), &lengths);
    out->Append(std::move(lengths));
    for (const TString& s : strings) out->Append(s.view());
    return absl::OkStatus();
  }
  if (!IsPlain(t.dtype())) {
    return Unimplemented("a ", DTypeName(t.dtype()), t.shape().ToString(),
                         " tensor does not travel between processes: what it names stays on its task");
  }
  const absl::string_view bytes(static_cast<const char*>(t.raw()), t.TotalBytes());
  if (bytes.size() < kWorthSharing) {
    out->Append(bytes);
  } else {
    if (bytes.size() >= SharedMemory::kLeastOfTensor) NoteSent(*t.buffer());
    out->Append(absl::MakeCordFromExternal(bytes, [held = t] {}));
  }
  return absl::OkStatus();
}

StatusOr<Tensor> TensorFromElements(DType dtype, const Shape& shape, const absl::Cord& bytes, bool may_hold) {
  if (dtype == DType::kString) return StringsFrom(shape, bytes);
  if (!IsPlain(dtype)) return Unimplemented("a ", DTypeName(dtype), " tensor does not travel between processes");
  const auto elements = static_cast<uint64_t>(shape.num_elements());
  if (bytes.size() % DTypeSize(dtype) != 0 || bytes.size() / DTypeSize(dtype) != elements) {
    return InvalidArgument("a ", DTypeName(dtype), shape.ToString(), " tensor has ", bytes.size(), " bytes");
  }
  if (may_hold && dtype != DType::kBool) {
    if (RefPtr<Buffer> buffer = Hold(bytes)) return Tensor::FromBuffer(dtype, shape, std::move(buffer));
  }
  MR_ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, shape));
  Copy(bytes, t.mutable_raw());
  if (dtype == DType::kBool) MakeBools(&t);
  return t;
}

}  // namespace millrace
