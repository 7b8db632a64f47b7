// SPDX-License-Identifier: Apache-2.0
// CPU kernels: sparse tensors as strings or variants.
#include <algorithm>
#include <array>

#include "base/checked.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/tensor_variant.h"
#include "kernels/cpu/sparse/sparse.h"
#include "tensor/tensor_proto.h"

namespace millrace {
namespace {

// Element `from` of the output again as element `at`.
void PutAgain(Tensor* out, int64_t from, int64_t at) {
  if (out->dtype() == DType::kVariant) {
    out->mutable_data<Variant>()[at] = out->data<Variant>()[from];
  } else {
    out->mutable_data<TString>()[at] = out->data<TString>()[from];
  }
}

// `t` as element `at` of the output, strings or variants.
Status Put(const Tensor& t, Tensor* out, int64_t at) {
  if (out->dtype() == DType::kVariant) {
    out->mutable_data<Variant>()[at] = Variant(MakeRef<TensorValue>(t));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const wire::TensorProto proto, TensorToProto(t));
  out->mutable_data<TString>()[at] = wire::Encode(proto);
  return absl::OkStatus();
}

StatusOr<Tensor> Get(const Tensor& in, int64_t at) {
  if (in.dtype() == DType::kVariant) {
    const TensorValue* value = in.data<Variant>()[at].As<TensorValue>();
    if (value == nullptr) return InvalidArgument("the variant holds no tensor");
    return value->tensor;
  }
  wire::TensorProto proto;
  if (const Status s = wire::Decode(in.data<TString>()[at].view(), &proto); !s.ok()) {
    return InvalidArgument("Could not parse serialized proto: ", s.message());
  }
  StatusOr<Tensor> made = TensorFromProto(proto);
  if (!made.ok()) return InvalidArgument("Could not construct a tensor from a proto: ", made.status().message());
  return made;
}

// A row costs memory even where it is empty.
constexpr int64_t kMostEmptyRows = int64_t{1} << 24;

Status SerializeOne(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(SparseArgOf(ctx, 0, "the input").status());
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(3)));
  for (int i = 0; i < 3; ++i) MR_RETURN_IF_ERROR(Put(ctx.input(i), out, i));
  return absl::OkStatus();
}

Status SerializeMany(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const SparseArg s, SparseArgOf(ctx, 0, "the input"));
  if (s.rank < 2) return InvalidArgument("Rank of input SparseTensor should be > 1, but saw rank: ", s.rank);
  MR_RETURN_IF_ERROR(DenseShapeOf(s).status());
  MR_RETURN_IF_ERROR(CheckOrdered(s, "indices"));
  const int64_t rows = s.dims()[0];
  if (rows > kMostEmptyRows + s.n) {
    return ResourceExhausted("a sparse tensor with ", rows, " rows and ", s.n, " elements is too long to serialize");
  }
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({rows, 3}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  const std::vector<int64_t> rest(s.dims() + 1, s.dims() + s.rank);
  const Tensor dims = Tensor::Vector<int64_t>(rest);
  const RunCopier copier(s.values->dtype(), 1);
  for (int64_t row = 0, at = 0; row < rows; ++row) {
    int64_t end = at;
    while (end < s.n && s.at(end)[0] == row) ++end;
    MR_ASSIGN_OR_RETURN(const Shape matrix, Shape::Make({end - at, s.rank - 1}));
    MR_ASSIGN_OR_RETURN(Tensor indices, Tensor::Make(DType::kInt64, matrix));
    MR_ASSIGN_OR_RETURN(Tensor values, Tensor::Make(s.values->dtype(), Shape::Vector(end - at)));
    int64_t* to = indices.mutable_data<int64_t>();
    for (int64_t i = 0; at < end; ++at, ++i) {
      to = std::copy(s.at(at) + 1, s.at(at) + s.rank, to);
      copier.CopyOne(values.mutable_raw(), i, s.values->raw(), at);
    }
    MR_RETURN_IF_ERROR(Put(indices, out, 3 * row));
    MR_RETURN_IF_ERROR(Put(values, out, 3 * row + 1));
    if (row > 0) {
      PutAgain(out, 2, 3 * row + 2);
    } else {
      MR_RETURN_IF_ERROR(Put(dims, out, 2));
    }
  }
  return absl::OkStatus();
}

using Parts = std::array<Tensor, 3>;  // indices, values, shape

