// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor_proto.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "tensor/memory_space.h"

namespace millrace {
namespace {

// A few bytes of message may stand for a large tensor of equal elements: this much is believed.
constexpr uint64_t kMaxSplatBytes = uint64_t{4} << 30;
// Strings are made one by one, and no graph means a million equal ones.
constexpr uint64_t kMaxSplatStrings = uint64_t{1} << 20;
// Tensors of equal elements from this size on are written as one value.
constexpr size_t kMinSplatBytes = 32;

std::string Describe(DType dtype, const Shape& shape) {
  return absl::StrCat("tensor ", DTypeName(dtype), shape.ToString());
}

// Elements [0, values) from `value`, the others equal to the last of them, or the default when there is none.
template <typename T, typename Value>
Status Fill(size_t values, Value value, Tensor* t) {
  const absl::Span<T> out = t->mutable_flat<T>();
  const size_t given = std::min(values, out.size());
  for (size_t i = 0; i < given; ++i) out[i] = value(i);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(given), out.end(), given > 0 ? out[given - 1] : T());
  return absl::OkStatus();
}

template <typename T, typename Field>
Status FillFrom(const std::vector<Field>& field, Tensor* t) {
  return Fill<T>(field.size(), [&](size_t i) { return static_cast<T>(field[i]); }, t);
}

template <typename T>
Status FillBits16(const std::vector<int32_t>& field, Tensor* t) {
  return Fill<T>(field.size(), [&](size_t i) { return T::FromBits(static_cast<uint16_t>(field[i])); }, t);
}

template <typename T>
Status FillComplex(const std::vector<T>& field, Tensor* t) {
  if (field.size() % 2 != 0) {
    return InvalidArgument(Describe(t->dtype(), t->shape()), " has an odd number of parts: ", field.size());
  }
  return Fill<std::complex<T>>(
      field.size() / 2, [&](size_t i) { return std::complex<T>(field[2 * i], field[2 * i + 1]); }, t);
}

Status FillFromFields(const wire::TensorProto& proto, Tensor* t) {
  switch (t->dtype()) {
    case DType::kFloat: return FillFrom<float>(proto.float_val, t);
    case DType::kDouble: return FillFrom<double>(proto.double_val, t);
    case DType::kInt32:
    case DType::kQInt32: return FillFrom<int32_t>(proto.int_val, t);
    case DType::kUInt8:
    case DType::kQUInt8: return FillFrom<uint8_t>(proto.int_val, t);
    case DType::kInt8:
    case DType::kQInt8: return FillFrom<int8_t>(proto.int_val, t);
    case DType::kInt16:
    case DType::kQInt16: return FillFrom<int16_t>(proto.int_val, t);
    case DType::kUInt16:
    case DType::kQUInt16: return FillFrom<uint16_t>(proto.int_val, t);
    case DType::kUInt32: return FillFrom<uint32_t>(proto.uint32_val, t);
    case DType::kInt64: return FillFrom<int64_t>(proto.int64_val, t);
    case DType::kUInt64: return FillFrom<uint64_t>(proto.uint64_val, t);
    case DType::kBool: return FillFrom<bool>(proto.bool_val, t);
    case DType::kHalf: return FillBits16<Half>(proto.half_val, t);
    case DType::kBFloat16:
      // Early writers used int_val.
      return FillBits16<BFloat16>(proto.half_val.empty() ? proto.int_val : proto.half_val, t);
    case DType::kComplex64: return FillComplex(proto.scomplex_val, t);
    case DType::kComplex128: return FillComplex(proto.dcomplex_val, t);
    case DType::kString: return FillFrom<TString>(proto.string_val, t);
    case DType::kInvalid:
    case DType::kResource:
    case DType::kVariant: break;
  }
  return Unimplemented("reading a tensor of dtype ", DTypeName(t->dtype()));
}

bool TakeVarint32(absl::string_view* bytes, uint32_t* value) {
  uint64_t result = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    if (bytes->empty()) return false;
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    result |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) {
      *value = static_cast<uint32_t>(result);
      return result <= UINT32_MAX;
    }
  }
  return false;
}

