// SPDX-License-Identifier: Apache-2.0
// Kernels of SelfAdjointEig, SelfAdjointEigV2 and Svd.
#include "kernels/cpu/linalg/linalg_spectral.h"

#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/linalg/linalg.h"

namespace millrace {
namespace {

// The shape of `in` with its last two dimensions replaced.
StatusOr<Shape> WithMatrix(const Shape& in, std::initializer_list<int64_t> matrix) {
  const auto batch = in.dims().first(static_cast<size_t>(in.rank() - 2));
  std::vector<int64_t> dims(batch.begin(), batch.end());
  dims.insert(dims.end(), matrix);
  return Shape::Make(dims);
}

int64_t CountMatrices(const Shape& in) {
  int64_t count = 1;
  for (int i = 0; i < in.rank() - 2; ++i) count *= in.dim(i);
  return count;
}

class EigenKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(vectors_, init.Attr<bool>("compute_v"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    MR_RETURN_IF_ERROR(CheckSquare(in));
    const int64_t n = in.dim(in.rank() - 1);
    MR_ASSIGN_OR_RETURN(const Shape value_shape, WithMatrix(in.shape(), {n}));
    MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(0, value_shape));
    MR_ASSIGN_OR_RETURN(Tensor * vectors, ctx.AllocateOutput(1, vectors_ ? in.shape() : Shape::Vector(0)));
    if (in.num_elements() == 0) return absl::OkStatus();
    return WithMatrixType(in.dtype(), [&](auto zero) {
      using T = decltype(zero);
      return TryEachMatrix(ctx, in.num_elements() / (n * n), n, [&](int64_t i, const KernelContext* inner) {
        return dense::Eigen(
            inner, ctx.step().cancellation, in.data<T>() + i * n * n, n, values->mutable_data<T>() + i * n,
            vectors_ ? vectors->mutable_data<T>() + i * n * n : nullptr);
      });
    });
  }

 private:
  bool vectors_ = true;
};

// Eigenvalues in the first row, eigenvectors below.
Status OldEigen(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  MR_RETURN_IF_ERROR(CheckSquare(in));
  const int64_t n = in.dim(in.rank() - 1);
  MR_ASSIGN_OR_RETURN(const Shape shape, WithMatrix(in.shape(), {n + 1, n}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (in.num_elements() == 0) return absl::OkStatus();
  return WithMatrixType(in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return TryEachMatrix(ctx, in.num_elements() / (n * n), n, [&](int64_t i, const KernelContext* inner) {
      T* to = out->mutable_data<T>() + i * (n + 1) * n;
      return dense::Eigen(inner, ctx.step().cancellation, in.data<T>() + i * n * n, n, to, to + n);
    });
  });
}

class SvdKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(vectors_, init.Attr<bool>("compute_uv"));
    MR_ASSIGN_OR_RETURN(full_, init.Attr<bool>("full_matrices"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    MR_RETURN_IF_ERROR(CheckMatrices(in));
    const int64_t m = in.dim(in.rank() - 2), n = in.dim(in.rank() - 1), least = std::min(m, n);
    const int64_t u_columns = full_ ? m : least, v_columns = full_ ? n : least;
    MR_ASSIGN_OR_RETURN(const Shape s_shape, WithMatrix(in.shape(), {least}));
    Shape u_shape = Shape::Vector(0), v_shape = Shape::Vector(0);
    if (vectors_) {
      MR_ASSIGN_OR_RETURN(u_shape, WithMatrix(in.shape(), {m, u_columns}));
      MR_ASSIGN_OR_RETURN(v_shape, WithMatrix(in.shape(), {n, v_columns}));
    }
    MR_ASSIGN_OR_RETURN(Tensor * s, ctx.AllocateOutput(0, s_shape));
    MR_ASSIGN_OR_RETURN(Tensor * u, ctx.AllocateOutput(1, u_shape));
    MR_ASSIGN_OR_RETURN(Tensor * v, ctx.AllocateOutput(2, v_shape));
    const int64_t count = CountMatrices(in.shape());
    return WithMatrixType(in.dtype(), [&](auto zero) {
      using T = decltype(zero);
      if (in.num_elements() == 0) return SetIdentities<T>(*u), SetIdentities<T>(*v), absl::OkStatus();
      return TryEachMatrix(ctx, count, std::max(m, n), [&](int64_t i, const KernelContext* inner) {
        dense::SvdResult<T> result;
        result.values = s->mutable_data<T>() + i * least;
        if (vectors_) {
          result.u = u->mutable_data<T>() + i * m * u_columns;
          result.v = v->mutable_data<T>() + i * n * v_columns;
        }
        result.u_columns = u_columns;
        result.v_columns = v_columns;
        const bool wide = m < n;  // A^H = V D U^H
        if (wide) {
          std::swap(result.u, result.v);
          std::swap(result.u_columns, result.v_columns);
        }
        dense::Svd<T> svd(inner, ctx.step().cancellation, std::max(m, n), least);
        return svd.Run(in.data<T>() + i * m * n, wide, result);
      });
    });
  }

 private:
  // The vectors of a matrix without elements.
  template <typename T>
  static void SetIdentities(Tensor& t) {
    if (t.num_elements() == 0 || t.rank() < 2) return;
    const int64_t n = t.dim(t.rank() - 1);
    for (int64_t i = 0; i < t.num_elements(); ++i) t.mutable_data<T>()[i] = T(i / n % n == i % n ? 1 : 0);
  }

  bool vectors_ = true, full_ = false;
};

}  // namespace

void RegisterSpectralKernels(KernelRegistry& registry) {
  const std::vector<DType> all = Types("FD|CPX"), real = Types("FD");
  for (const char* batch : {"", "Batch"}) {
    auto name = [&](const char* op) { return absl::StrCat(batch, op); };
    registry.AddFn({.op = name("SelfAdjointEig"), .types = {{"T", real}}, .cost = CubicCost}, &OldEigen);
    registry.Add<EigenKernel>(
        {.op = name("SelfAdjointEigV2"), .types = {{"T", *batch ? real : all}}, .cost = CubicCost});
    registry.Add<SvdKernel>({.op = name("Svd"), .types = {{"T", all}}, .cost = CubicCost});
  }
}

}  // namespace millrace
