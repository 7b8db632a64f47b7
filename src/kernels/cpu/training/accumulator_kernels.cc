// SPDX-License-Identifier: Apache-2.0
// CPU kernels: accumulators of gradients, dense and sparse. What is stale is dropped; taking waits for as many as asked
// for, gives their sum or mean, and begins the next global step.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "kernels/cpu/dataflow/queue_kernels.h"
#include "kernels/cpu/elementwise/elementwise_in_place.h"
#include "kernels/cpu/training/accumulator.h"

namespace millrace {
namespace {

// Calls `fn` with a value of the accumulator's element type.
template <typename Fn>
Status WithType(DType dtype, Fn fn) {
  switch (dtype) {
    case DType::kHalf: return fn(Half());
    case DType::kFloat: return fn(float());
    case DType::kDouble: return fn(double());
    default: return Unimplemented("no accumulator of ", DTypeName(dtype));
  }
}
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, Half>, float, T>;

// Sums of half numbers are kept in float until they are taken.
DType WideType(DType t) { return t == DType::kHalf ? DType::kFloat : t; }

// to[i] += by[i], where `to` are such sums.
class GradientAdder {
 public:
  explicit GradientAdder(DType dtype)
      : add_("Add", WideType(dtype)), widen_(FindConvert(dtype, WideType(dtype))), size_(DTypeSize(dtype)) {}
  void operator()(void* to, const void* by, int64_t n) const {
    if (widen_.steps == 0) return add_(to, by, n);
    float tile[kConvertTile];
    for (int64_t i = 0; i < n; i += kConvertTile) {
      const int64_t count = std::min(kConvertTile, n - i);
      widen_.Run(static_cast<const char*>(by) + static_cast<size_t>(i) * size_, tile, count);
      add_(static_cast<float*>(to) + i, tile, count);
    }
  }

