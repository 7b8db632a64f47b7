// SPDX-License-Identifier: Apache-2.0
// Kernels of Qr and MatrixSolveLs.
#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/linalg/linalg.h"
#include "kernels/cpu/linalg/linalg_spectral.h"
#include "kernels/cpu/math/math_convert.h"

namespace millrace {
namespace {

StatusOr<Shape> WithMatrix(const Shape& in, int64_t rows, int64_t columns) {
  const auto batch = in.dims().first(static_cast<size_t>(in.rank() - 2));
  std::vector<int64_t> dims(batch.begin(), batch.end());
  dims.push_back(rows);
  dims.push_back(columns);
  return Shape::Make(dims);
}

// q is m x q_columns, r is q_columns x n.
template <typename T>
Status QrOf(const KernelContext* ctx, const T* in, int64_t m, int64_t n, int64_t q_columns, T* q, T* r) {
  const int64_t least = std::min(m, n), work_size = dense::ReflectionWork(std::max(n, q_columns));
  std::fill(q, q + m * q_columns, T(0));
  for (int64_t i = 0; i < q_columns; ++i) q[i * q_columns + i] = T(1);
  if (least == 0) return absl::OkStatus();
  Workspace memory;
  memory.Plan<T>(m * n);
  memory.Plan<T>(m * least);
  memory.Plan<T>(least);
  memory.Plan<T>(work_size);
  MR_RETURN_IF_ERROR(memory.Allocate());
  T* a = memory.Take<T>(m * n);
  dense::Reflections<T> reflections{memory.Take<T>(m * least), memory.Take<T>(least), least, m, 0};
  T* work = memory.Take<T>(work_size);
  std::copy(in, in + m * n, a);
  dense::FactorizeQr(ctx, a, m, n, reflections, work);
  std::copy(a, a + q_columns * n, r);
  dense::ApplyReflections(ctx, reflections, q, q_columns, q_columns, work);
  return absl::OkStatus();
}

class QrKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(full_, init.Attr<bool>("full_matrices"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    MR_RETURN_IF_ERROR(CheckMatrices(in));
    const int64_t m = in.dim(in.rank() - 2), n = in.dim(in.rank() - 1), columns = full_ ? m : std::min(m, n);
    MR_ASSIGN_OR_RETURN(const Shape q_shape, WithMatrix(in.shape(), m, columns));
    MR_ASSIGN_OR_RETURN(const Shape r_shape, WithMatrix(in.shape(), columns, n));
    MR_ASSIGN_OR_RETURN(Tensor * q, ctx.AllocateOutput(0, q_shape));
    MR_ASSIGN_OR_RETURN(Tensor * r, ctx.AllocateOutput(1, r_shape));
    if (q->num_elements() == 0) return absl::OkStatus();
    if (in.dtype() != DType::kHalf) return Run(ctx, in, columns, q, r);
    MR_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(DType::kFloat, in.shape()));
    MR_ASSIGN_OR_RETURN(Tensor wide_q, ctx.AllocateTemp(DType::kFloat, q_shape));
    MR_ASSIGN_OR_RETURN(Tensor wide_r, ctx.AllocateTemp(DType::kFloat, r_shape));
    ConvertElements(ctx, DType::kHalf, DType::kFloat, in.raw(), wide.mutable_raw(), in.num_elements());
    MR_RETURN_IF_ERROR(Run(ctx, wide, columns, &wide_q, &wide_r));
    ConvertElements(ctx, DType::kFloat, DType::kHalf, wide_q.raw(), q->mutable_raw(), q->num_elements());
    ConvertElements(ctx, DType::kFloat, DType::kHalf, wide_r.raw(), r->mutable_raw(), r->num_elements());
    return absl::OkStatus();
  }

 private:
  static Status Run(KernelContext& ctx, const Tensor& in, int64_t columns, Tensor* q, Tensor* r) {
    const int64_t m = in.dim(in.rank() - 2), n = in.dim(in.rank() - 1);
    return WithMatrixType(in.dtype(), [&](auto zero) {
      using T = decltype(zero);
      return TryEachMatrix(
          ctx, q->num_elements() / (m * columns), std::max(m, n), [&](int64_t i, const KernelContext* inner) {
            return QrOf(inner, in.data<T>() + i * m * n, m, n, columns, q->mutable_data<T>() + i * m * columns,
                        r->mutable_data<T>() + i * columns * n);
          });
    });
  }

