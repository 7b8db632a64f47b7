// SPDX-License-Identifier: Apache-2.0
// CPU kernels: reductions of sparse tensors.
//
// Elements are sorted by what is left of their indices; runs of the same rest become one element. Only a dense result
// costs memory by the shape.
#include <algorithm>
#include <complex>

#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/sparse/sparse.h"

namespace millrace {
namespace {

struct Reduction {
  SparseArg input;
  std::vector<int64_t> rest;   // the dimensions that are not reduced
  std::vector<int64_t> dims;   // the result's
  std::vector<int64_t> order;  // elements sorted by group
  std::vector<size_t> begin;   // of each group in `order`, and the end

  int64_t groups() const { return static_cast<int64_t>(begin.size()) - 1; }
  const int64_t* first(int64_t g) const { return input.at(order[begin[static_cast<size_t>(g)]]); }
};

int CompareRest(const Reduction& r, const int64_t* a, const int64_t* b) {
  for (const int64_t d : r.rest) {
    if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
  }
  return 0;
}

void FindGroups(Reduction& r) {
  r.order.resize(static_cast<size_t>(r.input.n));
  for (size_t i = 0; i < r.order.size(); ++i) r.order[i] = static_cast<int64_t>(i);
  StopNowAndThen pause;
  const auto before = [&](int64_t a, int64_t b) {
    pause();
    return CompareRest(r, r.input.at(a), r.input.at(b)) < 0;
  };
  if (!std::is_sorted(r.order.begin(), r.order.end(), before)) {
    std::stable_sort(r.order.begin(), r.order.end(), before);
  }
  for (size_t i = 0; i < r.order.size(); ++i) {
    if (i == 0 || before(r.order[i - 1], r.order[i])) r.begin.push_back(i);
  }
  r.begin.push_back(r.order.size());
}

template <RowOp op, typename T>
void Fold(const Reduction& r, const int64_t* to_at, Tensor& out) {
  const T* from = r.input.values->data<T>();
  T* to = out.mutable_data<T>();
  for (int64_t g = 0; g < r.groups(); ++g) {
    const size_t begin = r.begin[static_cast<size_t>(g)], end = r.begin[static_cast<size_t>(g) + 1];
    Accumulator<T> folded = static_cast<Accumulator<T>>(from[r.order[begin]]);
    for (size_t i = begin + 1; i < end; ++i) CombineInto<op>(folded, from[r.order[i]]);
    to[to_at == nullptr ? g : to_at[g]] = static_cast<T>(folded);
  }
}

template <RowOp op>
class ReduceKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(keep_dims_, init.Attr<bool>("keep_dims"));
    return absl::OkStatus();
  }

 protected:
  StatusOr<Reduction> Prepare(KernelContext& ctx) const {
    Reduction r;
    MR_ASSIGN_OR_RETURN(r.input, SparseArgOf(ctx, 0, "the input"));
    MR_RETURN_IF_ERROR(DenseShapeOf(r.input).status());
    if (ctx.input(3).rank() > 1) {
      return InvalidArgument("reduction_axes must be a scalar or a vector, got ", ctx.input(3).shape().ToString());
    }
    std::vector<bool> reduced(static_cast<size_t>(r.input.rank), false);
    for (const int32_t axis : ctx.input(3).flat<int32_t>()) {
      int64_t d = 0;
      if (!NormalizeIndex(axis, r.input.rank, &d)) {
        return InvalidArgument("Invalid reduction dimension ", axis, ", for input with ", r.input.rank, " dimensions.");
      }
      reduced[static_cast<size_t>(d)] = true;
    }
    for (int64_t d = 0; d < r.input.rank; ++d) {
      if (!reduced[static_cast<size_t>(d)]) r.rest.push_back(d);
      if (!reduced[static_cast<size_t>(d)] || keep_dims_) {
        r.dims.push_back(reduced[static_cast<size_t>(d)] ? 1 : r.input.dims()[d]);
      }
    }
    MR_RETURN_IF_ERROR(CheckInside(r.input, "input_indices"));
    FindGroups(r);
    return r;
  }

  static Status FoldInto(const Reduction& r, const int64_t* to_at, Tensor& out) {
    const auto fold = [&]<typename T>() { Fold<op, T>(r, to_at, out); };
    bool known = VisitRealTypes(out.dtype(), fold);
    if constexpr (op == RowOp::kAdd) known = known || VisitTypes<complex64, complex128>(out.dtype(), fold);
    return known ? absl::OkStatus() : Unimplemented("no reduction of ", DTypeName(out.dtype()));
  }

  bool keep_dims_ = false;
};

template <RowOp op>
class DenseReduceKernel final : public ReduceKernel<op> {
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Reduction r, this->Prepare(ctx));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(r.dims));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    ZeroElements(out->dtype(), out->mutable_raw(), 0, out->num_elements());
    std::vector<int64_t> places(static_cast<size_t>(r.groups()), 0);
    for (int64_t g = 0; g < r.groups(); ++g) {
      int64_t& at = places[static_cast<size_t>(g)];
      for (const int64_t d : r.rest) at = at * r.input.dims()[d] + r.first(g)[d];
    }
    return this->FoldInto(r, places.data(), *out);
  }
};

template <RowOp op>
class SparseReduceKernel final : public ReduceKernel<op> {
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Reduction r, this->Prepare(ctx));
    const int64_t width = static_cast<int64_t>(r.dims.size());
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({r.groups(), width}));
    MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, shape));
    MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, Shape::Vector(r.groups())));
    int64_t* to = indices->mutable_data<int64_t>();
    std::fill(to, to + r.groups() * width, int64_t{0});
    for (int64_t g = 0; g < r.groups(); ++g, to += width) {
      for (size_t k = 0; k < r.rest.size(); ++k) {
        to[this->keep_dims_ ? r.rest[k] : static_cast<int64_t>(k)] = r.first(g)[r.rest[k]];
      }
    }
    MR_RETURN_IF_ERROR(SetVector(ctx, 2, r.dims));
    return this->FoldInto(r, nullptr, *values);
  }
};

}  // namespace

void RegisterSparseReduceKernels(KernelRegistry& registry) {
  const std::vector<DType> numbers = Types("REAL|c64|c128");
  registry.Add<DenseReduceKernel<RowOp::kAdd>>({.op = "SparseReduceSum", .types = {{"T", numbers}}});
  registry.Add<DenseReduceKernel<RowOp::kMax>>({.op = "SparseReduceMax"});
  registry.Add<SparseReduceKernel<RowOp::kAdd>>({.op = "SparseReduceSumSparse", .types = {{"T", numbers}}});
  registry.Add<SparseReduceKernel<RowOp::kMax>>({.op = "SparseReduceMaxSparse"});
}

}  // namespace millrace
