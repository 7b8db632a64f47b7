// SPDX-License-Identifier: Apache-2.0
// Kernels of ParseTensor, SerializeTensor, DecodeCompressed and DecodePaddedRaw.
#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "io/compression.h"
#include "kernels/cpu/engine/encoded_variant.h"
#include "kernels/cpu/parsing/parsing.h"
#include "tensor/tensor_proto.h"

namespace millrace {
namespace {

StatusOr<Tensor> VariantsFromProto(wire::TensorProto proto) {
  Shape shape;
  if (proto.tensor_shape) {
    MR_ASSIGN_OR_RETURN(const PartialShape partial, ShapeFromProto(*proto.tensor_shape));
    MR_ASSIGN_OR_RETURN(shape, partial.ToShape());
  }
  if (static_cast<uint64_t>(shape.num_elements()) != proto.variant_val.size()) {
    return InvalidArgument(
        "a tensor of ", shape.num_elements(), " variants is given by ", proto.variant_val.size(), " of them");
  }
  MR_ASSIGN_OR_RETURN(Tensor t, Tensor::Make(DType::kVariant, shape));
  Variant* out = t.mutable_data<Variant>();
  for (wire::VariantTensorDataProto& data : proto.variant_val) {
    *out++ = Variant(RefPtr<VariantValue>(MakeRef<EncodedVariant>(std::move(data))));
  }
  return t;
}

StatusOr<wire::TensorProto> VariantsToProto(const Tensor& t) {
  wire::TensorProto proto;
  proto.dtype = static_cast<int32_t>(DType::kVariant);
  proto.tensor_shape.Ensure() = ShapeToProto(PartialShape(t.shape()));
  for (const Variant& v : t.flat<Variant>()) {
    const auto* encodable = v.As<EncodableVariant>();
    if (encodable == nullptr) {
      return Unimplemented("a variant has no form in bytes: ", v.empty() ? "an empty one" : v.get()->DebugString());
    }
    MR_ASSIGN_OR_RETURN(wire::VariantTensorDataProto data, encodable->Encoded());
    proto.variant_val.push_back(std::move(data));
  }
  return proto;
}

Status ParseTensor(KernelContext& ctx) {
  const Tensor& serialized = ctx.input(0);
  if (serialized.rank() != 0) {
    return InvalidArgument("Expected `serialized` to be a scalar, got shape: ", serialized.shape().ToString());
  }
  wire::TensorProto proto;
  if (const Status s = wire::Decode(serialized.data<TString>()->view(), &proto); !s.ok()) {
    constexpr size_t kShown = 100;
    return InvalidArgument("Could not parse `serialized` as TensorProto: '",
                           absl::CHexEscape(serialized.data<TString>()->view().substr(0, kShown)), "': ", s.message());
  }
  const bool is_variant = proto.dtype == static_cast<int32_t>(DType::kVariant);
  StatusOr<Tensor> tensor = is_variant ? VariantsFromProto(std::move(proto)) : TensorFromProto(proto);
  if (!tensor.ok()) {
    return InvalidArgument("Cannot parse tensor from proto: ", tensor.status().message());
  }
  if (tensor->dtype() != ctx.output_dtype(0)) {
    return InvalidArgument("Type mismatch between parsed tensor (", DTypeName(tensor->dtype()), ") and dtype (",
                           DTypeName(ctx.output_dtype(0)), ")");
  }
  ctx.set_output(0, *std::move(tensor));
  return absl::OkStatus();
}

constexpr char kTensorContentTag = 4 << 3 | 2;  // field 4, bytes

Status SerializeTensor(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  wire::TensorProto proto;
  absl::string_view content;  // of the field tensor_content, which comes last
  if (in.dtype() == DType::kVariant) {
    MR_ASSIGN_OR_RETURN(proto, VariantsToProto(in));
  } else if (in.dtype() == DType::kResource) {
    MR_ASSIGN_OR_RETURN(proto, TensorToProto(in));
  } else {
    proto.dtype = static_cast<int32_t>(in.dtype());
    proto.tensor_shape.Ensure() = ShapeToProto(PartialShape(in.shape()));
    if (in.dtype() == DType::kString) {
      for (const TString& s : in.flat<TString>()) proto.string_val.push_back(s.str());
    } else {
      content = absl::string_view(static_cast<const char*>(in.raw()), in.TotalBytes());
    }
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  std::string head = wire::Encode(proto);
  if (content.empty()) {
    *out->mutable_data<TString>() = head;
    return absl::OkStatus();
  }
  head.push_back(kTensorContentTag);
  size_t length = content.size();  // in sevens of bits
  for (; length >= 128; length /= 128) head.push_back(static_cast<char>(length % 128 + 128));
  head.push_back(static_cast<char>(length));
  // Composed in memory that the next step finds again.
  MR_ASSIGN_OR_RETURN(
      Tensor both, ctx.AllocateTemp(DType::kUInt8, Shape::Vector(static_cast<int64_t>(head.size() + content.size()))));
  char* to = static_cast<char*>(both.mutable_raw());
  std::memcpy(to, head.data(), head.size());
  std::memcpy(to + head.size(), content.data(), content.size());
  *out->mutable_data<TString>() = absl::string_view(to, both.TotalBytes());
  return absl::OkStatus();
}

class DecodeCompressedKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::string name, init.Attr<std::string>("compression_type"));
    MR_ASSIGN_OR_RETURN(compression_, CompressionFromName(name));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    if (compression_ == Compression::kNone) {
      ctx.Forward(0, 0);
      return absl::OkStatus();
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(0).shape()));
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      std::string plain;
      MR_RETURN_IF_ERROR(Expand(ctx.input(0).data<TString>()[i], compression_, kLargestString, &plain));
      out->mutable_data<TString>()[i] = plain;
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kLargestString = size_t{1} << 31;
  Compression compression_ = Compression::kNone;
};

class DecodePaddedRawKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const bool little, init.Attr<bool>("little_endian"));
    swap_ = !little;
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &given = ctx.input(1);
    if (given.rank() != 0) return InvalidArgument("fixed_length must be scalar, got shape ", given.shape().ToString());
    const int64_t length = *given.data<int32_t>();
    const size_t unit = DTypeSize(ctx.output_dtype(0));
    if (length <= 0) return InvalidArgument("fixed_length (", length, ") must be greater than zero.");
    const size_t bytes = static_cast<size_t>(length);
    if (bytes % unit != 0) {
      return InvalidArgument("fixed_length (", length, ") must be a multiple of the size of out_type (", unit, ")");
    }
    MR_ASSIGN_OR_RETURN(
        const Shape shape, input.shape().WithInserted(input.rank(), static_cast<int64_t>(bytes / unit)));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    char* to = static_cast<char*>(out->mutable_raw());
    for (const TString& s : input.flat<TString>()) {
      const size_t taken = std::min(s.size(), bytes);
      if (taken > 0) std::memcpy(to, s.data(), taken);
      std::memset(to + taken, 0, bytes - taken);
      for (size_t i = 0; swap_ && i < bytes; i += unit) std::reverse(to + i, to + i + unit);
      to += bytes;
    }
    return absl::OkStatus();
  }

 private:
  bool swap_ = false;
};

}  // namespace

void RegisterMessageTensorKernels(KernelRegistry& registry) {
  registry.AddFn({.op = "ParseTensor"}, ParseTensor);
  registry.AddFn({.op = "SerializeTensor"}, SerializeTensor);
  registry.Add<DecodeCompressedKernel>({.op = "DecodeCompressed"});
  registry.Add<DecodePaddedRawKernel>(
      {.op = "DecodePaddedRaw", .types = {{"out_type", Types("f16|bf16|FD|IDX|i8|i16|u8|u16")}}});
}

}  // namespace millrace
