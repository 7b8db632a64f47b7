// SPDX-License-Identifier: Apache-2.0
// Pooling with the places of the maxima, and its gradients.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/checked.h"
#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/nn/nn_pool.h"
#include "kernels/cpu/nn/nn_pool_walk.h"

namespace millrace {
namespace {

using namespace pooling;  // NOLINT

// The largest value and its place, the first of equal ones, for every channel of every window of the run; many channels
// at a time, cell by cell. `base` is the place of image[0].
template <typename T>
void MaxAndPlaceOfRun(const WindowRun& run, const T* image, int64_t base, T* y, int64_t* place) {
  using Cell = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  constexpr size_t kFew = 8, kChannels = 128;
  if (run.channels < kFew) {
    return ForEachResult(run, [&](int64_t at, size_t to) {
      const int64_t largest = FirstLargest(run, image, at);
      y[to] = image[largest];
      place[to] = base + largest;
    });
  }
  T best[kChannels];
  Cell cell[kChannels];
  for (size_t w = 0; w < run.windows; ++w) {
    for (size_t first = 0; first < run.channels; first += kChannels) {
      const size_t n = std::min(kChannels, run.channels - first), to = w * run.channels_stride + first;
      const int64_t at = static_cast<int64_t>(w) * run.step + static_cast<int64_t>(first);
      std::copy_n(image + at + run.offsets[0], n, best);
      std::fill_n(cell, n, Cell{0});
      for (size_t i = 1; i < run.cells; ++i) {
        const T* const x = image + at + run.offsets[i];
        for (size_t c = 0; c < n; ++c) {
          const bool above = !(x[c] <= best[c]) & (best[c] == best[c]);  // IsAbove, without a branch
          best[c] = above ? x[c] : best[c];
          cell[c] = above ? static_cast<Cell>(i) : cell[c];
        }
      }
      for (size_t c = 0; c < n; ++c) {
        y[to + c] = best[c];
        place[to + c] = base + at + static_cast<int64_t>(c) + run.offsets[static_cast<size_t>(cell[c])];
      }
    }
  }
}

template <typename T>
void MaxAndPlace(KernelContext& ctx, const PoolGeometry& g, bool with_batch, const T* x, T* y, int64_t* place) {
  Forward(OnThreads(ctx), g, [&](const WindowRun& run, int64_t cell, int64_t out) {
    MaxAndPlaceOfRun(run, x + cell, with_batch ? cell : cell % g.image(), y + out, place + out);
  });
}

class MaxPoolWithArgmaxKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(attrs_, ReadWindowAttrs(init, "NHWC", /*spatial_only=*/false));
    MR_ASSIGN_OR_RETURN(with_batch_, init.Attr<bool>("include_batch_in_index"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    PoolGeometry g;
    Shape pooled;
    MR_RETURN_IF_ERROR(MakePoolGeometry(attrs_, ctx.input(0).shape(), false, &g, &pooled));
    if (ctx.input(0).num_elements() == 0) {
      return InvalidArgument("there is no place of a maximum in an empty input, got ", ctx.input(0).shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, pooled));
    MR_ASSIGN_OR_RETURN(Tensor* const argmax, ctx.AllocateOutput(1, pooled));
    if (out->num_elements() == 0) return absl::OkStatus();
    const bool narrow_index = argmax->dtype() == DType::kInt32;
    if (narrow_index && ctx.input(0).num_elements() > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("int32 cannot index an input of ", ctx.input(0).num_elements(), " elements");
    }
    MR_ASSIGN_OR_RETURN(const Tensor x, Widened(ctx, ctx.input(0)));
    Tensor y = *out, place = *argmax;
    if (IsNarrowFloat(out->dtype())) {
      MR_ASSIGN_OR_RETURN(y, ctx.AllocateTemp(DType::kFloat, pooled));
    }
    if (narrow_index) {
      MR_ASSIGN_OR_RETURN(place, ctx.AllocateTemp(DType::kInt64, pooled));
    }
    MR_RETURN_IF_ERROR(WithRealType(x.dtype(), [&](auto zero) -> Status {
      using T = decltype(zero);
      MaxAndPlace<T>(ctx, g, with_batch_, x.data<T>(), y.mutable_data<T>(), place.mutable_data<int64_t>());
      return absl::OkStatus();
    }));
    if (IsNarrowFloat(out->dtype())) NarrowInto(ctx, y, out);
    if (narrow_index) {
      std::transform(place.data<int64_t>(), place.data<int64_t>() + place.num_elements(),
                     argmax->mutable_data<int32_t>(), [](int64_t v) { return static_cast<int32_t>(v); });
    }
    return absl::OkStatus();
  }

 private:
  WindowAttrs attrs_;
  bool with_batch_ = false;
};

class MaxPoolGradWithArgmaxKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(attrs_, ReadWindowAttrs(init, "NHWC", /*spatial_only=*/false));
    MR_ASSIGN_OR_RETURN(with_batch_, init.Attr<bool>("include_batch_in_index"));
    second_ = init.op.name == "MaxPoolGradGradWithArgmax";
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Shape& shape = ctx.input(0).shape();
    PoolGeometry g;
    Shape pooled;
    MR_RETURN_IF_ERROR(MakePoolGeometry(attrs_, shape, false, &g, &pooled));
    if (second_) return Gather(ctx, g, pooled);
    for (int i = 1; i < 3; ++i) {
      if (!(ctx.input(i).shape() == pooled)) {
        return InvalidArgument(i == 1 ? "grad" : "argmax", " must have shape ", pooled.ToString(), ", got ",
                               ctx.input(i).shape().ToString());
      }
    }
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, shape));
    MR_ASSIGN_OR_RETURN(const Tensor grad, Widened(ctx, ctx.input(1)));
    Tensor sum = *out;
    if (IsNarrowFloat(out->dtype())) {
      MR_ASSIGN_OR_RETURN(sum, ctx.AllocateTemp(DType::kFloat, shape));
    }
    if (sum.num_elements() > 0) std::memset(sum.mutable_raw(), 0, sum.TotalBytes());
    MR_RETURN_IF_ERROR(WithRealType(sum.dtype(), [&](auto zero) -> Status {
      using T = decltype(zero);
      if (ctx.input_dtype(2) == DType::kInt32) return Scatter<T, int32_t>(g, grad, ctx.input(2), &sum);
      return Scatter<T, int64_t>(g, grad, ctx.input(2), &sum);
    }));
    if (IsNarrowFloat(out->dtype())) NarrowInto(ctx, sum, out);
    return absl::OkStatus();
  }

 private:
  template <typename T, typename Index>
  Status Scatter(const PoolGeometry& g, const Tensor& grad, const Tensor& argmax, Tensor* sum) const {
    const int64_t per_image = g.rows() * g.out[2] * g.channels;
    const int64_t limit = with_batch_ ? sum->num_elements() : g.image();
    for (int64_t i = 0; i < grad.num_elements(); ++i) {
      const int64_t at = argmax.data<Index>()[i];
      if (!InRange(at, limit)) return InvalidArgument("argmax[", i, "] = ", at, " is outside [0, ", limit, ")");
      T& cell = sum->mutable_data<T>()[at + (with_batch_ ? 0 : i / per_image * g.image())];
      if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        cell = static_cast<T>(static_cast<U>(cell) + static_cast<U>(grad.data<T>()[i]));
      } else {
        cell += grad.data<T>()[i];
      }
    }
    return absl::OkStatus();
  }

  // The second derivative takes from where the first one puts.
  Status Gather(KernelContext& ctx, const PoolGeometry& g, const Shape& pooled) const {
    const Tensor &grad = ctx.input(1), &argmax = ctx.input(2);
    if (grad.shape() != ctx.input(0).shape() || argmax.shape() != pooled) {
      return InvalidArgument("grad must have the input's shape ", ctx.input(0).shape().ToString(), " and argmax ",
                             pooled.ToString(), ", got ", grad.shape().ToString(), " and ", argmax.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, pooled));
    if (out->num_elements() == 0) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> places, argmax.IntValues());
    const int64_t per_image = g.rows() * g.out[2] * g.channels, limit = with_batch_ ? grad.num_elements() : g.image();
    const size_t size = DTypeSize(grad.dtype());
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      const int64_t at = places[Sz(i)];
      if (!InRange(at, limit)) return InvalidArgument("argmax[", i, "] = ", at, " is outside [0, ", limit, ")");
      const int64_t from = at + (with_batch_ ? 0 : i / per_image * g.image());
      std::memcpy(static_cast<char*>(out->mutable_raw()) + Sz(i) * size,
                  static_cast<const char*>(grad.raw()) + Sz(from) * size, size);
    }
    return absl::OkStatus();
  }

  WindowAttrs attrs_;
  bool with_batch_ = false, second_ = false;
};

}  // namespace

void RegisterArgmaxPoolKernels(KernelRegistry& r) {
  r.Add<MaxPoolWithArgmaxKernel>({.op = "MaxPoolWithArgmax", .types = {{"T", Types("REAL")}}, .cost = WindowCost});
  r.Add<MaxPoolGradWithArgmaxKernel>({.op = "MaxPoolGradWithArgmax", .types = {{"T", Types("REAL")}}});
  r.Add<MaxPoolGradWithArgmaxKernel>({.op = "MaxPoolGradGradWithArgmax", .types = {{"T", Types("REAL")}}});
}

}  // namespace millrace
