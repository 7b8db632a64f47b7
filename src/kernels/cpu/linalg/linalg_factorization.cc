// SPDX-License-Identifier: Apache-2.0
// Kernels of Cholesky, CholeskyGrad, MatrixDeterminant, LogMatrixDeterminant, Lu, MatrixInverse, MatrixSolve,
// MatrixTriangularSolve.
#include <atomic>
#include <cstring>

#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/linalg/linalg.h"
#include "kernels/cpu/linalg/linalg_batch.h"
#include "kernels/cpu/linalg/linalg_dense.h"
#include "kernels/cpu/linalg/linalg_stack.h"
#include "kernels/cpu/math/math_convert.h"

namespace millrace {
namespace {

template <typename T>
void ClearUpper(T* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::fill(a + i * n + i + 1, a + (i + 1) * n, T(0));
}

Status CholeskyCompute(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  MR_RETURN_IF_ERROR(CheckSquare(in));
  const Shape shape = in.shape();
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  return WithMatrixType(in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = shape.dim(shape.rank() - 1);
    const T* from = in.data<T>();
    T* to = out->mutable_data<T>();
    ForEachMatrix(ctx, shape.num_elements() / (n * n), n, [&](int64_t i, const KernelContext* inner) {
      T* a = to + i * n * n;
      std::copy(from + i * n * n, from + (i + 1) * n * n, a);
      if (!dense::Cholesky(inner, a, n)) {
        std::fill(a, a + n * n, T(std::numeric_limits<decltype(std::abs(zero))>::quiet_NaN()));
      }
      ClearUpper(a, n);
    });
    return absl::OkStatus();
  });
}

// (S + S^T) / 2 with S = L^-T P L^-1, P = the lower triangle of L^T G with its diagonal halved.
template <typename T>
void CholeskyGradient(const KernelContext* ctx, const T* l, const T* grad, int64_t n, T* work, T* out) {
  const dense::View<T> adjoint{l, n, true};
  // Only the lower triangles of L, G and the product count.
  std::fill(out, out + n * n, T(0));
  // Some rows of L and G at a time, in front of whose triangles all elements count: their share of -L^T G.
  for (int64_t begin = 0; begin < n; begin += dense::kBlock) {
    const int64_t end = std::min(begin + dense::kBlock, n);
    dense::SubtractProduct(ctx, dense::View<T>{l + begin * n, n, true}, dense::View<T>{grad + begin * n, n}, begin,
                           begin, end - begin, out, n);
    for (int64_t p = begin; p < end; ++p) {
      for (int64_t i = begin; i <= p; ++i) {
        const T v = l[p * n + i];
        for (int64_t j = 0; j <= i; ++j) out[i * n + j] -= v * grad[p * n + j];
      }
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) out[i * n + j] = -out[i * n + j];
    out[i * n + i] *= T(-0.5);
    std::fill(out + i * n + i + 1, out + (i + 1) * n, T(0));
  }
  dense::SolveTriangle(ctx, adjoint, false, false, n, out, n, n);
  dense::CopyMatrix(out, n, true, work);
  dense::SolveTriangle(ctx, adjoint, false, false, n, work, n, n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) out[i * n + j] = T(0.5) * (work[i * n + j] + work[j * n + i]);
  }
}

Status CholeskyGradCompute(KernelContext& ctx) {
  const Tensor& l = ctx.input(0);
  const Tensor& grad = ctx.input(1);
  MR_RETURN_IF_ERROR(CheckSquare(l));
  if (l.shape() != grad.shape()) {
    return InvalidArgument(
        "Inputs must have the same shape, got ", l.shape().ToString(), " and ", grad.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, l.shape()));
  if (l.num_elements() == 0) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(Tensor work, ctx.AllocateTemp(l.dtype(), l.shape()));
  return WithMatrixType(l.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = l.dim(l.rank() - 1), size = n * n;
    if constexpr (dense::kIsReal<T>) {
      ForEachMatrix(ctx, l.num_elements() / size, n, [&](int64_t i, const KernelContext* inner) {
        CholeskyGradient(inner, l.data<T>() + i * size, grad.data<T>() + i * size, n, work.mutable_data<T>() + i * size,
                         out->mutable_data<T>() + i * size);
      });
    }
    return absl::OkStatus();
  });
}

