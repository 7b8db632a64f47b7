// SPDX-License-Identifier: Apache-2.0
// Gather, GatherV2, GatherNd, ResourceGather, ResourceGatherNd.
//
// A gather is a table of rows: params [batch, outer, limit, inner], indices [batch, n], output [batch, outer, n,
// inner]. All indices are checked first; then rows are copied in parallel. Row reads are random, so rows some places
// ahead are prefetched.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/index/index_kernels.h"

namespace millrace {
namespace {

constexpr int64_t kAhead = 12;

template <typename Index, size_t kBytes>
void GatherFixed(char* dst, const char* src, const Index* ids, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(dst + i * static_cast<int64_t>(kBytes),
                src + static_cast<int64_t>(ids[i]) * static_cast<int64_t>(kBytes), kBytes);
  }
}

template <typename Index>
void GatherBytes(char* dst, const char* src, const Index* ids, int64_t n, int64_t bytes) {
  switch (bytes) {
    case 1: return GatherFixed<Index, 1>(dst, src, ids, n);
    case 2: return GatherFixed<Index, 2>(dst, src, ids, n);
    case 4: return GatherFixed<Index, 4>(dst, src, ids, n);
    case 8: return GatherFixed<Index, 8>(dst, src, ids, n);
    case 16: return GatherFixed<Index, 16>(dst, src, ids, n);
    default: break;
  }
  const int64_t lines = std::min<int64_t>((bytes + 63) / 64, 4);
  for (int64_t i = 0; i < n; ++i) {
    if (i + kAhead < n) {
      const char* next = src + static_cast<int64_t>(ids[i + kAhead]) * bytes;
      for (int64_t l = 0; l < lines; ++l) __builtin_prefetch(next + l * 64);
    }
    std::memcpy(dst + i * bytes, src + static_cast<int64_t>(ids[i]) * bytes, static_cast<size_t>(bytes));
  }
}

struct GatherPlan {
  int64_t batch = 1, outer = 1, limit = 0, inner = 1, n = 0;
};

template <typename Index>
void RunGather(KernelContext& ctx, const Tensor& params, const Tensor& indices, const GatherPlan& p, Tensor* out) {
  const DType dtype = params.dtype();
  const RunCopier copier(dtype, p.inner);
  const Index* ids = indices.data<Index>();
  const bool plain = IsPlain(dtype);
  const int64_t bytes = p.inner * static_cast<int64_t>(DTypeSize(dtype));
  // Row r of the output is (batch and outer number r / n, index r % n).
  ctx.ParallelFor(p.batch * p.outer * p.n, copier.cost() + 2, [&](int64_t begin, int64_t end) {
    int64_t group = begin / p.n, i = begin % p.n;
    for (int64_t at = begin; at < end; ++group, i = 0) {
      const int64_t count = std::min(p.n - i, end - at);
      const Index* list = ids + (group / p.outer) * p.n + i;
      const int64_t from = group * p.limit * p.inner, to = at * p.inner;
      if (plain) {
        const int64_t size = static_cast<int64_t>(DTypeSize(dtype));
        GatherBytes(static_cast<char*>(out->mutable_raw()) + to * size,
                    static_cast<const char*>(params.raw()) + from * size, list, count, bytes);
      } else {
        for (int64_t k = 0; k < count; ++k) {
          copier.CopyOne(
              out->mutable_raw(), to + k * p.inner, params.raw(), from + static_cast<int64_t>(list[k]) * p.inner);
        }
      }
      at += count;
    }
  });
}

Status GatherAlong(KernelContext& ctx, const Tensor& params, const Tensor& indices, int64_t axis, int64_t batch_dims) {
  const int rank = params.rank();
  if (rank < 1) return InvalidArgument("params must have at least one dimension, got a scalar");
  int64_t a, b = batch_dims;
  if (!NormalizeIndex(axis, rank, &a))
    return InvalidArgument("Expected axis in the range [-", rank, ", ", rank, "), but got ", axis);
  if (b < 0) b += indices.rank();
  if (b < 0 || b > indices.rank()) {
    return InvalidArgument("batch_dims ", batch_dims, " is not in [-", indices.rank(), ", ", indices.rank(), "]");
  }
  if (b >= rank) return InvalidArgument("batch_dims ", b, " must be less than the rank of params, ", rank);
  if (a < b) return InvalidArgument("axis ", a, " lies within the ", b, " batch dimensions");
  const int ai = static_cast<int>(a), bi = static_cast<int>(b);
  std::vector<int64_t> dims = DimsOf(params.shape(), 0, ai);
  for (int i = 0; i < bi; ++i) {
    if (params.dim(i) != indices.dim(i)) {
      return InvalidArgument(
          "batch dimension ", i, " is ", params.dim(i), " in params and ", indices.dim(i), " in indices");
    }
  }
  for (int i = bi; i < indices.rank(); ++i) dims.push_back(indices.dim(i));
  for (int i = ai + 1; i < rank; ++i) dims.push_back(params.dim(i));
  MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
  GatherPlan p;
  p.limit = params.dim(ai);
  if (shape.num_elements() > 0) MR_RETURN_IF_ERROR(CheckIndices("indices", indices, p.limit));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  p.batch = DimProduct(params.shape(), 0, bi);
  p.outer = DimProduct(params.shape(), bi, ai);
  p.inner = DimProduct(params.shape(), ai + 1, rank);
  p.n = DimProduct(indices.shape(), bi, indices.rank());
  if (indices.dtype() == DType::kInt32) {
    RunGather<int32_t>(ctx, params, indices, p, out);
  } else {
    RunGather<int64_t>(ctx, params, indices, p, out);
  }
  return absl::OkStatus();
}

Status GatherSlices(KernelContext& ctx, const Tensor& params, const Tensor& indices) {
  if (params.rank() < 1) return InvalidArgument("params must have at least one dimension, got a scalar");
  if (indices.rank() < 1) return InvalidArgument("indices must have at least one dimension, got a scalar");
  if (params.num_elements() == 0 && DimProduct(indices.shape(), 0, indices.rank() - 1) > 0) {
    return InvalidArgument(
        "Requested more than 0 entries, but params is empty. Params shape: ", params.shape().ToString(),
        ", indices shape: ", indices.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(Tensor numbers, SliceNumbers(ctx, indices, params.shape()));
  const int lead = indices.rank() - 1;
  const int depth = static_cast<int>(indices.dim(lead));
  std::vector<int64_t> dims = DimsOf(indices.shape(), 0, lead);
  for (int i = depth; i < params.rank(); ++i) dims.push_back(params.dim(i));
  MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  GatherPlan p;
  p.limit = DimProduct(params.shape(), 0, depth);
  p.inner = DimProduct(params.shape(), depth, params.rank());
  p.n = numbers.num_elements();
  RunGather<int64_t>(ctx, params, numbers, p, out);
  return absl::OkStatus();
}

class GatherKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override { return GatherAlong(ctx, ctx.input(0), ctx.input(1), 0, 0); }
};

class GatherV2Kernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(batch_dims_, init.Attr<int64_t>("batch_dims"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_RETURN_IF_ERROR(RequireScalar("axis", ctx.input(2)));
    MR_ASSIGN_OR_RETURN(int64_t axis, ctx.input(2).IntScalar());
    return GatherAlong(ctx, ctx.input(0), ctx.input(1), axis, batch_dims_);
  }

 private:
  int64_t batch_dims_ = 0;
};

// The value of the variable behind input 0, of the dtype that the node declares.
StatusOr<Tensor> ReadVariable(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(RefPtr<Variable> variable, ResourceFromInput<Variable>(ctx, 0));
  Tensor value = variable->ReadOrEmpty();
  if (!value.IsInitialized()) return NotFound("the variable of node '", ctx.node_name(), "' has no value yet");
  if (value.dtype() != ctx.output_dtype(0)) {
    return InvalidArgument(
        "the variable holds ", DTypeName(value.dtype()), ", the node declares ", DTypeName(ctx.output_dtype(0)));
  }
  return value;
}

class ResourceGatherKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(batch_dims_, init.Attr<int64_t>("batch_dims"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(Tensor value, ReadVariable(ctx));
    const Tensor& indices = ctx.input(1);
    const int64_t axis = batch_dims_ < 0 ? batch_dims_ + indices.rank() : batch_dims_;
    return GatherAlong(ctx, value, indices, axis, batch_dims_);
  }

 private:
  int64_t batch_dims_ = 0;
};

}  // namespace

void RegisterGatherKernels(KernelRegistry& r) {
  r.Add<GatherKernel>({.op = "Gather", .cost = TakeCost});
  r.Add<GatherV2Kernel>({.op = "GatherV2", .cost = TakeCost});
  r.AddFn({.op = "GatherNd", .cost = TakeCost},
          [](KernelContext& c) -> Status { return GatherSlices(c, c.input(0), c.input(1)); });
  r.Add<ResourceGatherKernel>({.op = "ResourceGather", .cost = TakeCost});
  r.AddFn({.op = "ResourceGatherNd", .cost = TakeCost}, [](KernelContext& c) -> Status {
    MR_ASSIGN_OR_RETURN(Tensor value, ReadVariable(c));
    return GatherSlices(c, value, c.input(1));
  });
}

}  // namespace millrace
