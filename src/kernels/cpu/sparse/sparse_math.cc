// SPDX-License-Identifier: Apache-2.0
// CPU kernels: sparse tensors with sparse ones, element by element.
#include <cmath>
#include <complex>

#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/sparse/sparse.h"

namespace millrace {
namespace {

// Walks two lists of indices in row-major order at once: fn(i, j) for what both have, fn(i, -1) or fn(-1, j) for what
// one of them has.
template <typename Fn>
void Merge(const SparseArg& a, const SparseArg& b, Fn&& fn) {
  int64_t i = 0, j = 0;
  while (i < a.n || j < b.n) {
    const int order = i == a.n ? 1 : j == b.n ? -1 : CompareIndices(a.at(i), b.at(j), a.rank);
    fn(order <= 0 ? i : -1, order >= 0 ? j : -1);
    if (order <= 0) ++i;
    if (order >= 0) ++j;
  }
}

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

Status WriteIndices(KernelContext& ctx, const SparseArg& a, const SparseArg& b, const Pairs& pairs) {
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({static_cast<int64_t>(pairs.size()), a.rank}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  int64_t* to = out->mutable_data<int64_t>();
  for (const auto& [i, j] : pairs) {
    const int64_t* from = i >= 0 ? a.at(i) : b.at(j);
    to = std::copy(from, from + a.rank, to);
  }
  return absl::OkStatus();
}

template <typename T>
Status AddOf(KernelContext& ctx, const SparseArg& a, const SparseArg& b) {
  using Real = std::conditional_t<std::is_same_v<T, complex64>, float,
                                  std::conditional_t<std::is_same_v<T, complex128>, double, T>>;
  const Real least = *ctx.input(6).data<Real>();
  const T *x = a.values->data<T>(), *y = b.values->data<T>();
  const auto small = [&](T v) {
    if constexpr (std::is_integral_v<T>) {
      // |v| < least, where -v may overflow: the lowest number has itself as magnitude, as in TensorFlow.
      return (v < 0 ? Combine<RowOp::kSub>(T{}, v) : v) < least;
    } else {
      return !(least <= std::abs(v));
    }
  };
  Pairs pairs;
  std::vector<T> sums;
  pairs.reserve(static_cast<size_t>(a.n + b.n));
  sums.reserve(static_cast<size_t>(a.n + b.n));
  Merge(a, b, [&](int64_t i, int64_t j) {
    const T sum = i < 0 ? y[j] : j < 0 ? x[i] : Combine<RowOp::kAdd>(x[i], y[j]);
    if (i >= 0 && j >= 0 && small(sum)) return;
    pairs.emplace_back(i, j);
    sums.push_back(sum);
  });
  MR_RETURN_IF_ERROR(WriteIndices(ctx, a, b, pairs));
  MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, Shape::Vector(static_cast<int64_t>(sums.size()))));
  std::copy(sums.begin(), sums.end(), values->mutable_data<T>());
  ctx.set_output(2, *a.shape);
  return absl::OkStatus();
}

Status Add(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const SparseArg a, SparseArgOf(ctx, 0, "a"));
  MR_ASSIGN_OR_RETURN(const SparseArg b, SparseArgOf(ctx, 3, "b"));
  MR_RETURN_IF_ERROR(RequireScalar("thresh", ctx.input(6)));
  MR_RETURN_IF_ERROR(CheckSameShape(a, b));
  if (a.rank == 0) return InvalidArgument("sparse tensors to add must have a dimension");
  const DType dtype = a.values->dtype();
  const DType real = dtype == DType::kComplex64 ? DType::kFloat : dtype == DType::kComplex128 ? DType::kDouble : dtype;
  if (ctx.input(6).dtype() != real) {
    return InvalidArgument("thresh must have type ", DTypeName(real), " for sums of ", DTypeName(dtype), ", got ",
                           DTypeName(ctx.input(6).dtype()));
  }
  Status status;
  const bool known = VisitTypes<float, double, int8_t, int16_t, int32_t, int64_t, complex64, complex128>(
      dtype, [&]<typename T>() { status = AddOf<T>(ctx, a, b); });
  return known ? status : Unimplemented("no sparse sum of ", DTypeName(dtype));
}

