// SPDX-License-Identifier: Apache-2.0
// CPU kernels: Fourier transforms over the last one, two or three axes. Each axis is a pass over the tensor, in which
// as many signals as fit into the cache are gathered, transformed side by side, and put back.
#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "kernels/cpu/engine/fourier.h"
#include "kernels/cpu/engine/fourier_tiles.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/signal/signal.h"

namespace millrace {
namespace {

// A few plans, of the lengths asked for last.
template <typename Plan>
class PlanCache {
 public:
  std::shared_ptr<const Plan> Get(int64_t n) {
    {
      const absl::MutexLock lock(&mu_);
      for (const auto& plan : plans_) {
        if (plan && plan->size() == n) return plan;
      }
    }
    auto plan = std::make_shared<const Plan>(n);
    const absl::MutexLock lock(&mu_);
    plans_[next_] = plan;
    next_ = (next_ + 1) % kPlans;
    return plan;
  }

 private:
  static constexpr size_t kPlans = 4;
  absl::Mutex mu_;
  std::shared_ptr<const Plan> plans_[kPlans] ABSL_GUARDED_BY(mu_);
  size_t next_ ABSL_GUARDED_BY(mu_) = 0;
};

// Where signals begin in a tensor: signal i of n, numbered over all axes but the one that is transformed, of a window
// that starts at the origin. Number k of a signal lies k * stride further.
class SignalPlaces {
 public:
  SignalPlaces(const Shape& tensor, absl::Span<const int64_t> window, int axis) {
    int64_t stride = 1;
    for (int d = tensor.rank() - 1; d >= 0; --d) {
      if (d == axis) {
        stride_ = stride;
      } else {
        sizes_.push_back(window[static_cast<size_t>(d)]);
        strides_.push_back(stride);
        count_ *= sizes_.back();
      }
      stride *= tensor.dim(d);
    }
  }
  int64_t count() const { return count_; }
  int64_t stride() const { return stride_; }
  // at[l] = `values` times the place of signal first + l.
  void Fill(int64_t first, int64_t values, absl::Span<int64_t> at) const {
    const size_t axes = sizes_.size();
    int64_t index[kMaxRank], place = 0;
    for (size_t d = 0; d < axes; ++d) {
      index[d] = first % sizes_[d];
      first /= sizes_[d];
      place += index[d] * strides_[d];
    }
    for (int64_t& to : at) {
      to = values * place;
      for (size_t d = 0; d < axes; ++d) {
        place += strides_[d];
        if (++index[d] < sizes_[d]) break;
        place -= sizes_[d] * strides_[d];
        index[d] = 0;
      }
    }
  }

 private:
  int64_t count_ = 1, stride_ = 1;
  std::vector<int64_t> sizes_, strides_;  // from the last axis on
};

// How many signals to transform side by side: all of a vector where the cache allows, several where they are short.
template <typename T>
int64_t LanesFor(int64_t n, int64_t signals) {
  constexpr int64_t kCache = 1 << 19, kVector = 64 / sizeof(T), kVectors = 8, kNumbers = 512;
  const int64_t fit = kCache / (4 * static_cast<int64_t>(sizeof(T)) * n);
  const int64_t most = kVector * std::clamp<int64_t>(kNumbers / (n * kVector), 1, kVectors);
  return std::clamp<int64_t>(fit, 1, std::min(most, std::max<int64_t>(1, signals)));
}

// Calls work(lanes, places of lanes in `from`, in `to`, scratch) for groups of signals, in parallel. Places count the
// values of numbers, of which a number has as many as `from_values` and `to_values` say.
template <typename T, typename Work>
void ForSignals(const KernelContext& ctx, int64_t n, const SignalPlaces& from, int64_t from_values,
                const SignalPlaces& to, int64_t to_values, const Work& work) {
  const int64_t lanes = LanesFor<T>(n, to.count());
  const int64_t groups = (to.count() + lanes - 1) / lanes;
  const double cost = static_cast<double>(n * lanes) * (2 + std::log2(static_cast<double>(n)) / 4);
  ctx.ParallelFor(groups, cost, [&](int64_t begin, int64_t end) {
    FourierScratch<T> scratch;
    std::vector<int64_t> from_at(static_cast<size_t>(lanes)), to_at(static_cast<size_t>(lanes));
    for (int64_t g = begin; g < end; ++g) {
      const int64_t now = std::min(lanes, to.count() - g * lanes);
      from.Fill(g * lanes, from_values, absl::MakeSpan(from_at).first(static_cast<size_t>(now)));
      to.Fill(g * lanes, to_values, absl::MakeSpan(to_at).first(static_cast<size_t>(now)));
      work(now, from_at.data(), to_at.data(), scratch);
    }
  });
}

template <typename T>
const T* ValuesOf(const std::complex<T>* x) {
  return reinterpret_cast<const T*>(x);
}
template <typename T>
T* ValuesOf(std::complex<T>* x) {
  return reinterpret_cast<T*>(x);
}

template <typename T>
T InverseOf(int64_t n) {
  return static_cast<T>(1.0 / static_cast<double>(n));
}

class FourierKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    absl::string_view name = init.op.name;
    rank_ = absl::EndsWith(name, "3D") ? 3 : absl::EndsWith(name, "2D") ? 2 : 1;
    inverse_ = absl::StrContains(name, "IFFT") || absl::StartsWith(name, "IRFFT");
    return absl::OkStatus();
  }