 private:
  InPlaceOp add_;
  ConvertRoute widen_;
  size_t size_;
};

template <typename T>
void Divide(const Wide<T>* sum, int64_t by, int64_t n, T* to) {
  const auto d = static_cast<Wide<T>>(by);
  for (int64_t i = 0; i < n; ++i) to[i] = T(sum[i] / d);
}

StatusOr<int64_t> ScalarInput(const KernelContext& ctx, int i, const char* what) {
  if (!ctx.input(i).shape().IsScalar()) {
    return InvalidArgument(what, " must be a scalar, got shape ", ctx.input(i).shape().ToString());
  }
  return ctx.input(i).IntScalar();
}

}  // namespace

Status Accumulator::CheckDeclared(const AccumulatorOptions& o) const {
  if (o.dtype == options_.dtype && o.shape == options_.shape && o.mean == options_.mean) return absl::OkStatus();
  return InvalidArgument(
      "Shared conditional accumulator '", options_.name,
      "' has another dtype, shape or reduction: ", DTypeName(options_.dtype), options_.shape.ToString(), ", requested ",
      DTypeName(o.dtype), o.shape.ToString());
}

Status Accumulator::CheckDType(DType dtype) const {
  if (dtype == options_.dtype) return absl::OkStatus();
  return InvalidArgument(DebugString(), " holds ", DTypeName(options_.dtype), ", the gradient is ", DTypeName(dtype));
}

// ---- Dense ----

Status DenseAccumulator::Check(const Tensor& gradient) const {
  const PartialShape want = count() > 0 ? PartialShape(sum_.shape()) : options().shape;
  if (want.IsCompatibleWith(gradient.shape())) return absl::OkStatus();
  return InvalidArgument("Shape mismatch: expected ", want.ToString(), ", got ", gradient.shape().ToString());
}

Status DenseAccumulator::Add(const Tensor& gradient) {
  const DType dtype = options().dtype;
  const int64_t n = gradient.num_elements();
  if (count() > 0) {
    GradientAdder{dtype}(sum_.mutable_raw(), gradient.raw(), n);
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(sum_, Tensor::Make(WideType(dtype), gradient.shape()));
  FindConvert(dtype, WideType(dtype)).Run(gradient.raw(), sum_.mutable_raw(), n);
  return absl::OkStatus();
}

StatusOr<Tensor> DenseAccumulator::Finish() {
  Tensor sum = std::move(sum_);
  sum_ = Tensor();
  const int64_t by = options().mean ? std::max<int64_t>(count(), 1) : 1;
  Tensor result = sum;  // in place, but for half numbers
  MR_RETURN_IF_ERROR(WithType(options().dtype, [&](auto v) -> Status {
    using T = decltype(v);
    if constexpr (!std::is_same_v<T, Wide<T>>) {
      MR_ASSIGN_OR_RETURN(result, Tensor::Make(options().dtype, sum.shape()));
    } else if (by == 1) {
      return absl::OkStatus();
    }
    Divide(sum.data<Wide<T>>(), by, sum.num_elements(), result.mutable_data<T>());
    return absl::OkStatus();
  }));
  return result;
}

// ---- Sparse ----

Status SparseAccumulator::Check(const SparseGradient& g, bool has_known_shape) const {
  if (g.indices.rank() != 1) {
    return InvalidArgument("Input indices should be vector but received shape: ", g.indices.shape().ToString());
  }
  if (g.shape.rank() != 1) {
    return InvalidArgument("Input shape should be vector but received shape: ", g.shape.shape().ToString());
  }
  if (g.values.rank() == 0) return InvalidArgument("Values cannot be 0-dimensional.");
  if (g.indices.dim(0) != g.values.dim(0)) {
    return InvalidArgument("Expected ", g.indices.dim(0), " non-empty input values, got ", g.values.dim(0));
  }
  const PartialShape& want = options().shape;
  if (has_known_shape && want.has_rank()) {
    if (want.rank() > g.shape.dim(0)) {
      return InvalidArgument("Shape mismatch: expected shape rank at least ", want.rank(), ", got ", g.shape.dim(0));
    }
    for (int d = 0; d < want.rank(); ++d) {
      const int64_t got = g.shape.data<int64_t>()[d];
      if (want.has_dim(d) && want.dim(d) != got) {
        return InvalidArgument("Shape mismatch: expected shape dim ", d, " to be ", want.dim(d), ", got ", got);
      }
    }
  }
  for (int64_t at = 0; const int64_t i : g.indices.flat<int64_t>()) {
    if (i < 0) return InvalidArgument("Shape mismatch: index of slice ", at, " is negative: ", i);
    if (want.has_dim(0) && i >= want.dim(0)) {
      return InvalidArgument(
          "Shape mismatch: index of slice ", at, " exceeded limits of shape; index is ", i, " exceeded ", want.dim(0));
    }
    ++at;
  }
  return CheckRows(g.values.shape());
}

Status SparseAccumulator::CheckRows(const Shape& values) const {
  if (count() > 0) {
    if (values.WithoutDim(0) == row_shape_) return absl::OkStatus();
    if (values.rank() != row_shape_.rank() + 1) {
      return InvalidArgument("Shape mismatch: expected values rank ", row_shape_.rank() + 1, ", got ", values.rank());
    }
    int d = 0;
    while (values.dim(d + 1) == row_shape_.dim(d)) ++d;
    return InvalidArgument(
        "Shape mismatch: expected values dim ", d + 1, " to be ", row_shape_.dim(d), ", got ", values.dim(d + 1));
  }
  const PartialShape& want = options().shape;
  if (want.has_rank() && want.rank() > values.rank()) {
    return InvalidArgument("Shape mismatch: expected values rank at least ", want.rank(), ", got ", values.rank());
  }
  for (int d = 1; d < want.rank(); ++d) {
    if (want.has_dim(d) && want.dim(d) != values.dim(d)) {
      return InvalidArgument(
          "Shape mismatch: expected values dim ", d, " to be ", want.dim(d), ", got ", values.dim(d));
    }
  }
  return absl::OkStatus();
}

int64_t SparseAccumulator::Find(int64_t index, int64_t near) const {
  const auto n = static_cast<int64_t>(rows_.size());
  if (near + 1 < n && rows_[static_cast<size_t>(near + 1)].index == index) return near + 1;
  if (!in_order_) {
    const auto it = places_.find(index);
    return it == places_.end() ? -1 : it->second;
  }
  const auto before = [](const Row& row, int64_t i) { return row.index < i; };
  const auto it = std::lower_bound(rows_.begin(), rows_.end(), index, before);
  return it != rows_.end() && it->index == index ? it - rows_.begin() : -1;
}

int64_t SparseAccumulator::Append(int64_t index) {
  const auto place = static_cast<int64_t>(rows_.size());
  if (in_order_ && place > 0 && rows_.back().index > index) {
    in_order_ = false;
    for (int64_t i = 0; i < place; ++i) places_.emplace(rows_[static_cast<size_t>(i)].index, i);
  }
  rows_.push_back({.index = index});
  if (!in_order_) places_.emplace(index, place);
  return place;
}

Status SparseAccumulator::Reserve(int64_t rows) {
  const int64_t room = sums_.IsInitialized() ? sums_.dim(0) : 0;
  if (rows <= room) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const Shape shape, row_shape_.WithInserted(0, std::max(rows, room + room / 2)));
  const DType wide = WideType(options().dtype);
  MR_ASSIGN_OR_RETURN(Tensor larger, Tensor::Make(wide, shape));
  if (room > 0) {
    const size_t bytes = static_cast<size_t>(row_shape_.num_elements()) * DTypeSize(wide);
    std::memcpy(larger.mutable_raw(), sums_.raw(), rows_.size() * bytes);
  }
  sums_ = std::move(larger);
  return absl::OkStatus();
}

void SparseAccumulator::Clear() {
  rows_.clear();
  places_.clear();
  in_order_ = true;
  sums_ = Tensor();
}

Status SparseAccumulator::Add(const SparseGradient& g) {
  if (count() == 0) {
    Clear();  // of one that failed
    row_shape_ = g.values.shape().WithoutDim(0);
  }
  const int64_t size = row_shape_.num_elements(), n = g.indices.dim(0);
  const int64_t* indices = g.indices.data<int64_t>();
  MR_RETURN_IF_ERROR(Reserve(std::max(n, static_cast<int64_t>(rows_.size()))));
  const GradientAdder add(options().dtype);
  const auto* values = static_cast<const char*>(g.values.raw());
  const auto row_bytes = static_cast<size_t>(size) * DTypeSize(options().dtype);
  const auto sum_bytes = static_cast<size_t>(size) * DTypeSize(WideType(options().dtype));
  int64_t place = -1;
  for (int64_t i = 0; i < n; ++i, values += row_bytes) {
    const bool seen = (place = Find(indices[i], place)) >= 0;
    if (!seen) {
      MR_RETURN_IF_ERROR(Reserve(static_cast<int64_t>(rows_.size()) + 1));
      place = Append(indices[i]);
    }
    Row& row = rows_[static_cast<size_t>(place)];
    if (row.last != count()) ++row.gradients;  // a row that comes twice in one gradient counts once
    row.last = count();
    char* const sum = static_cast<char*>(sums_.mutable_raw()) + static_cast<size_t>(place) * sum_bytes;
    if (!seen) std::memset(sum, 0, sum_bytes);
    add(sum, values, size);
  }
  return absl::OkStatus();
}

StatusOr<SparseGradient> SparseAccumulator::Finish() {
  const auto n = static_cast<int64_t>(rows_.size());
  SparseGradient g;
  MR_ASSIGN_OR_RETURN(g.indices, Tensor::Make(DType::kInt64, Shape::Vector(n)));
  MR_ASSIGN_OR_RETURN(g.shape, Tensor::Make(DType::kInt64, Shape::Vector(row_shape_.rank() + 1)));
  const bool as_they_lie = in_order_ && sums_.IsInitialized() && sums_.dtype() == options().dtype;
  if (as_they_lie) {
    MR_ASSIGN_OR_RETURN(g.values, sums_.Rows(0, n));
  } else {
    MR_ASSIGN_OR_RETURN(const Shape shape, row_shape_.WithInserted(0, n));
    MR_ASSIGN_OR_RETURN(g.values, Tensor::Make(options().dtype, shape));
  }
  std::vector<int64_t> order(rows_.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto row_at = [this](int64_t place) -> const Row& { return rows_[static_cast<size_t>(place)]; };
  if (!in_order_) {
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return row_at(a).index < row_at(b).index; });
  }
  const int64_t size = row_shape_.num_elements();
  MR_RETURN_IF_ERROR(WithType(options().dtype, [&](auto v) {
    using T = decltype(v);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t place = order[static_cast<size_t>(i)];
      const Row& row = row_at(place);
      g.indices.mutable_data<int64_t>()[i] = row.index;
      const int64_t by = options().mean ? row.gradients : 1;
      if (as_they_lie && by == 1) continue;
      Divide(sums_.data<Wide<T>>() + place * size, by, size, g.values.mutable_data<T>() + i * size);
    }
    return absl::OkStatus();
  }));
  g.shape.mutable_data<int64_t>()[0] = options().shape.dim(0);  // -1 when it is not known
  for (int d = 0; d < row_shape_.rank(); ++d) g.shape.mutable_data<int64_t>()[d + 1] = row_shape_.dim(d);
  Clear();
  return g;
}

