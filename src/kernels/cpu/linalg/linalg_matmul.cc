// SPDX-License-Identifier: Apache-2.0
// Kernels of MatMul, BatchMatMul and BatchMatMulV2.
#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/engine/elementwise_convert.h"
#include "kernels/cpu/engine/fused_ops.h"
#include "kernels/cpu/linalg/linalg.h"
#include "kernels/cpu/linalg/linalg_batch.h"
#include "kernels/cpu/linalg/linalg_products.h"

namespace millrace {
namespace {

class MatMulKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(transpose_a_, init.Attr<bool>("transpose_a"));
    MR_ASSIGN_OR_RETURN(transpose_b_, init.Attr<bool>("transpose_b"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(Products p, Operands(ctx));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({p.m, p.n}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    p.result = out->mutable_raw();
    return MultiplyMatrices(ctx, ctx.input_dtype(0), p);
  }

 protected:
  // Inputs 0 and 1.
  StatusOr<Products> Operands(const KernelContext& ctx) const {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    if (a.rank() != 2) return InvalidArgument("In[0] is not a matrix. Instead it has shape ", a.shape().ToString());
    if (b.rank() != 2) return InvalidArgument("In[1] is not a matrix. Instead it has shape ", b.shape().ToString());
    Products p;
    p.transpose_x = transpose_a_;
    p.transpose_y = transpose_b_;
    p.m = a.dim(transpose_a_ ? 1 : 0);
    p.k = a.dim(transpose_a_ ? 0 : 1);
    p.n = b.dim(transpose_b_ ? 0 : 1);
    if (b.dim(transpose_b_ ? 1 : 0) != p.k) {
      return InvalidArgument(
          "Matrix size-incompatible: In[0]: ", a.shape().ToString(), ", In[1]: ", b.shape().ToString());
    }
    p.x = a.raw();
    p.y = b.raw();
    p.y_value = &b;
    return p;
  }

 private:
  bool transpose_a_ = false, transpose_b_ = false;
};

// With the cheap ops that follow, as the stage `fuse` puts them together.
class FusedMatMulKernel final : public MatMulKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(MatMulKernel::Init(init));
    return fused_.Init(init);
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(Products p, Operands(ctx));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({p.m, p.n}));
    return fused_.Run(ctx, shape, [&](const Epilogue& epilogue, Tensor* out) -> Status {
      Tensor beside;  // the residual may be where the result goes
      if (epilogue.residual != nullptr) {
        MR_ASSIGN_OR_RETURN(beside, ctx.AllocateTemp(DType::kFloat, shape));
      }
      p.result = epilogue.residual != nullptr ? beside.mutable_raw() : out->mutable_raw();
      MultiplyFloats(ctx, p, epilogue, out->mutable_data<float>());
      return absl::OkStatus();
    });
  }

 private:
  FusedOps fused_;
};

