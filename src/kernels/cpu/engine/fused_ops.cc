// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/fused_ops.h"

#include <cmath>

#include "absl/strings/str_join.h"
#include "kernels/cpu/engine/strided_copy.h"

namespace millrace {
namespace {

// `t` repeated to the larger shape.
StatusOr<Tensor> Broadcast(KernelContext& ctx, const Tensor& t, const Shape& to) {
  if (t.shape() == to) return t;
  MR_ASSIGN_OR_RETURN(Tensor out, ctx.AllocateTemp(t.dtype(), to));
  const auto in_strides = RowMajorStrides(t.shape()), out_strides = RowMajorStrides(to);
  const int shift = to.rank() - t.rank();
  CopyDims dims;
  for (int d = 0; d < to.rank(); ++d) {
    const bool repeats = d < shift || t.dim(d - shift) == 1;
    const int64_t from = repeats ? 0 : in_strides[static_cast<size_t>(d - shift)];
    dims.push_back({to.dim(d), out_strides[static_cast<size_t>(d)], from});
  }
  StridedCopy(&ctx, t.dtype(), out.mutable_raw(), t.raw(), dims);
  return out;
}

// Whether each row of a value of shape `made` gets the same added.
bool IsRowOf(const Shape& made, const Tensor& t) {
  if (t.rank() > made.rank()) return false;
  const int64_t n = t.num_elements();
  return n == 1 || (n == made.dim(made.rank() - 1) && t.dim(t.rank() - 1) == n);
}

}  // namespace

Status FusedOps::Init(const KernelInit& init) {
  MR_ASSIGN_OR_RETURN(const auto ops, init.Attr<std::vector<std::string>>("fused_ops"));
  MR_ASSIGN_OR_RETURN(const float epsilon, init.Attr<float>("epsilon"));
  epsilon_ = static_cast<double>(epsilon);
  MR_ASSIGN_OR_RETURN(const auto names, init.Attr<std::vector<std::string>>("fused_names"));
  names_ = absl::StrJoin(names, ", ");
  size_t at = 0;
  int next = 2;
  const auto takes = [&](absl::string_view op, int args, int* where) {
    if (at == ops.size() || ops[at] != op) return false;
    if (where != nullptr) *where = next;
    next += args;
    ++at;
    return true;
  };
  takes("BiasAdd", 1, &bias_);
  takes("FusedBatchNorm", 4, &norm_);
  takes("Add", 1, &sum_);
  if (takes("Relu", 0, nullptr)) {
    activation_ = Activation::kRelu;
  } else if (takes("Relu6", 0, nullptr)) {
    activation_ = Activation::kRelu6;
  }
  if (at != ops.size()) return Unimplemented("fused_ops ", absl::StrJoin(ops, ", "));
  if (next != init.num_inputs()) {
    return InvalidArgument("fused_ops ", absl::StrJoin(ops, ", "), " want ", next, " inputs, got ", init.num_inputs());
  }
  return absl::OkStatus();
}

Status FusedOps::Run(KernelContext& ctx, const Shape& made, Make make) const {
  const Status s = RunUnnamed(ctx, made, make);
  if (s.ok() || names_.empty()) return s;
  return Status(s.code(), absl::StrCat(s.message(), " (this node stands for ", names_, ")"));
}

Status FusedOps::RunUnnamed(KernelContext& ctx, const Shape& made, Make make) const {
  Epilogue epilogue{.activation = activation_, .channels = made.dim(made.rank() - 1)};
  std::vector<float> factor, row;
  MR_RETURN_IF_ERROR(ReadVectors(ctx, &epilogue, &factor));
  if (sum_ == 0) {
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, made));
    return make(epilogue, out);
  }
  const Tensor& other = ctx.input(sum_);
  if (other.shape() == made) {
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.ForwardOrAllocate({sum_}, 0, made));
    epilogue.residual = other.data<float>();
    return make(epilogue, out);
  }
  if (!IsRowOf(made, other)) return AddBroadcast(ctx, made, epilogue, make);
  epilogue.row = other.data<float>();
  if (other.num_elements() != epilogue.channels) {
    row.assign(static_cast<size_t>(epilogue.channels), *epilogue.row);
    epilogue.row = row.data();
  }
  MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, made));
  return make(epilogue, out);
}

Status FusedOps::ReadVectors(KernelContext& ctx, Epilogue* e, std::vector<float>* factor) const {
  const auto vector = [&](int i, absl::string_view name) -> StatusOr<const float*> {
    const Tensor& t = ctx.input(i);
    if (t.rank() == 1 && t.num_elements() == e->channels) return t.data<float>();
    return InvalidArgument(name, " must have shape [", e->channels, "], got ", t.shape().ToString());
  };
  if (bias_ > 0) {
    MR_ASSIGN_OR_RETURN(e->bias, vector(bias_, "bias"));
  }
  if (norm_ == 0) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const float* const scale, vector(norm_, "scale"));
  MR_ASSIGN_OR_RETURN(e->offset, vector(norm_ + 1, "offset"));
  MR_ASSIGN_OR_RETURN(e->mean, vector(norm_ + 2, "mean"));
  MR_ASSIGN_OR_RETURN(const float* const variance, vector(norm_ + 3, "variance"));
  factor->resize(static_cast<size_t>(e->channels));
  for (size_t c = 0; c < factor->size(); ++c) {
    (*factor)[c] =
        static_cast<float>(static_cast<double>(scale[c]) / std::sqrt(static_cast<double>(variance[c]) + epsilon_));
  }
  e->factor = factor->data();
  return absl::OkStatus();
}

// What is added has yet another shape, which only now is known: the sum comes after all the rest.
Status FusedOps::AddBroadcast(KernelContext& ctx, const Shape& made, Epilogue e, Make make) const {
  const Tensor& other = ctx.input(sum_);
  MR_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(made, other.shape()));
  MR_ASSIGN_OR_RETURN(Tensor before, ctx.AllocateTemp(DType::kFloat, made));
  e.activation = Activation::kNone;
  MR_RETURN_IF_ERROR(make(e, &before));
  MR_ASSIGN_OR_RETURN(const Tensor left, Broadcast(ctx, before, shape));
  MR_ASSIGN_OR_RETURN(const Tensor right, Broadcast(ctx, other, shape));
  MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, shape));
  const int64_t n = shape.num_elements();
  const Epilogue sum{.residual = right.data<float>(), .activation = activation_, .channels = n};
  if (n > 0) ApplyEpilogue(sum, {left.data<float>(), n, 0, 1, 0, n}, out->mutable_data<float>());
  return absl::OkStatus();
}

}  // namespace millrace