  bool full_ = false;
};

// One equation: minimise |A X - B|^2 + l2 |X|^2 with A m x n, B m x k.
template <typename T>
struct Equation {
  const T *a, *b;
  T* x;
  int64_t m, n, k;
};

// By the normal equations: (A^H A + l2) X = A^H B, or X = A^H Y with (A A^H + l2) Y = B where A is wide.
template <typename T>
Status SolveFast(const KernelContext* ctx, const Equation<T>& q, double l2) {
  const int64_t least = std::min(q.m, q.n);
  const bool wide = q.m < q.n;
  Workspace memory;
  memory.Plan<T>(least * least);
  memory.Plan<T>(q.m * q.k);
  MR_RETURN_IF_ERROR(memory.Allocate());
  T* gram = memory.Take<T>(least * least);
  const dense::View<T> a{q.a, q.n}, adjoint{q.a, q.n, true};
  dense::SubtractProduct(ctx, wide ? a : adjoint, wide ? adjoint : a, least, least, std::max(q.m, q.n), gram, least);
  for (int64_t i = 0; i < least * least; ++i) gram[i] = -gram[i];
  for (int64_t i = 0; i < least; ++i) gram[i * least + i] += T(static_cast<dense::RealOf<T>>(l2));
  T* y = wide ? memory.Take<T>(q.m * q.k) : q.x;
  if (wide) {
    std::copy(q.b, q.b + q.m * q.k, y);
  } else {
    std::fill(y, y + q.n * q.k, T(0));
    dense::SubtractProduct(ctx, adjoint, dense::View<T>{q.b, q.k}, q.n, q.k, q.m, y, q.k);
    for (int64_t i = 0; i < q.n * q.k; ++i) y[i] = -y[i];
  }
  if (!dense::Cholesky(ctx, gram, least)) {
    return InvalidArgument(
        "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or a larger l2_regularizer.");
  }
  dense::SolveTriangle(ctx, dense::View<T>{gram, least}, true, false, least, y, q.k, q.k);
  dense::SolveTriangle(ctx, dense::View<T>{gram, least, true}, false, false, least, y, q.k, q.k);
  if (!wide) return absl::OkStatus();
  std::fill(q.x, q.x + q.n * q.k, T(0));
  dense::SubtractProduct(ctx, adjoint, dense::View<T>{y, q.k}, q.n, q.k, q.m, q.x, q.k);
  for (int64_t i = 0; i < q.n * q.k; ++i) q.x[i] = -q.x[i];
  return absl::OkStatus();
}

// The shortest of the best: X = V D^+ U^H B, where singular values that are nothing beside the largest count as none.
template <typename T>
Status SolveSlowly(const KernelContext* ctx, const CancellationManager* cancellation, const Equation<T>& q) {
  using R = dense::RealOf<T>;
  const int64_t least = std::min(q.m, q.n), most = std::max(q.m, q.n);
  Workspace memory;
  memory.Plan<T>(least);
  memory.Plan<T>(q.m * least);
  memory.Plan<T>(q.n * least);
  memory.Plan<T>(least * q.k);
  MR_RETURN_IF_ERROR(memory.Allocate());
  T *s = memory.Take<T>(least), *u = memory.Take<T>(q.m * least), *v = memory.Take<T>(q.n * least);
  T* y = memory.Take<T>(least * q.k);
  const bool wide = q.m < q.n;
  dense::SvdResult<T> result{s, wide ? v : u, wide ? u : v, least, least};
  dense::Svd<T> svd(ctx, cancellation, most, least);
  MR_RETURN_IF_ERROR(svd.Run(q.a, wide, result));
  dense::SubtractProduct(ctx, dense::View<T>{u, least, true}, dense::View<T>{q.b, q.k}, least, q.k, q.m, y, q.k);
  const R threshold = std::real(s[0]) * std::numeric_limits<R>::epsilon() * static_cast<R>(least);
  for (int64_t i = 0; i < least; ++i) {
    const R value = std::real(s[i]);
    for (int64_t j = 0; j < q.k; ++j) y[i * q.k + j] = value <= threshold ? T(0) : y[i * q.k + j] / value;
  }
  std::fill(q.x, q.x + q.n * q.k, T(0));
  dense::SubtractProduct(ctx, dense::View<T>{v, least}, dense::View<T>{y, q.k}, q.n, q.k, least, q.x, q.k);
  return absl::OkStatus();
}

class SolveLsKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(fast_, init.Attr<bool>("fast"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1), &l2 = ctx.input(2);
    MR_RETURN_IF_ERROR(Check(a, b));
    if (l2.rank() != 0) return InvalidArgument("l2_regularizer must be a scalar, got shape ", l2.shape().ToString());
    const double weight = *l2.data<double>();
    if (!(weight >= 0)) return InvalidArgument("l2_regularizer must be >= 0, got ", weight);
    const int64_t m = a.dim(a.rank() - 2), n = a.dim(a.rank() - 1), k = b.dim(b.rank() - 1);
    MR_ASSIGN_OR_RETURN(const Shape shape, WithMatrix(a.shape(), n, k));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    return WithMatrixType(a.dtype(), [&](auto zero) {
      using T = decltype(zero);
      if (m == 0) return std::fill_n(out->mutable_data<T>(), out->num_elements(), T(0)), absl::OkStatus();
      return TryEachMatrix(
          ctx, out->num_elements() / (n * k), std::max(m, n), [&](int64_t i, const KernelContext* inner) {
            const Equation<T> q{
                a.data<T>() + i * m * n, b.data<T>() + i * m * k, out->mutable_data<T>() + i * n * k, m, n, k};
            return fast_ ? SolveFast(inner, q, weight) : SolveSlowly(inner, ctx.step().cancellation, q);
          });
    });
  }

 private:
  static Status Check(const Tensor& a, const Tensor& b) {
    MR_RETURN_IF_ERROR(CheckMatrices(a));
    if (a.rank() != b.rank()) return InvalidArgument("All input tensors must have the same rank.");
    for (int i = 0; i < a.rank() - 2; ++i) {
      if (a.dim(i) == b.dim(i)) continue;
      return InvalidArgument("All input tensors must have the same outer dimensions, got ", a.shape().ToString(),
                             " and ", b.shape().ToString());
    }
    if (a.dim(a.rank() - 2) == b.dim(b.rank() - 2)) return absl::OkStatus();
    return InvalidArgument("Input matrix and right-hand side must have the same number of rows, got ",
                           a.shape().ToString(), " and ", b.shape().ToString());
  }

  bool fast_ = true;
};

}  // namespace

void RegisterLeastSquaresKernels(KernelRegistry& registry) {
  registry.Add<QrKernel>({.op = "Qr", .types = {{"T", Types("HFD|CPX")}}, .cost = CubicCost});
  registry.Add<SolveLsKernel>({.op = "MatrixSolveLs", .types = {{"T", Types("FD|CPX")}}, .cost = CubicCost});
  registry.Add<SolveLsKernel>({.op = "BatchMatrixSolveLs", .types = {{"T", Types("FD")}}, .cost = CubicCost});
}

}  // namespace millrace