// All lengths, then all bytes.
StatusOr<Tensor> StringsFromContent(const Shape& shape, absl::string_view content) {
  const auto malformed = [&](absl::string_view what) {
    return InvalidArgument(Describe(DType::kString, shape), ": tensor_content ", what);
  };
  const auto count = static_cast<uint64_t>(shape.num_elements());
  if (count > content.size()) return malformed("is too short for the lengths of the strings");
  std::vector<uint32_t> lengths(static_cast<size_t>(count));
  uint64_t total = 0;
  for (uint32_t& length : lengths) {
    if (!TakeVarint32(&content, &length)) return malformed("has a malformed length");
    total += length;
  }
  if (total != content.size()) return malformed("does not hold as many bytes as its lengths say");
  MR_ASSIGN_OR_RETURN(Tensor t, Tensor::Make(DType::kString, shape));
  TString* out = t.mutable_data<TString>();
  for (const uint32_t length : lengths) {
    *out++ = content.substr(0, length);
    content.remove_prefix(length);
  }
  return t;
}

StatusOr<Tensor> FromContent(DType dtype, const Shape& shape, absl::string_view content) {
  if (dtype == DType::kString) return StringsFromContent(shape, content);
  size_t bytes;
  if (!CheckedMul(static_cast<size_t>(shape.num_elements()), DTypeSize(dtype), &bytes) || bytes != content.size()) {
    return InvalidArgument(Describe(dtype, shape), " does not fit its tensor_content of ", content.size(), " bytes");
  }
  MR_ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, shape));
  if (dtype == DType::kBool) {
    std::transform(content.begin(), content.end(), t.mutable_data<bool>(), [](char c) { return c != 0; });
  } else {
    std::memcpy(t.mutable_raw(), content.data(), content.size());
  }
  return t;
}

template <typename Field, typename T>
void PutFirst(const Tensor& t, std::vector<Field>* field) {
  field->push_back(static_cast<Field>(*t.data<T>()));
}
template <typename T>
void PutFirstComplex(const Tensor& t, std::vector<T>* field) {
  const std::complex<T> v = *t.data<std::complex<T>>();
  field->push_back(v.real());
  field->push_back(v.imag());
}

void PutFirstElement(const Tensor& t, wire::TensorProto* proto) {
  switch (t.dtype()) {
    case DType::kFloat: return PutFirst<float, float>(t, &proto->float_val);
    case DType::kDouble: return PutFirst<double, double>(t, &proto->double_val);
    case DType::kInt32:
    case DType::kQInt32: return PutFirst<int32_t, int32_t>(t, &proto->int_val);
    case DType::kUInt8:
    case DType::kQUInt8: return PutFirst<int32_t, uint8_t>(t, &proto->int_val);
    case DType::kInt8:
    case DType::kQInt8: return PutFirst<int32_t, int8_t>(t, &proto->int_val);
    case DType::kInt16:
    case DType::kQInt16: return PutFirst<int32_t, int16_t>(t, &proto->int_val);
    case DType::kUInt16:
    case DType::kQUInt16: return PutFirst<int32_t, uint16_t>(t, &proto->int_val);
    case DType::kHalf:
    case DType::kBFloat16: return PutFirst<int32_t, uint16_t>(t, &proto->half_val);
    case DType::kUInt32: return PutFirst<uint32_t, uint32_t>(t, &proto->uint32_val);
    case DType::kInt64: return PutFirst<int64_t, int64_t>(t, &proto->int64_val);
    case DType::kUInt64: return PutFirst<uint64_t, uint64_t>(t, &proto->uint64_val);
    case DType::kBool: proto->bool_val.push_back(*t.data<uint8_t>() != 0); return;
    case DType::kComplex64: return PutFirstComplex(t, &proto->scomplex_val);
    case DType::kComplex128: return PutFirstComplex(t, &proto->dcomplex_val);
    case DType::kInvalid:
    case DType::kString:
    case DType::kResource:
    case DType::kVariant: return;
  }
}

bool AllElementsEqual(const Tensor& t) {
  const char* const bytes = static_cast<const char*>(t.raw());
  const size_t size = DTypeSize(t.dtype());
  return t.TotalBytes() > size && std::memcmp(bytes, bytes + size, t.TotalBytes() - size) == 0;
}

void PutHandle(const ResourceHandle& handle, wire::TensorProto* proto) {
  wire::ResourceHandleProto& out = proto->resource_handle_val.emplace_back();
  out.device = handle.device;
  out.container = handle.container;
  out.name = handle.name;
  out.maybe_type_name = handle.type_name;
}