 protected:
  Status RequireRank(const Tensor& in) const {
    if (in.rank() >= rank_) return absl::OkStatus();
    return InvalidArgument("Input must have rank of at least ", rank_, " but got: ", in.shape().ToString());
  }
  // Complex transforms over `axis` of the window of x's first elements, to y, which has the window's shape; x may be y.
  template <typename T>
  void TransformAxis(const KernelContext& ctx, PlanCache<FourierPlan<T>>& plans, const std::complex<T>* x,
                     const Shape& x_shape, std::complex<T>* y, const Shape& y_shape, int axis) const {
    const auto plan = plans.Get(y_shape.dim(axis));
    const int64_t n = plan->size();
    const SignalPlaces from(x_shape, y_shape.dims(), axis), to(y_shape, y_shape.dims(), axis);
    const T scale = inverse_ ? InverseOf<T>(n) : T(1);
    ForSignals<T>(ctx, n, from, 2, to, 2,
                  [&](int64_t lanes, const int64_t* from_at, const int64_t* to_at, FourierScratch<T>& scratch) {
                    const SplitNumbers<T> data = scratch.Numbers(n * lanes);
                    GatherNumbers({from_at, 2 * from.stride(), lanes, n}, ValuesOf(x), data.re, data.im);
                    const SplitNumbers<T> out = plan->Run(data, lanes, scratch, inverse_);
                    ScatterNumbers({to_at, 2 * to.stride(), lanes, n}, out.re, out.im, scale, ValuesOf(y));
                  });
  }

  int rank_ = 1;
  bool inverse_ = false;
};

template <typename T>
class ComplexFourierKernel final : public FourierKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    MR_RETURN_IF_ERROR(RequireRank(in));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    if (in.num_elements() == 0) return absl::OkStatus();
    const auto* from = in.data<std::complex<T>>();
    auto* to = out->mutable_data<std::complex<T>>();
    for (int axis = in.rank() - 1; axis >= in.rank() - rank_; --axis) {
      TransformAxis(ctx, plans_, from, in.shape(), to, in.shape(), axis);
      from = to;
    }
    return absl::OkStatus();
  }

 private:
  PlanCache<FourierPlan<T>> plans_;
};