// fn(number, factors, pivots) for each matrix, factorised.
template <typename T, typename Fn>
Status ForEachFactorized(KernelContext& ctx, const Tensor& in, int64_t count, Fn fn) {
  const int64_t n = in.dim(in.rank() - 1), size = n * n;
  MR_ASSIGN_OR_RETURN(Tensor work, ctx.AllocateTemp(in.dtype(), in.shape()));
  MR_ASSIGN_OR_RETURN(const Shape pivot_shape, Shape::Make({count, n}));
  MR_ASSIGN_OR_RETURN(Tensor pivots, ctx.AllocateTemp(DType::kInt64, pivot_shape));
  ForEachMatrix(ctx, count, n, [&](int64_t i, const KernelContext* inner) {
    T* a = work.mutable_data<T>() + i * size;
    int64_t* p = pivots.mutable_data<int64_t>() + i * n;
    std::copy(in.data<T>() + i * size, in.data<T>() + (i + 1) * size, a);
    (void)dense::Factorize(inner, a, n, p);
    fn(i, a, p);
  });
  return absl::OkStatus();
}

Status DeterminantCompute(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  MR_RETURN_IF_ERROR(CheckSquare(in));
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(in.shape().dims().first(static_cast<size_t>(in.rank() - 2))));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  const int64_t n = in.dim(in.rank() - 1);
  return WithMatrixType(in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return ForEachFactorized<T>(ctx, in, shape.num_elements(), [&](int64_t i, const T* a, const int64_t* p) {
      out->mutable_data<T>()[i] = dense::DeterminantOfFactors(a, p, n);
    });
  });
}

// pivot / size, for infinities too where they are real.
template <typename T, typename R>
T Direction(T pivot, R size) {
  if constexpr (dense::kIsReal<T>) {
    return std::isinf(size) ? std::copysign(T(1), pivot) : pivot / size;
  } else {
    return pivot / size;
  }
}

// The determinant as its direction and the logarithm of its size.
Status LogDeterminantCompute(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  MR_RETURN_IF_ERROR(CheckSquare(in));
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(in.shape().dims().first(static_cast<size_t>(in.rank() - 2))));
  MR_ASSIGN_OR_RETURN(Tensor * sign, ctx.AllocateOutput(0, shape));
  MR_ASSIGN_OR_RETURN(Tensor * log, ctx.AllocateOutput(1, shape));
  const int64_t n = in.dim(in.rank() - 1);
  return WithMatrixType(in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return ForEachFactorized<T>(ctx, in, shape.num_elements(), [&](int64_t i, const T* a, const int64_t* p) {
      T direction = 1;
      decltype(std::abs(zero)) size = 0;
      for (int64_t k = 0; k < n; ++k) {
        const T pivot = a[k * n + k];
        const auto absolute = std::abs(pivot);
        if (p[k] != k) direction = -direction;
        size += std::log(absolute);
        direction = absolute == 0 ? T(0) : dense::Times(direction, Direction(pivot, absolute));
      }
      sign->mutable_data<T>()[i] = direction;
      log->mutable_data<T>()[i] = size;
    });
  });
}

template <typename Index>
void PermutationOf(const int64_t* pivots, int64_t n, Index* out) {
  for (int64_t k = 0; k < n; ++k) out[k] = static_cast<Index>(k);
  for (int64_t k = 0; k < n; ++k) std::swap(out[k], out[pivots[k]]);
}