// ---- Kernels ----

namespace {

template <typename A>
class AccumulatorKernel final : public ResourceKernel<Accumulator> {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(ResourceKernel::Init(init));
    options_.name = name().name;
    MR_ASSIGN_OR_RETURN(options_.dtype, init.Attr<DType>("dtype"));
    MR_ASSIGN_OR_RETURN(options_.shape, init.Attr<PartialShape>("shape"));
    MR_ASSIGN_OR_RETURN(reduction_, init.Attr<std::string>("reduction_type"));
    options_.mean = reduction_ != "SUM";
    return absl::OkStatus();
  }

 private:
  absl::string_view TypeName() const override { return "ConditionalAccumulator"; }
  StatusOr<RefPtr<Accumulator>> Make(KernelContext&) override { return RefPtr<Accumulator>(MakeRef<A>(options_)); }
  Status Verify(const Accumulator& a) const override {
    if (dynamic_cast<const A*>(&a) == nullptr) {
      return InvalidArgument("Shared conditional accumulator '", options_.name, "' is of the other kind");
    }
    return a.CheckDeclared(options_);
  }
  AccumulatorOptions options_;
  std::string reduction_;
};

// Finds the accumulator as what the op needs.
template <typename A>
class AccumulatorCall : public CallKernel<Accumulator> {
  StatusOr<WaitingResource::Attempt> Prepare(KernelContext& ctx, Accumulator& a) final {
    if (A* accumulator = dynamic_cast<A*>(&a)) return PrepareFor(ctx, *accumulator);
    return BadHandle(ctx, 0, "is an accumulator of the other kind");
  }
  virtual StatusOr<WaitingResource::Attempt> PrepareFor(KernelContext& ctx, A& accumulator) = 0;
};