// Each element of `operand` gets the gradient of the first element of the sum, from where the last one was found on,
// that has its index, else 0.
Status AddGradOf(KernelContext& ctx, int operand, int o) {
  const Tensor &grad = ctx.input(0), &places = ctx.input(operand), &sums = ctx.input(3);
  const int64_t n = places.dim(0), m = sums.dim(0), rank = sums.dim(1);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, Shape::Vector(n)));
  ZeroElements(out->dtype(), out->mutable_raw(), 0, n);
  const RunCopier copier(out->dtype(), 1);
  const int64_t *p = places.data<int64_t>(), *s = sums.data<int64_t>();
  for (int64_t i = 0, k = 0; i < n && k < m;) {
    const int order = CompareIndices(p + i * rank, s + k * rank, rank);
    if (order == 0) copier.CopyOne(out->mutable_raw(), i, grad.raw(), k);
    if (order <= 0) ++i;
    if (order >= 0) ++k;
  }
  return absl::OkStatus();
}

Status AddGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.input(0);
  if (grad.rank() != 1) return InvalidArgument("backprop_val_grad must be a vector, got ", grad.shape().ToString());
  for (int i = 1; i <= 3; ++i) {
    const Shape& s = ctx.input(i).shape();
    if (s.rank() != 2 || s.dim(1) != ctx.input(1).dim(1)) {
      return InvalidArgument(
          "indices must be matrices of one width, got ", ctx.input(1).shape().ToString(), " and ", s.ToString());
    }
  }
  if (grad.dim(0) != ctx.input(3).dim(0)) {
    return InvalidArgument("the sum has ", ctx.input(3).dim(0), " elements, but ", grad.dim(0), " gradients");
  }
  MR_RETURN_IF_ERROR(AddGradOf(ctx, 1, 0));
  return AddGradOf(ctx, 2, 1);
}

template <RowOp op>
Status Extreme(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const SparseArg a, SparseArgOf(ctx, 0, "a"));
  MR_ASSIGN_OR_RETURN(const SparseArg b, SparseArgOf(ctx, 3, "b"));
  MR_RETURN_IF_ERROR(CheckSameShape(a, b));
  MR_RETURN_IF_ERROR(CheckInside(a, "a_indices"));
  MR_RETURN_IF_ERROR(CheckInside(b, "b_indices"));
  Pairs pairs;
  pairs.reserve(static_cast<size_t>(a.n + b.n));
  Merge(a, b, [&](int64_t i, int64_t j) { pairs.emplace_back(i, j); });
  MR_RETURN_IF_ERROR(WriteIndices(ctx, a, b, pairs));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(1, Shape::Vector(static_cast<int64_t>(pairs.size()))));
  const bool known = VisitRealTypes(out->dtype(), [&]<typename T>() {
    const T *x = a.values->data<T>(), *y = b.values->data<T>();
    T* to = out->mutable_data<T>();
    for (const auto& [i, j] : pairs) {
      T v = i < 0 ? T{} : x[i];
      CombineInto<op>(v, j < 0 ? T{} : y[j]);
      *to++ = v;
    }
  });
  return known ? absl::OkStatus() : Unimplemented("no order of ", DTypeName(out->dtype()));
}

}  // namespace

void RegisterSparseMathKernels(KernelRegistry& registry) {
  const std::vector<DType> sums = Types("f32|f64|i8|i16|IDX|c64|c128");
  registry.AddFn({.op = "SparseAdd", .types = {{"T", sums}}}, Add);
  registry.AddFn({.op = "SparseAddGrad"}, AddGrad);
  registry.AddFn({.op = "SparseSparseMaximum"}, Extreme<RowOp::kMax>);
  registry.AddFn({.op = "SparseSparseMinimum", .types = {{"T", Types("REAL")}}}, Extreme<RowOp::kMin>);
}

}  // namespace millrace