// A dense product: what is said of zeros in the operands is a hint.
class SparseMatMulKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(transpose_a_, init.Attr<bool>("transpose_a"));
    MR_ASSIGN_OR_RETURN(transpose_b_, init.Attr<bool>("transpose_b"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    if (a.rank() != 2) return InvalidArgument("a is not a matrix");
    if (b.rank() != 2) return InvalidArgument("b is not a matrix");
    Products p;
    p.transpose_x = transpose_a_;
    p.transpose_y = transpose_b_;
    p.m = a.dim(transpose_a_ ? 1 : 0);
    p.k = a.dim(transpose_a_ ? 0 : 1);
    p.n = b.dim(transpose_b_ ? 0 : 1);
    if (b.dim(transpose_b_ ? 1 : 0) != p.k) {
      return InvalidArgument("Matrix size incompatible: a: ", a.shape().ToString(), ", b: ", b.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({p.m, p.n}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    MR_ASSIGN_OR_RETURN(const Tensor x, AsFloat(ctx, a));
    MR_ASSIGN_OR_RETURN(const Tensor y, AsFloat(ctx, b));
    p.x = x.raw();
    p.y = y.raw();
    p.result = out->mutable_raw();
    return MultiplyMatrices(ctx, DType::kFloat, p);
  }

 private:
  static StatusOr<Tensor> AsFloat(KernelContext& ctx, const Tensor& t) {
    if (t.dtype() == DType::kFloat) return t;
    MR_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(DType::kFloat, t.shape()));
    FindConvert(t.dtype(), DType::kFloat).Run(t.raw(), wide.mutable_raw(), t.num_elements());
    return wide;
  }
  bool transpose_a_ = false, transpose_b_ = false;
};

template <bool kBroadcast>
class BatchMatMulKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(adj_x_, init.Attr<bool>("adj_x"));
    MR_ASSIGN_OR_RETURN(adj_y_, init.Attr<bool>("adj_y"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override { return Multiply(ctx, ctx.input(0), ctx.input(1)); }

 protected:
  Status Multiply(KernelContext& ctx, const Tensor& x, const Tensor& y) {
    MR_RETURN_IF_ERROR(CheckRanks(x, y));
    Products p;
    const int xr = x.rank(), yr = y.rank();
    p.m = x.dim(xr - (adj_x_ ? 1 : 2));
    p.k = x.dim(xr - (adj_x_ ? 2 : 1));
    p.n = y.dim(yr - (adj_y_ ? 2 : 1));
    if (y.dim(yr - (adj_y_ ? 1 : 2)) != p.k) {
      return InvalidArgument(
          "Matrix size-incompatible: In[0]: ", x.shape().ToString(), ", In[1]: ", y.shape().ToString());
    }
    BatchBroadcast batch;
    MR_RETURN_IF_ERROR(batch.Init(x.shape(), y.shape()));
    MR_ASSIGN_OR_RETURN(const Shape shape, batch.ResultShape(p.m, p.n));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    batch.MakeIndices();
    p.transpose_x = p.conjugate_x = adj_x_;
    p.transpose_y = p.conjugate_y = adj_y_;
    p.x = x.raw();
    p.y = y.raw();
    p.y_value = &y == &ctx.input(1) ? &y : nullptr;
    p.result = out->mutable_raw();
    p.x_count = batch.x_count();
    p.y_count = batch.y_count();
    p.count = batch.count();
    p.x_index = batch.x_index();
    p.y_index = batch.y_index();
    return MultiplyMatrices(ctx, x.dtype(), p);
  }

 private:
  static Status CheckRanks(const Tensor& x, const Tensor& y) {
    for (const Tensor* t : {&x, &y}) {
      if (t->rank() < 2) {
        return InvalidArgument("In[", t == &x ? 0 : 1, "] ndims must be >= 2, got shape ", t->shape().ToString());
      }
    }
    if constexpr (!kBroadcast) {
      if (x.rank() != y.rank()) {
        return InvalidArgument(
            "In[0] and In[1] has different ndims: ", x.shape().ToString(), " vs. ", y.shape().ToString());
      }
      for (int i = 0; i < x.rank() - 2; ++i) {
        if (x.dim(i) != y.dim(i)) {
          return InvalidArgument("In[0].dim(", i, ") and In[1].dim(", i, ") must be the same: ", x.shape().ToString(),
                                 " vs ", y.shape().ToString());
        }
      }
    }
    return absl::OkStatus();
  }

  bool adj_x_ = false, adj_y_ = false;
};

// Of one type, or of bytes, which become int32.
class MixedBatchMatMulKernel final : public BatchMatMulKernel<true> {
 public:
  Status Init(const KernelInit& init) override {
    const DType x = init.input_type(0), y = init.input_type(1), out = init.output_type(0);
    const auto is_byte = [](DType t) { return t == DType::kInt8 || t == DType::kUInt8; };
    if (!(x == y && y == out) && !(is_byte(x) && is_byte(y) && out == DType::kInt32)) {
      return Unimplemented("no products of ", DTypeName(x), " and ", DTypeName(y), " as ", DTypeName(out),
                           ": factors and product have one type, or are bytes with sums of int32");
    }
    return BatchMatMulKernel::Init(init);
  }
  Status Compute(KernelContext& ctx) override {
    if (ctx.input_dtype(0) == ctx.output_dtype(0)) return BatchMatMulKernel::Compute(ctx);
    MR_ASSIGN_OR_RETURN(const Tensor x, Widened(ctx, ctx.input(0)));
    MR_ASSIGN_OR_RETURN(const Tensor y, Widened(ctx, ctx.input(1)));
    return Multiply(ctx, x, y);
  }

 private:
  static StatusOr<Tensor> Widened(KernelContext& ctx, const Tensor& t) {
    MR_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(DType::kInt32, t.shape()));
    FindConvert(t.dtype(), DType::kInt32).Run(t.raw(), wide.mutable_raw(), t.num_elements());
    return wide;
  }
};

}  // namespace

void RegisterMatMulKernels(KernelRegistry& registry) {
  const std::vector<DType> types = Types("FC|IDX|i16");
  registry.Add<MatMulKernel>({.op = "MatMul", .types = {{"T", types}}, .cost = ProductCost});
  registry.Add<FusedMatMulKernel>({.op = "_FusedMatMul", .types = {{"T", Types("f32")}}, .cost = ProductCost});
  registry.Add<BatchMatMulKernel<false>>({.op = "BatchMatMul", .types = {{"T", types}}, .cost = ProductCost});
  registry.Add<BatchMatMulKernel<true>>({.op = "BatchMatMulV2", .types = {{"T", types}}, .cost = ProductCost});
  const std::vector<DType> mixed = Types("FC|IDX|i16|i8|u8");
  registry.Add<MixedBatchMatMulKernel>(
      {.op = "BatchMatMulV3", .types = {{"Ta", mixed}, {"Tb", mixed}, {"Tout", types}}, .cost = ProductCost});
  registry.Add<SparseMatMulKernel>(
      {.op = "SparseMatMul", .types = {{"Ta", Types("f32|bf16")}, {"Tb", Types("f32|bf16")}}, .cost = ProductCost});
}

}  // namespace millrace
