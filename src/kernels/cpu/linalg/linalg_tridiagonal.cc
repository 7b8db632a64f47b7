// SPDX-License-Identifier: Apache-2.0
// CPU kernels: TridiagonalMatMul, TridiagonalSolve. Diagonals are rows of length m; the last element of the upper and
// the first of the lower one are not used.
#include "base/stop_scope.h"
#include "kernels/cpu/linalg/linalg.h"
#include "kernels/cpu/linalg/linalg_batch.h"
#include "kernels/cpu/linalg/linalg_dense.h"
#include "kernels/cpu/linalg/linalg_stack.h"

namespace millrace {
namespace {

using dense::Quotient;
using dense::Times;

// y = A x for matrices of m x n.
template <typename T>
void Multiply(const T* upper, const T* main, const T* lower, const T* x, int64_t m, int64_t n, T* y) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T v = Times(main[i], x[i * n + j]);
      if (i + 1 < m) v += Times(upper[i], x[(i + 1) * n + j]);
      if (i > 0) v += Times(lower[i], x[(i - 1) * n + j]);
      y[i * n + j] = v;
    }
  }
}

Status MatMul(KernelContext& ctx) {
  static constexpr const char* kNames[] = {"superdiag", "maindiag", "subdiag"};
  const Tensor& x = ctx.input(3);
  MR_RETURN_IF_ERROR(CheckMatrices(x));
  const int64_t m = x.dim(x.rank() - 2), n = x.dim(x.rank() - 1);
  for (int i = 0; i < 3; ++i) {
    MR_ASSIGN_OR_RETURN(Shape want, x.shape().WithDim(x.rank() - 2, 1));
    MR_ASSIGN_OR_RETURN(want, want.WithDim(x.rank() - 1, m));
    if (ctx.input(i).shape() == want) continue;
    return InvalidArgument(kNames[i], " must have shape ", want.ToString(), " for rhs of shape ", x.shape().ToString(),
                           ", got ", ctx.input(i).shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, x.shape()));
  if (out->num_elements() == 0) return absl::OkStatus();
  return WithMatrixType(x.dtype(), [&]<typename T>(T) {
    ctx.ParallelFor(out->num_elements() / (m * n), 3.0 * static_cast<double>(m * n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Multiply(ctx.input(0).data<T>() + i * m, ctx.input(1).data<T>() + i * m, ctx.input(2).data<T>() + i * m,
                 x.data<T>() + i * m * n, m, n, out->mutable_data<T>() + i * m * n);
      }
    });
    return absl::OkStatus();
  });
}

// x becomes A^-1 x. Row i of what is left of A holds two elements beyond the diagonal once rows were exchanged.
template <typename T>
bool SolvePivoting(const T* diagonals, int64_t m, int64_t n, T* x) {
  std::vector<T> main(diagonals + m, diagonals + 2 * m), upper(diagonals, diagonals + m),
      second(static_cast<size_t>(m));
  const T* lower = diagonals + 2 * m;
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  upper[at(m - 1)] = 0;
  StopNowAndThen pause;
  for (int64_t i = 0; i + 1 < m; ++i) {
    pause(1 + n);
    T below = lower[i + 1], below_main = main[at(i + 1)], below_upper = upper[at(i + 1)];
    if (dense::SizeOf(main[at(i)]) < dense::SizeOf(below)) {
      std::swap(main[at(i)], below);
      std::swap(upper[at(i)], below_main);
      second[at(i)] = below_upper;
      below_upper = 0;
      std::swap_ranges(x + i * n, x + (i + 1) * n, x + (i + 1) * n);
    }
    if (main[at(i)] == T(0)) return false;
    const T factor = Quotient(below, main[at(i)]);
    main[at(i + 1)] = below_main - Times(factor, upper[at(i)]);
    upper[at(i + 1)] = below_upper - Times(factor, second[at(i)]);
    for (int64_t j = 0; j < n; ++j) x[(i + 1) * n + j] -= Times(factor, x[i * n + j]);
  }
  for (int64_t i = m - 1; i >= 0; --i) {
    pause(1 + n);
    if (main[at(i)] == T(0)) return false;
    for (int64_t j = 0; j < n; ++j) {
      T v = x[i * n + j];
      if (i + 1 < m) v -= Times(upper[at(i)], x[(i + 1) * n + j]);
      if (i + 2 < m) v -= Times(second[at(i)], x[(i + 2) * n + j]);
      x[i * n + j] = Quotient(v, main[at(i)]);
    }
  }
  return true;
}

