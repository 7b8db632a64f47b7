// SPDX-License-Identifier: Apache-2.0
// CPU kernels of optimizer updates: one kernel drives every rule, dense or sparse, by reference or by handle.
#include <algorithm>
#include <complex>

#include "absl/algorithm/container.h"
#include "absl/strings/strip.h"
#include "kernels/cpu/engine/elementwise_convert.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/row_ranges.h"
#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/math/math_convert.h"
#include "kernels/cpu/training/training_rules.h"

namespace millrace {
namespace {

// Locks several variables in address order, so that two updates never wait for each other.
class VariableLocks {
 public:
  explicit VariableLocks(std::vector<Variable*> variables) ABSL_NO_THREAD_SAFETY_ANALYSIS
      : locked_(std::move(variables)) {
    std::sort(locked_.begin(), locked_.end());
    locked_.erase(std::unique(locked_.begin(), locked_.end()), locked_.end());
    for (Variable* v : locked_) v->mu().Lock();
  }
  ~VariableLocks() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (Variable* v : locked_) v->mu().Unlock();
  }

 private:
  std::vector<Variable*> locked_;
};

// Half types in float, a tile at a time, where they have no code of their own.
template <typename H>
void RunTiles(RuleFn<float> fn, const float* scalars, const RuleFlags& flags, H* const* vars, int num_vars,
              const H* grad, int64_t n) {
  static const ConvertRoute widen = FindConvert(DTypeOf<H>::value, DType::kFloat);
  static const ConvertRoute narrow = FindConvert(DType::kFloat, DTypeOf<H>::value);
  float tiles[kMaxRuleVariables][kConvertTile], g[kConvertTile];
  float* pointers[kMaxRuleVariables];
  for (int v = 0; v < num_vars; ++v) pointers[v] = tiles[v];
  for (int64_t at = 0; at < n; at += kConvertTile) {
    const int64_t m = std::min(kConvertTile, n - at);
    for (int v = 0; v < num_vars; ++v) widen.Run(vars[v] + at, tiles[v], m);
    widen.Run(grad + at, g, m);
    fn(scalars, flags, pointers, g, m);
    for (int v = 0; v < num_vars; ++v) narrow.Run(tiles[v], vars[v] + at, m);
  }
}

class ApplyKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    absl::string_view rule = init.op.name;
    absl::ConsumePrefix(&rule, "Resource");
    sparse_ = absl::ConsumePrefix(&rule, "Sparse");
    absl::ConsumePrefix(&rule, "Apply");
    rule_ = std::string(rule);
    for (size_t i = 0; i < init.op.inputs.size(); ++i) {
      const ArgDef& arg = init.op.inputs[i];
      const int k = static_cast<int>(i);
      if (arg.is_ref || arg.type == DType::kResource) {
        by_handle_ = !arg.is_ref;
        ++num_vars_;
      } else if (arg.name == "grad" || arg.name == "delta") {
        grad_ = k;
      } else if (arg.name == "indices") {
        indices_ = k;
      } else {
        scalars_.push_back(k);
      }
    }
    if (num_vars_ > kMaxRuleVariables || static_cast<int>(scalars_.size()) > kMaxRuleScalars || grad_ < 0) {
      return Internal("op ", init.op.name, " has an unexpected form");
    }
    if (init.HasAttr("use_nesterov")) {
      MR_ASSIGN_OR_RETURN(flags_.use_nesterov, init.Attr<bool>("use_nesterov"));
    }
    if (init.HasAttr("update_slots")) {
      MR_ASSIGN_OR_RETURN(flags_.update_slots, init.Attr<bool>("update_slots"));
    }
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    std::vector<RefPtr<Variable>> held;
    std::vector<Variable*> vars;
    for (int i = 0; i < num_vars_; ++i) {
      if (by_handle_) {
        MR_ASSIGN_OR_RETURN(RefPtr<Variable> v, ResourceFromInput<Variable>(ctx, i));
        vars.push_back(v.get());
        held.push_back(std::move(v));
      } else if (ctx.has_ref_input(i)) {
        vars.push_back(&ctx.ref_input(i));
      } else {
        return BadHandle(ctx, i, "is not a variable");
      }
    }
    {
      VariableLocks locks(vars);
      MR_RETURN_IF_ERROR(Update(ctx, vars));
    }
    if (!by_handle_) ctx.ForwardRef(0, 0);
    return absl::OkStatus();
  }

 private:
  Status Update(KernelContext& ctx, const std::vector<Variable*>& vars) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const DType dtype = ctx.input_dtype(grad_);
    Tensor* values[kMaxRuleVariables] = {};
    for (size_t i = 0; i < vars.size(); ++i) {
      if (!vars[i]->IsInitializedLocked()) {
        const std::string text = absl::StrCat(
            "Attempting to use uninitialized variables: ", ctx.node().op->inputs[i].name, " has no value yet");
        return by_handle_ ? Internal(text) : FailedPrecondition(text);  // TensorFlow's codes
      }
    }
    for (int k : scalars_) {
      if (!ctx.input(k).shape().IsScalar()) {
        return InvalidArgument(
            ctx.node().op->inputs[static_cast<size_t>(k)].name, " is not a scalar: ", ctx.input(k).shape().ToString());
      }
    }
    for (size_t i = 0; i < vars.size(); ++i) {
      if (vars[i]->dtype() != dtype)
        return InvalidArgument(
            "variable ", i, " holds ", DTypeName(vars[i]->dtype()), ", the gradient is ", DTypeName(dtype));
      MR_ASSIGN_OR_RETURN(values[i], vars[i]->ExclusiveLocked());
      if (values[i]->shape() != values[0]->shape()) {
        return InvalidArgument(
            "var and ", ctx.node().op->inputs[i].name, " do not have the same shape: ", values[0]->shape().ToString(),
            " ", values[i]->shape().ToString());
      }
    }
    MR_RETURN_IF_ERROR(CheckGradient(ctx, values[0]->shape()));
    if (rule_ == "ProximalAdagrad" || (sparse_ && (rule_ == "Ftrl" || rule_ == "FtrlV2"))) {
      MR_RETURN_IF_ERROR(CheckSigns(ctx));
    }
    switch (dtype) {
      case DType::kFloat: return Run<float>(ctx, values);
      case DType::kDouble: return Run<double>(ctx, values);
      case DType::kHalf: return Run<Half>(ctx, values);
      case DType::kBFloat16: return Run<BFloat16>(ctx, values);
      case DType::kComplex64: return Run<complex64>(ctx, values);
      case DType::kComplex128: return Run<complex128>(ctx, values);
      default: return Unimplemented("no update of ", DTypeName(dtype), " variables");
    }
  }

  // TensorFlow's kernels of these rules look at them; of Ftrl those over rows do, those over whole variables do not.
  Status CheckSigns(const KernelContext& ctx) const {
    for (const int k : scalars_) {
      const Tensor& t = ctx.input(k);
      double v = 0;
      ConvertElements(ctx, t.dtype(), DType::kDouble, t.raw(), &v, 1);
      const std::string& name = ctx.node().op->inputs[static_cast<size_t>(k)].name;
      const char* wanted = name == "lr" ? "positive" : name == "lr_power" ? "non-positive" : "non-negative";
      const bool good = name == "lr" ? v > 0 : name == "lr_power" ? v <= 0 : v >= 0;
      if (!good) return InvalidArgument(name, " is not a ", wanted, " scalar: ", v);
    }
    return absl::OkStatus();
  }

  Status CheckGradient(const KernelContext& ctx, const Shape& var) const {
    const Shape& grad = ctx.input(grad_).shape();
    if (!sparse_) {
      if (grad == var) return absl::OkStatus();
      return InvalidArgument("var and grad do not have the same shape: ", var.ToString(), " ", grad.ToString());
    }
    const Shape& indices = ctx.input(indices_).shape();
    if (var.rank() < 1) return InvalidArgument("var must be at least 1-dimensional, got ", var.ToString());
    static constexpr absl::string_view kWantRows[] = {
        "Ftrl", "FtrlV2", "Adagrad", "AdagradV2", "AdagradDA", "ProximalAdagrad", "ProximalGradientDescent"};
    if (absl::c_linear_search(kWantRows, rule_) &&
        absl::c_linear_search(absl::MakeConstSpan(var.dims()).subspan(1), 0)) {
      return InvalidArgument("rows of var must not be empty, got ", var.ToString());
    }
    if (indices.rank() != 1) return InvalidArgument("indices must be one-dimensional, got ", indices.ToString());
    bool fits = grad.rank() == var.rank() && grad.dim(0) == indices.dim(0);
    for (int d = 1; fits && d < var.rank(); ++d) fits = grad.dim(d) == var.dim(d);
    if (fits) return absl::OkStatus();
    return InvalidArgument("grad ", grad.ToString(), " must be one row of var ", var.ToString(), " for each of ",
                           indices.dim(0), " indices");
  }

  template <typename T>
  Status Run(KernelContext& ctx, Tensor* const* values) const {
    using Compute = RuleCompute<T>;
    const RuleFn<T> fn = FindRule<T>(rule_);
    const RuleFn<Compute> in_compute = std::is_same_v<T, Compute> || fn ? nullptr : FindRule<Compute>(rule_);
    if (!fn && !in_compute) return Unimplemented("rule ", rule_, " is not defined for ", DTypeName(DTypeOf<T>::value));
    Compute scalars[kMaxRuleScalars] = {};
    for (size_t i = 0; i < scalars_.size(); ++i) {
      const Tensor& scalar = ctx.input(scalars_[i]);
      using Real = decltype(std::real(Compute()));
      scalars[i] = scalar.dtype() == DType::kInt64 ? Compute(static_cast<Real>(*scalar.data<int64_t>()))
                                                   : static_cast<Compute>(*scalar.data<T>());
    }
    T* vars[kMaxRuleVariables] = {};
    for (int i = 0; i < num_vars_; ++i) vars[i] = values[i]->mutable_data<T>();
    const T* grad = ctx.input(grad_).data<T>();
    auto run = [&](int64_t to, int64_t from, int64_t n) {
      T* at[kMaxRuleVariables] = {};
      for (int i = 0; i < num_vars_; ++i) at[i] = vars[i] + to;
      if (fn) return fn(scalars, flags_, at, grad + from, n);
      if constexpr (!std::is_same_v<T, Compute>) {
        RunTiles<T>(in_compute, scalars, flags_, at, num_vars_, grad + from, n);
      }
    };
    if (!sparse_) {
      ctx.ParallelFor(values[0]->num_elements(), 1.0, [&](int64_t b, int64_t e) { run(b, b, e - b); });
      return absl::OkStatus();
    }
    return RunRows(ctx, values[0]->shape(), run);
  }

  // The updates of one row in the order of the indices, so that a repeated index accumulates the same way everywhere.
  template <typename RunFn>
  Status RunRows(KernelContext& ctx, const Shape& var, const RunFn& run) const {
    MR_ASSIGN_OR_RETURN(const WideIndices indices, WideIndices::Make(ctx, ctx.input(indices_)));
    const int64_t rows = var.dim(0), n = indices.size();
    const int64_t row_size = rows == 0 ? 0 : var.num_elements() / rows;
    for (int64_t i = 0; i < n; ++i) {
      if (const int64_t row = indices.data()[i]; row < 0 || row >= rows) {
        return InvalidArgument("Index ", row, " at offset ", i, " in indices is out of range [0, ", rows, ")");
      }
    }
    const auto update = [&](const RangeEntries& some) {
      for (int64_t k = 0; k < some.n; ++k) {
        const int64_t i = some.at(k);
        run(indices.data()[i] * row_size, i * row_size, row_size);
      }
    };
    const double cost = 10 + static_cast<double>(row_size);  // of a row
    constexpr double kWorthSorting = 100e3;
    const int threads = ThreadsOf(ctx);
    if (threads == 1 || static_cast<double>(n) * cost < kWorthSorting || n > RowRanges::kMostEntries) {
      update(RangeEntries{nullptr, 0, n});
      return absl::OkStatus();
    }
    const auto bytes = (num_vars_ + 1) * row_size * static_cast<int64_t>(DTypeSize(ctx.input_dtype(grad_)));
    MR_ASSIGN_OR_RETURN(const RowRanges ranges, RowRanges::Make(ctx, indices.data(), 1, n, rows, bytes));
    const double per_range = cost * static_cast<double>(n) / static_cast<double>(ranges.size());
    ctx.ParallelFor(ranges.size(), per_range, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) update(ranges[r]);
    });
    return absl::OkStatus();
  }

  std::string rule_;
  bool sparse_ = false;
  bool by_handle_ = false;
  int num_vars_ = 0;
  int grad_ = -1;
  int indices_ = -1;
  std::vector<int> scalars_;
  RuleFlags flags_;
};

}  // namespace