StatusOr<Parts> Read(const KernelContext& ctx, int64_t at) {
  Parts parts;
  for (size_t k = 0; k < 3; ++k) {
    MR_ASSIGN_OR_RETURN(parts[k], Get(ctx.input(0), 3 * at + static_cast<int64_t>(k)));
  }
  const auto& [indices, values, shape] = parts;
  if (indices.dtype() != DType::kInt64 || shape.dtype() != DType::kInt64) {
    return InvalidArgument("serialized indices and shape must be int64, got ", DTypeName(indices.dtype()), " and ",
                           DTypeName(shape.dtype()));
  }
  if (values.dtype() != ctx.output_dtype(1)) {
    return InvalidArgument("Requested SparseTensor of type ", DTypeName(ctx.output_dtype(1)), " but SparseTensor[", at,
                           "].values.dtype() == ", DTypeName(values.dtype()));
  }
  if (indices.rank() != 2 || values.rank() != 1 || shape.rank() != 1 || indices.dim(0) != values.dim(0) ||
      indices.dim(1) != shape.dim(0)) {
    return InvalidArgument(
        "a serialized sparse tensor must have indices [n, rank], values [n] and a shape [rank], got ",
        indices.shape().ToString(), ", ", values.shape().ToString(), " and ", shape.shape().ToString());
  }
  for (const int64_t d : shape.flat<int64_t>()) {
    if (d < 0) return InvalidArgument("a dimension of SparseTensor[", at, "] is negative: ", d);
  }
  return parts;
}

Status Deserialize(KernelContext& ctx) {
  const Shape& serialized = ctx.input(0).shape();
  if (serialized.rank() == 0)
    return InvalidArgument("Serialized sparse should have non-zero rank ", serialized.ToString());
  const int lead = serialized.rank() - 1;
  if (serialized.dim(lead) != 3) {
    return InvalidArgument("Serialized sparse should have 3 as the last dimension ", serialized.ToString());
  }
  const int64_t count = serialized.num_elements() / 3;
  if (count == 0) {
    return InvalidArgument(
        "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension ", serialized.ToString());
  }
  std::vector<Parts> all;
  std::vector<int64_t> dims;
  int64_t n = 0;
  for (int64_t i = 0; i < count; ++i) {
    MR_ASSIGN_OR_RETURN(Parts parts, Read(ctx, i));
    const absl::Span<const int64_t> own = parts[2].flat<int64_t>();
    if (i == 0) dims.assign(own.begin(), own.end());
    if (own.size() != dims.size()) {
      return InvalidArgument("Inconsistent shape across SparseTensors: rank prior to SparseTensor[", i,
                             "] was: ", dims.size() - 1, " but rank of SparseTensor[", i, "] is: ", own.size() - 1);
    }
    for (size_t d = 0; d < own.size(); ++d) dims[d] = std::max(dims[d], own[d]);
    n += parts[1].num_elements();
    all.push_back(std::move(parts));
  }
  const int64_t rank = static_cast<int64_t>(dims.size());
  MR_ASSIGN_OR_RETURN(const Shape matrix, Shape::Make({n, lead + rank}));
  MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, matrix));
  MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, Shape::Vector(n)));
  int64_t* to = indices->mutable_data<int64_t>();
  const RunCopier copier(values->dtype(), 1);
  std::vector<int64_t> place(static_cast<size_t>(lead), 0);
  int64_t at = 0;
  for (const auto& [own, elements, shape] : all) {
    for (int64_t e = 0; e < elements.num_elements(); ++e, ++at) {
      to = std::copy(place.begin(), place.end(), to);
      to = std::copy(own.data<int64_t>() + e * rank, own.data<int64_t>() + (e + 1) * rank, to);
      copier.CopyOne(values->mutable_raw(), at, elements.raw(), e);
    }
    for (int d = lead - 1; d >= 0 && ++place[static_cast<size_t>(d)] == serialized.dim(d); --d) {
      place[static_cast<size_t>(d)] = 0;
    }
  }
  std::vector<int64_t> whole(serialized.dims().begin(), serialized.dims().begin() + lead);
  whole.insert(whole.end(), dims.begin(), dims.end());
  return SetVector(ctx, 2, whole);
}

Status DeserializeMany(KernelContext& ctx) {
  if (ctx.input(0).rank() != 2) {
    return InvalidArgument("Serialized sparse should be a matrix, got shape ", ctx.input(0).shape().ToString());
  }
  return Deserialize(ctx);
}

}  // namespace

void RegisterSparseSerialKernels(KernelRegistry& registry) {
  registry.AddFn({.op = "SerializeSparse"}, SerializeOne);
  registry.AddFn({.op = "SerializeManySparse"}, SerializeMany);
  registry.AddFn({.op = "DeserializeSparse"}, Deserialize);
  registry.AddFn({.op = "DeserializeManySparse"}, DeserializeMany);
}

}  // namespace millrace