class ApplyKernel final : public AccumulatorCall<DenseAccumulator> {
  StatusOr<WaitingResource::Attempt> PrepareFor(KernelContext& ctx, DenseAccumulator& a) override {
    MR_ASSIGN_OR_RETURN(const int64_t local_step, ScalarInput(ctx, 1, "local_step"));
    MR_RETURN_IF_ERROR(a.CheckDType(ctx.input(2).dtype()));
    return WaitingResource::Attempt([&ctx, &a, local_step](Status* s) {
      if (a.IsStale(local_step)) return true;
      *s = a.Check(ctx.input(2));
      if (s->ok()) *s = a.Add(ctx.input(2));
      if (s->ok()) a.CountOne();
      return true;
    });
  }
};

class SparseApplyKernel final : public AccumulatorCall<SparseAccumulator> {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(has_known_shape_, init.Attr<bool>("has_known_shape"));
    return absl::OkStatus();
  }

 private:
  StatusOr<WaitingResource::Attempt> PrepareFor(KernelContext& ctx, SparseAccumulator& a) override {
    MR_ASSIGN_OR_RETURN(const int64_t local_step, ScalarInput(ctx, 1, "local_step"));
    MR_RETURN_IF_ERROR(a.CheckDType(ctx.input(3).dtype()));
    SparseGradient g{ctx.input(2), ctx.input(3), ctx.input(4)};
    return WaitingResource::Attempt([this, &a, local_step, g = std::move(g)](Status* s) {
      if (a.IsStale(local_step)) return true;
      *s = a.Check(g, has_known_shape_);
      if (s->ok()) *s = a.Add(g);
      if (s->ok()) a.CountOne();
      return true;
    });
  }
  bool has_known_shape_ = false;
};