Status CheckSplat(DType dtype, const Shape& shape, const wire::TensorProto& proto) {
  const auto elements = static_cast<uint64_t>(shape.num_elements());
  // Of plain elements no message is large enough to give so many one by one.
  if (dtype == DType::kString) {
    if (elements <= kMaxSplatStrings || elements <= proto.string_val.size()) return absl::OkStatus();
    return ResourceExhausted(Describe(dtype, shape), " is given by ", proto.string_val.size(), " strings; at most ",
                             kMaxSplatStrings, " are made from fewer");
  }
  if (elements <= kMaxSplatBytes / DTypeSize(dtype)) return absl::OkStatus();
  return ResourceExhausted(Describe(dtype, shape), " is not given element by element; at most ", kMaxSplatBytes,
                           " bytes are made from so little");
}

}  // namespace

StatusOr<Tensor> TensorFromProto(const wire::TensorProto& proto) {
  const std::optional<DType> dtype = DTypeFromNumber(proto.dtype);
  if (!dtype) return InvalidArgument("a TensorProto has the invalid dtype ", proto.dtype);
  if (*dtype == DType::kResource)
    return InvalidArgument("a TensorProto holds resource handles, which only a step can make");
  Shape shape;
  if (proto.tensor_shape) {
    MR_ASSIGN_OR_RETURN(const PartialShape partial, ShapeFromProto(*proto.tensor_shape));
    MR_ASSIGN_OR_RETURN(shape, partial.ToShape());
  }
  if (*dtype == DType::kVariant) return Unimplemented("reading a TensorProto of dtype variant");
  if (shape.num_elements() == 0) return Tensor::Make(*dtype, shape);
  if (!proto.tensor_content.empty()) return FromContent(*dtype, shape, proto.tensor_content);
  MR_RETURN_IF_ERROR(CheckSplat(*dtype, shape, proto));
  MR_ASSIGN_OR_RETURN(Tensor t, Tensor::Make(*dtype, shape));
  MR_RETURN_IF_ERROR(FillFromFields(proto, &t));
  return t;
}

StatusOr<wire::TensorProto> TensorToProto(const Tensor& tensor) {
  if (!tensor.IsInitialized()) return InvalidArgument("an uninitialised tensor has no TensorProto");
  MR_RETURN_IF_ERROR(CheckOnHost(tensor));
  wire::TensorProto proto;
  proto.dtype = static_cast<int32_t>(tensor.dtype());
  proto.tensor_shape.Ensure() = ShapeToProto(tensor.shape());
  if (IsPlain(tensor.dtype())) {
    if (tensor.TotalBytes() >= kMinSplatBytes && AllElementsEqual(tensor)) {
      PutFirstElement(tensor, &proto);
    } else {
      proto.tensor_content.assign(static_cast<const char*>(tensor.raw()), tensor.TotalBytes());
    }
  } else if (tensor.dtype() == DType::kString) {
    for (const TString& s : tensor.flat<TString>()) proto.string_val.push_back(s.str());
  } else if (tensor.dtype() == DType::kResource) {
    for (const ResourceHandle& handle : tensor.flat<ResourceHandle>()) PutHandle(handle, &proto);
  } else {
    return Unimplemented("writing a TensorProto of dtype ", DTypeName(tensor.dtype()));
  }
  return proto;
}

StatusOr<wire::TensorProto> TensorToAttrProto(const Tensor& tensor) {
  MR_ASSIGN_OR_RETURN(wire::TensorProto proto, TensorToProto(tensor));
  if (IsPlain(tensor.dtype()) && tensor.num_elements() == 1) {
    proto.tensor_content.clear();
    PutFirstElement(tensor, &proto);
  }
  return proto;
}

StatusOr<PartialShape> ShapeFromProto(const wire::TensorShapeProto& proto) {
  if (proto.unknown_rank) {
    if (!proto.dim.empty()) return InvalidArgument("a shape of unknown rank has ", proto.dim.size(), " dimensions");
    return PartialShape::Unknown();
  }
  std::vector<int64_t> dims;
  dims.reserve(proto.dim.size());
  for (const wire::TensorShapeDim& dim : proto.dim) dims.push_back(dim.size);
  return PartialShape::Make(dims);
}

wire::TensorShapeProto ShapeToProto(const PartialShape& shape) {
  wire::TensorShapeProto proto;
  proto.unknown_rank = !shape.has_rank();
  proto.dim.resize(shape.dims().size());
  for (size_t i = 0; i < proto.dim.size(); ++i) proto.dim[i].size = shape.dims()[i];
  return proto;
}

}  // namespace millrace