void RegisterTrainingKernels(KernelRegistry& registry) {
  struct Served {
    const char* rule;
    const char* types;
    bool sparse;
    bool by_reference;
  };
  constexpr Served kServed[] = {
      {"GradientDescent", "FC", false, true},
      {"Momentum", "FC", true, true},
      {"Adagrad", "FC", true, true},
      {"Adadelta", "FC", true, true},
      {"Adam", "FC", false, true},
      {"AdaMax", "FLT", false, true},
      {"RMSProp", "FC", true, true},
      {"CenteredRMSProp", "FC", true, true},
      {"Ftrl", "FLT", true, true},
      {"FtrlV2", "FLT", true, true},
      {"AdagradV2", "FC", true, true},
      {"AdagradDA", "f32|f64", true, true},
      {"ProximalAdagrad", "f32|f64", true, true},
      {"ProximalGradientDescent", "f32|f64", true, true},
      {"AddSign", "FLT", false, true},
      {"PowerSign", "FLT", false, true},
      {"AdamWithAmsgrad", "FLT", false, false},
      {"KerasMomentum", "FC", true, false}};
  for (const Served& s : kServed) {
    for (const char* handle : {"", "Resource"}) {
      if (!*handle && !s.by_reference) continue;
      registry.Add<ApplyKernel>({.op = absl::StrCat(handle, "Apply", s.rule), .types = {{"T", Types(s.types)}}});
      if (!s.sparse) continue;
      registry.Add<ApplyKernel>({.op = absl::StrCat(handle, "SparseApply", s.rule), .types = {{"T", Types(s.types)}}});
    }
  }
}

}  // namespace millrace