Status Output(KernelContext& ctx, Tensor gradient) {
  ctx.set_output(0, std::move(gradient));
  return absl::OkStatus();
}
Status Output(KernelContext& ctx, SparseGradient gradient) {
  ctx.set_output(0, std::move(gradient.indices));
  ctx.set_output(1, std::move(gradient.values));
  ctx.set_output(2, std::move(gradient.shape));
  return absl::OkStatus();
}

template <typename A>
class TakeKernel final : public AccumulatorCall<A> {
  WaitingResource::Line line() const override { return WaitingResource::Line::kTake; }
  StatusOr<WaitingResource::Attempt> PrepareFor(KernelContext& ctx, A& a) override {
    MR_ASSIGN_OR_RETURN(const int64_t required, ScalarInput(ctx, 1, "num_required"));
    if (required <= 0) return InvalidArgument("Argument num_required must be > 0, got ", required);
    MR_RETURN_IF_ERROR(a.CheckDType(ctx.output_dtype(ctx.num_outputs() == 1 ? 0 : 1)));
    return WaitingResource::Attempt([&ctx, &a, required](Status* s) {
      if (a.count() < required) return false;
      auto gradient = a.Finish();
      *s = gradient.ok() ? Output(ctx, *std::move(gradient)) : gradient.status();
      a.BeginNextStep();
      return true;
    });
  }
};

class SetStepKernel final : public AccumulatorCall<Accumulator> {
  StatusOr<WaitingResource::Attempt> PrepareFor(KernelContext& ctx, Accumulator& a) override {
    MR_ASSIGN_OR_RETURN(const int64_t step, ScalarInput(ctx, 1, "new_global_step"));
    return WaitingResource::Attempt([&a, step](Status*) {
      a.SetGlobalStep(step);
      return true;
    });
  }
};

Status NumAccumulated(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<Accumulator> a, FindResource<Accumulator>(ctx, 0));
  return OutputSize(ctx, 0, a->Locked([&] { return a->count(); }));
}

}  // namespace

void RegisterAccumulatorKernels(KernelRegistry& r) {
  const std::vector<DType> types = Types("HFD");
  const auto op = [&](absl::string_view name) {
    return KernelSpec{.op = std::string(name), .types = {{"dtype", types}}};
  };
  for (const char* form : {"", "Resource"}) {
    const auto named = [form](const char* name) { return absl::StrCat(form, name); };
    r.Add<AccumulatorKernel<DenseAccumulator>>(op(named("ConditionalAccumulator")));
    r.Add<ApplyKernel>(op(named("AccumulatorApplyGradient")));
    r.Add<TakeKernel<DenseAccumulator>>(op(named("AccumulatorTakeGradient")));
    r.Add<SetStepKernel>({.op = named("AccumulatorSetGlobalStep")});
    r.AddFn({.op = named("AccumulatorNumAccumulated")}, NumAccumulated);
  }
  r.Add<AccumulatorKernel<SparseAccumulator>>(op("SparseConditionalAccumulator"));
  r.Add<SparseApplyKernel>(op("SparseAccumulatorApplyGradient"));
  r.Add<TakeKernel<SparseAccumulator>>(op("SparseAccumulatorTakeGradient"));
}

}  // namespace millrace