Status LuCompute(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  MR_RETURN_IF_ERROR(CheckSquare(in));
  const int64_t n = in.dim(in.rank() - 1);
  const auto rows = in.shape().dims().first(static_cast<size_t>(in.rank() - 1));
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(rows));
  MR_ASSIGN_OR_RETURN(Tensor * lu, ctx.AllocateOutput(0, in.shape()));
  MR_ASSIGN_OR_RETURN(Tensor * order, ctx.AllocateOutput(1, shape));
  if (in.num_elements() == 0) return absl::OkStatus();
  std::atomic<bool> regular = true;
  MR_RETURN_IF_ERROR(WithMatrixType(in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return ForEachFactorized<T>(ctx, in, in.num_elements() / (n * n), [&](int64_t i, const T* a, const int64_t* p) {
      for (int64_t k = 0; k < n; ++k) {
        if (std::abs(a[k * n + k]) == 0) regular = false;
      }
      std::copy(a, a + n * n, lu->mutable_data<T>() + i * n * n);
      if (order->dtype() == DType::kInt32) {
        PermutationOf(p, n, order->mutable_data<int32_t>() + i * n);
      } else {
        PermutationOf(p, n, order->mutable_data<int64_t>() + i * n);
      }
    });
  }));
  return regular ? absl::OkStatus() : InvalidArgument("Input is not invertible.");
}

// X = op(matrix)^-1 X for each matrix; `x` holds the right-hand sides.
template <typename T>
Status SolveAll(KernelContext& ctx, const T* matrix, int64_t count, int64_t n, int64_t columns, bool adjoint, T* x,
                const char* singular) {
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({count, n, n}));
  MR_ASSIGN_OR_RETURN(Tensor work, ctx.AllocateTemp(DTypeOf<T>::value, shape));
  MR_ASSIGN_OR_RETURN(Tensor pivots, ctx.AllocateTemp(DType::kInt64, Shape::Vector(count * n)));
  std::atomic<bool> regular = true;
  ForEachMatrix(ctx, count, n, [&](int64_t i, const KernelContext* inner) {
    T* a = work.mutable_data<T>() + i * n * n;
    int64_t* p = pivots.mutable_data<int64_t>() + i * n;
    dense::CopyMatrix(matrix + i * n * n, n, adjoint, a);
    if (!dense::Factorize(inner, a, n, p)) {
      regular = false;
      return;
    }
    dense::SolveFactorized(inner, a, p, n, x + i * n * columns, columns);
  });
  return regular ? absl::OkStatus() : InvalidArgument(singular);
}

template <typename T>
void SetIdentities(T* x, int64_t count, int64_t n) {
  std::fill(x, x + count * n * n, T(0));
  for (int64_t i = 0; i < count * n; ++i) x[i * n + i % n] = T(1);
}

class InverseKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(adjoint_, init.Attr<bool>("adjoint"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    MR_RETURN_IF_ERROR(CheckSquare(in));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    if (in.num_elements() == 0) return absl::OkStatus();
    if (in.dtype() != DType::kHalf) return Invert(ctx, in, out);
    MR_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(DType::kFloat, in.shape()));
    MR_ASSIGN_OR_RETURN(Tensor result, ctx.AllocateTemp(DType::kFloat, in.shape()));
    ConvertElements(ctx, DType::kHalf, DType::kFloat, in.raw(), wide.mutable_raw(), in.num_elements());
    MR_RETURN_IF_ERROR(Invert(ctx, wide, &result));
    ConvertElements(ctx, DType::kFloat, DType::kHalf, result.raw(), out->mutable_raw(), in.num_elements());
    return absl::OkStatus();
  }

 private:
  Status Invert(KernelContext& ctx, const Tensor& in, Tensor* out) const {
    return WithMatrixType(in.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const int64_t n = in.dim(in.rank() - 1), count = in.num_elements() / (n * n);
      SetIdentities(out->mutable_data<T>(), count, n);
      return SolveAll(ctx, in.data<T>(), count, n, n, adjoint_, out->mutable_data<T>(), "Input is not invertible.");
    });
  }

  bool adjoint_ = false;
};

// Row counts of matrix and right-hand side.
Status CheckEquation(const Tensor& a, const Tensor& b) {
  MR_RETURN_IF_ERROR(CheckSquare(a));
  if (b.rank() < 2) return InvalidArgument("Right-hand side must have rank >= 2, got shape ", b.shape().ToString());
  if (a.dim(a.rank() - 1) != b.dim(b.rank() - 2)) {
    return InvalidArgument("Input matrix and right-hand side must have the same number of rows, got ",
                           a.shape().ToString(), " and ", b.shape().ToString());
  }
  return absl::OkStatus();
}

class SolveKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(adjoint_, init.Attr<bool>("adjoint"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    MR_RETURN_IF_ERROR(CheckEquation(a, b));
    if (a.rank() != b.rank()) return InvalidArgument("All input tensors must have the same rank.");
    for (int i = 0; i < a.rank() - 2; ++i) {
      if (a.dim(i) != b.dim(i)) {
        return InvalidArgument("All input tensors must have the same outer dimensions, got ", a.shape().ToString(),
                               " and ", b.shape().ToString());
      }
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, b.shape()));
    if (b.num_elements() == 0) return absl::OkStatus();
    return WithMatrixType(a.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const int64_t n = a.dim(a.rank() - 1), columns = b.dim(b.rank() - 1);
      std::copy(b.data<T>(), b.data<T>() + b.num_elements(), out->mutable_data<T>());
      return SolveAll(ctx, a.data<T>(), a.num_elements() / (n * n), n, columns, adjoint_, out->mutable_data<T>(),
                      "Input matrix is not invertible.");
    });
  }

 private:
  bool adjoint_ = false;
};

class TriangularSolveKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(lower_, init.Attr<bool>("lower"));
    MR_ASSIGN_OR_RETURN(adjoint_, init.Attr<bool>("adjoint"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    MR_RETURN_IF_ERROR(CheckEquation(a, b));
    BatchBroadcast batch;
    MR_RETURN_IF_ERROR(batch.Init(a.shape(), b.shape()));
    const int64_t n = a.dim(a.rank() - 1), columns = b.dim(b.rank() - 1);
    MR_ASSIGN_OR_RETURN(const Shape shape, batch.ResultShape(n, columns));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    batch.MakeIndices();
    return WithMatrixType(a.dtype(), [&](auto zero) -> Status {
      using T = decltype(zero);
      for (int64_t i = 0; i < a.num_elements(); i += n * n) {
        for (int64_t d = 0; d < n; ++d) {
          if (a.data<T>()[i + d * (n + 1)] == T(0)) {
            return InvalidArgument("Input matrix is not invertible: element ", d, " of its diagonal is 0");
          }
        }
      }
      ForEachMatrix(ctx, batch.count(), n, [&](int64_t i, const KernelContext* inner) {
        const T* from = b.data<T>() + batch.y_of(i) * n * columns;
        T* x = out->mutable_data<T>() + i * n * columns;
        std::copy(from, from + n * columns, x);
        const dense::View<T> matrix{a.data<T>() + batch.x_of(i) * n * n, n, adjoint_};
        dense::SolveTriangle(inner, matrix, lower_ != adjoint_, false, n, x, columns, columns);
      });
      return absl::OkStatus();
    });
  }

 private:
  bool lower_ = true, adjoint_ = false;
};

}  // namespace

void RegisterFactorizationKernels(KernelRegistry& registry) {
  const std::vector<DType> all = Types("FD|CPX"), real = Types("FD"), inverse = Types("HFD|CPX");
  for (const char* batch : {"", "Batch"}) {
    auto name = [&](const char* op) { return absl::StrCat(batch, op); };
    registry.AddFn({.op = name("Cholesky"), .types = {{"T", all}}, .cost = CubicCost}, &CholeskyCompute);
    registry.AddFn({.op = name("CholeskyGrad"), .types = {{"T", real}}, .cost = CubicCost}, &CholeskyGradCompute);
    registry.AddFn({.op = name("MatrixDeterminant"), .types = {{"T", all}}, .cost = CubicCost}, &DeterminantCompute);
    if (!*batch) {
      registry.AddFn({.op = "LogMatrixDeterminant", .types = {{"T", all}}, .cost = CubicCost}, &LogDeterminantCompute);
      registry.AddFn({.op = "Lu", .types = {{"T", all}}, .cost = CubicCost}, &LuCompute);
    }
    registry.Add<InverseKernel>({.op = name("MatrixInverse"), .types = {{"T", inverse}}, .cost = CubicCost});
    registry.Add<SolveKernel>({.op = name("MatrixSolve"), .types = {{"T", all}}, .cost = CubicCost});
    registry.Add<TriangularSolveKernel>(
        {.op = name("MatrixTriangularSolve"), .types = {{"T", all}}, .cost = CubicCost});
  }
}

}  // namespace millrace