// Thomas's algorithm: no rows are exchanged.
template <typename T>
bool SolvePlain(const T* diagonals, int64_t m, int64_t n, T* x) {
  const T *upper = diagonals, *main = diagonals + m, *lower = diagonals + 2 * m;
  std::vector<T> u(static_cast<size_t>(m));
  StopNowAndThen pause;
  for (int64_t i = 0; i < m; ++i) {
    pause(1 + n);
    const T pivot = i == 0 ? main[0] : main[i] - Times(lower[i], u[static_cast<size_t>(i - 1)]);
    if (pivot == T(0)) return false;
    if (i + 1 < m) u[static_cast<size_t>(i)] = Quotient(upper[i], pivot);
    for (int64_t j = 0; j < n; ++j) {
      const T v = i == 0 ? x[j] : x[i * n + j] - Times(lower[i], x[(i - 1) * n + j]);
      x[i * n + j] = Quotient(v, pivot);
    }
  }
  for (int64_t i = m - 2; i >= 0; --i) {
    pause(1 + n);
    for (int64_t j = 0; j < n; ++j) x[i * n + j] -= Times(u[static_cast<size_t>(i)], x[(i + 1) * n + j]);
  }
  return true;
}

class SolveKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(pivoting_, init.Attr<bool>("partial_pivoting"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &diagonals = ctx.input(0), &rhs = ctx.input(1);
    MR_RETURN_IF_ERROR(CheckMatrices(diagonals));
    MR_RETURN_IF_ERROR(CheckMatrices(rhs));
    const int64_t m = diagonals.dim(diagonals.rank() - 1), n = rhs.dim(rhs.rank() - 1);
    if (diagonals.dim(diagonals.rank() - 2) != 3) {
      return InvalidArgument("Expected diagonals to have 3 rows, got shape ", diagonals.shape().ToString());
    }
    if (rhs.dim(rhs.rank() - 2) != m) {
      return InvalidArgument("The length of diagonals must match the number of rows of rhs, got ",
                             diagonals.shape().ToString(), " and ", rhs.shape().ToString());
    }
    BatchBroadcast batch;
    MR_RETURN_IF_ERROR(batch.Init(diagonals.shape(), rhs.shape()));
    MR_ASSIGN_OR_RETURN(const Shape shape, batch.ResultShape(m, n));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    batch.MakeIndices();
    return WithMatrixType(rhs.dtype(), [&]<typename T>(T) {
      const double cost = 10.0 * static_cast<double>(m * n + m);
      ctx.ParallelFor(batch.count(), cost, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* a = diagonals.data<T>() + batch.x_of(i) * 3 * m;
          T* x = out->mutable_data<T>() + i * m * n;
          std::copy_n(rhs.data<T>() + batch.y_of(i) * m * n, m * n, x);
          const bool solved = pivoting_ ? SolvePivoting(a, m, n, x) : SolvePlain(a, m, n, x);
          using Real = decltype(std::abs(T()));
          if (!solved) std::fill_n(x, m * n, T(std::numeric_limits<Real>::quiet_NaN()));
        }
      });
      return absl::OkStatus();
    });
  }

 private:
  bool pivoting_ = true;
};

}  // namespace

void RegisterTridiagonalKernels(KernelRegistry& r) {
  const std::vector<DType> types = Types("CPX|FD");
  r.AddFn({.op = "TridiagonalMatMul", .types = {{"T", types}}}, MatMul);
  r.Add<SolveKernel>({.op = "TridiagonalSolve", .types = {{"T", types}}});
}

}  // namespace millrace