template <typename T>
class RealFourierKernel final : public FourierKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    MR_RETURN_IF_ERROR(RequireRank(in));
    const Tensor& lengths = ctx.input(1);
    if (lengths.rank() != 1 || lengths.dim(0) != rank_) {
      return InvalidArgument("fft_length must have shape [", rank_, "], got ", lengths.shape().ToString());
    }
    std::vector<int64_t> dims(in.shape().dims().begin(), in.shape().dims().end());
    for (int i = 0; i < rank_; ++i) {
      const int64_t n = lengths.data<int32_t>()[i];
      if (n < 0) return InvalidArgument("fft_length[", i, "] must >= 0, but got: ", n);
      const int axis = in.rank() - rank_ + i;
      const bool last = i + 1 == rank_;
      const int64_t bins = n == 0 ? 0 : n / 2 + 1, least = inverse_ && last ? n / 2 + 1 : n;
      if (in.dim(axis) != 0 && in.dim(axis) < least) {
        return InvalidArgument(
            "Input dimension ", axis, " must have length of at least ", least, " but got: ", in.dim(axis));
      }
      dims[static_cast<size_t>(axis)] = last && !inverse_ ? bins : n;
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (in.num_elements() == 0) {
      ZeroElements(out->dtype(), out->mutable_raw(), 0, out->num_elements());
      return absl::OkStatus();
    }
    const int64_t n = lengths.data<int32_t>()[rank_ - 1];
    return inverse_ ? Backward(ctx, in, n, *out) : Forward(ctx, in, n, *out);
  }

 private:
  Status Forward(KernelContext& ctx, const Tensor& in, int64_t n, Tensor& out) {
    const auto plan = real_plans_.Get(n);
    const int last = in.rank() - 1;
    const SignalPlaces from(in.shape(), out.shape().dims(), last), to(out.shape(), out.shape().dims(), last);
    const auto* x = in.data<T>();
    auto* y = out.mutable_data<std::complex<T>>();
    const auto work = [&](int64_t lanes, const int64_t* from_at, const int64_t* to_at, FourierScratch<T>& scratch) {
      const SplitNumbers<T> data = scratch.Numbers(plan->scratch_size() * lanes);
      if (plan->packed()) {
        GatherNumbers({from_at, 2, lanes, n / 2}, x, data.re, data.im);
      } else {
        for (int64_t l = 0; l < lanes; ++l) {
          for (int64_t k = 0; k < n; ++k) data.re[k * lanes + l] = x[from_at[l] + k];
        }
      }
      const SplitNumbers<T> bins = plan->Forward(data, lanes, scratch);
      ScatterNumbers({to_at, 2, lanes, plan->bins()}, bins.re, bins.im, T(1), ValuesOf(y));
    };
    ForSignals<T>(ctx, n, from, 1, to, 2, work);
    for (int axis = last - 1; axis > last - rank_; --axis) {
      TransformAxis(ctx, plans_, y, out.shape(), y, out.shape(), axis);
    }
    return absl::OkStatus();
  }

  Status Backward(KernelContext& ctx, const Tensor& in, int64_t n, Tensor& out) {
    const auto plan = real_plans_.Get(n);
    const int last = in.rank() - 1;
    MR_ASSIGN_OR_RETURN(const Shape shape, out.shape().WithDim(last, plan->bins()));
    const auto* x = in.data<std::complex<T>>();
    Tensor middle;
    Shape x_shape = in.shape();
    if (rank_ > 1) {
      MR_ASSIGN_OR_RETURN(middle, ctx.AllocateTemp(in.dtype(), shape));
      auto* m = middle.mutable_data<std::complex<T>>();
      for (int axis = last - 1; axis > last - rank_; --axis) {
        TransformAxis(ctx, plans_, x, x_shape, m, shape, axis);
        x = m;
        x_shape = shape;
      }
    }
    const SignalPlaces from(x_shape, shape.dims(), last), to(out.shape(), out.shape().dims(), last);
    auto* y = out.mutable_data<T>();
    const auto scale = InverseOf<T>(n);
    const auto work = [&](int64_t lanes, const int64_t* from_at, const int64_t* to_at, FourierScratch<T>& scratch) {
      const SplitNumbers<T> data = scratch.Numbers(plan->scratch_size() * lanes);
      GatherNumbers({from_at, 2, lanes, plan->bins()}, ValuesOf(x), data.re, data.im);
      const SplitNumbers<T> signal = plan->Backward(data, lanes, scratch);
      if (plan->packed()) {
        ScatterNumbers({to_at, 2, lanes, n / 2}, signal.re, signal.im, scale, y);
      } else {
        for (int64_t l = 0; l < lanes; ++l) {
          for (int64_t k = 0; k < n; ++k) y[to_at[l] + k] = signal.re[k * lanes + l] * scale;
        }
      }
    };
    ForSignals<T>(ctx, n, from, 2, to, 1, work);
    return absl::OkStatus();
  }

  PlanCache<FourierPlan<T>> plans_;
  PlanCache<RealFourierPlan<T>> real_plans_;
};

}  // namespace

void RegisterSignalKernels(KernelRegistry& r) {
  for (const char* rank : {"", "2D", "3D"}) {
    for (const char* direction : {"FFT", "IFFT"}) {
      const std::string op = absl::StrCat(direction, rank);
      r.Add<ComplexFourierKernel<float>>({.op = op, .types = {{"Tcomplex", {DType::kComplex64}}}});
      r.Add<ComplexFourierKernel<double>>({.op = op, .types = {{"Tcomplex", {DType::kComplex128}}}});
      r.Add<ComplexFourierKernel<float>>({.op = absl::StrCat("Batch", op)});
    }
    for (const char* direction : {"RFFT", "IRFFT"}) {
      const std::string op = absl::StrCat(direction, rank);
      r.Add<RealFourierKernel<float>>(
          {.op = op, .types = {{"Treal", {DType::kFloat}}, {"Tcomplex", {DType::kComplex64}}}});
      r.Add<RealFourierKernel<double>>(
          {.op = op, .types = {{"Treal", {DType::kDouble}}, {"Tcomplex", {DType::kComplex128}}}});
    }
  }
}

}  // namespace millrace
