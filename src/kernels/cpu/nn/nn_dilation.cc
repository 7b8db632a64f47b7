// SPDX-License-Identifier: Apache-2.0
// CPU kernels: grey-scale dilation (a convolution of maxima and sums) and its derivatives.
#include <algorithm>

#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/nn/nn_layout.h"
#include "kernels/cpu/nn/nn_pool.h"

namespace millrace {
namespace {

enum class Way : uint8_t { kForward, kToInput, kToFilter };

struct Geometry {
  int64_t batch, height, width, depth, taps_y, taps_x, rows, columns;
  int64_t stride_y, stride_x, rate_y, rate_x, top, left;
};

template <Way way>
class DilationKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(strides_, init.Attr<std::vector<int64_t>>("strides"));
    MR_ASSIGN_OR_RETURN(rates_, init.Attr<std::vector<int64_t>>("rates"));
    for (const auto* list : {&strides_, &rates_}) {
      if (list->size() != 4 || (*list)[0] != 1 || (*list)[3] != 1 || (*list)[1] < 1 || (*list)[2] < 1) {
        return InvalidArgument("strides and rates must be [1, rows, columns, 1], positive");
      }
    }
    MR_ASSIGN_OR_RETURN(const std::string padding, init.Attr<std::string>("padding"));
    MR_ASSIGN_OR_RETURN(padding_, ParsePadding(padding));
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    Geometry g;
    MR_RETURN_IF_ERROR(MakeGeometry(ctx, &g));
    MR_ASSIGN_OR_RETURN(const Shape pooled, Shape::Make({g.batch, g.rows, g.columns, g.depth}));
    if (way != Way::kForward && ctx.input(2).shape() != pooled) {
      return InvalidArgument("out_backprop has shape ", ctx.input(2).shape().ToString(), ", want ", pooled.ToString());
    }
    const Shape& shape = way == Way::kForward ? pooled : ctx.input(way == Way::kToInput ? 0 : 1).shape();
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    const bool known = VisitRealTypes(out->dtype(), [&]<typename T>() { Run<T>(ctx, g, *out); });
    return known ? absl::OkStatus() : Unimplemented("no dilation of ", DTypeName(out->dtype()));
  }

 private:
  Status MakeGeometry(const KernelContext& ctx, Geometry* g) const {
    const Shape &in = ctx.input(0).shape(), &filter = ctx.input(1).shape();
    if (in.rank() != 4 || filter.rank() != 3 || in.dim(3) != filter.dim(2)) {
      return InvalidArgument("input must be [batch, rows, columns, depth] and filter [rows, columns, depth], got ",
                             in.ToString(), " and ", filter.ToString());
    }
    MR_ASSIGN_OR_RETURN(
        const WindowExtent y, ComputeWindow(in.dim(1), filter.dim(0), strides_[1], rates_[1], padding_));
    MR_ASSIGN_OR_RETURN(
        const WindowExtent x, ComputeWindow(in.dim(2), filter.dim(1), strides_[2], rates_[2], padding_));
    *g = {in.dim(0), in.dim(1),   in.dim(2),   in.dim(3), filter.dim(0), filter.dim(1), y.output,
          x.output,  strides_[1], strides_[2], rates_[1], rates_[2],     y.pad_before,  x.pad_before};
    return absl::OkStatus();
  }

  // Calls fn(value, input cell, filter cell) for the taps of the window at (row, column) that lie inside; cells are
  // positions of channel 0.
  template <typename Fn>
  static void ForTaps(const Geometry& g, int64_t row, int64_t column, const Fn& fn) {
    for (int64_t dy = 0; dy < g.taps_y; ++dy) {
      const int64_t y = row * g.stride_y - g.top + dy * g.rate_y;
      if (!InRange(y, g.height)) continue;
      for (int64_t dx = 0; dx < g.taps_x; ++dx) {
        const int64_t x = column * g.stride_x - g.left + dx * g.rate_x;
        if (InRange(x, g.width)) fn((y * g.width + x) * g.depth, (dy * g.taps_x + dx) * g.depth);
      }
    }
  }

  template <typename T>
  void Run(KernelContext& ctx, const Geometry& g, Tensor& out) const {
    const auto taps = static_cast<double>(g.taps_y * g.taps_x);
    const double cost = 2 * taps * static_cast<double>(g.columns * g.depth);
    if constexpr (way == Way::kForward) {
      ctx.ParallelFor(g.batch * g.rows, cost, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) Row<T>(ctx, g, r, out.mutable_data<T>() + r * g.columns * g.depth);
      });
      return;
    }
    // Sums of half numbers are kept in float. Images are apart from each other, the filter is one for all.
    const bool shared = way == Way::kToFilter;
    const int64_t size = shared ? out.num_elements() : out.num_elements() / g.batch;
    const auto spread = [&](int64_t begin, int64_t end) {
      std::vector<Accumulator<T>> sums(static_cast<size_t>(size));
      for (int64_t b = begin; b < end; ++b) {
        if (!shared) std::fill(sums.begin(), sums.end(), Accumulator<T>(0));
        for (int64_t r = b * g.rows; r < (b + 1) * g.rows; ++r) SpreadRow<T>(ctx, g, r, sums.data());
        if (shared && b + 1 < end) continue;
        T* to = out.mutable_data<T>() + (shared ? 0 : b * size);
        for (int64_t i = 0; i < size; ++i) to[i] = static_cast<T>(sums[static_cast<size_t>(i)]);
      }
    };
    if (g.batch == 0 || shared) {
      ZeroElements(out.dtype(), out.mutable_raw(), 0, out.num_elements());
      if (g.batch > 0) spread(0, g.batch);
      return;
    }
    ctx.ParallelFor(g.batch, cost * static_cast<double>(g.rows), spread);
  }

  template <typename T>
  static Accumulator<T> SumOf(const T& a, const T& b) {
    if constexpr (kIsHalf<T>) {
      return static_cast<float>(T(static_cast<float>(a) + static_cast<float>(b)));
    } else {
      return Combine<RowOp::kAdd>(a, b);
    }
  }

  template <typename T>
  static void Row(const KernelContext& ctx, const Geometry& g, int64_t r, T* out) {
    const T* image = ctx.input(0).data<T>() + r / g.rows * g.height * g.width * g.depth;
    const T* filter = ctx.input(1).data<T>();
    std::vector<Accumulator<T>> best(static_cast<size_t>(g.depth));
    for (int64_t c = 0; c < g.columns; ++c, out += g.depth) {
      std::fill(best.begin(), best.end(), static_cast<Accumulator<T>>(LowestOf<T>()));
      ForTaps(g, r % g.rows, c, [&](int64_t cell, int64_t tap) {
        for (int64_t d = 0; d < g.depth; ++d) {
          const Accumulator<T> v = SumOf<T>(image[cell + d], filter[tap + d]);
          Accumulator<T>& b = best[static_cast<size_t>(d)];
          b = Combine<RowOp::kMax>(b, v);
        }
      });
      for (int64_t d = 0; d < g.depth; ++d) out[d] = static_cast<T>(best[static_cast<size_t>(d)]);
    }
  }

  // Gives each gradient of the row to the first tap of its window that makes the maximum.
  template <typename T>
  static void SpreadRow(const KernelContext& ctx, const Geometry& g, int64_t r, Accumulator<T>* sums) {
    const T* image = ctx.input(0).data<T>() + r / g.rows * g.height * g.width * g.depth;
    const T* filter = ctx.input(1).data<T>();
    const T* gradient = ctx.input(2).data<T>() + r * g.columns * g.depth;
    std::vector<Accumulator<T>> best(static_cast<size_t>(g.depth));
    std::vector<int32_t> chosen(static_cast<size_t>(g.depth));  // of the places: that of the best tap so far
    std::vector<int64_t> places(static_cast<size_t>(g.taps_y * g.taps_x + 1));
    for (int64_t c = 0; c < g.columns; ++c, gradient += g.depth) {
      std::fill(best.begin(), best.end(), static_cast<Accumulator<T>>(LowestOf<T>()));
      std::fill(chosen.begin(), chosen.end(), 0);
      const int64_t y = std::max<int64_t>(0, r % g.rows * g.stride_y - g.top);
      const int64_t x = std::max<int64_t>(0, c * g.stride_x - g.left);
      const bool inside = y < g.height && x < g.width;
      places[0] = way == Way::kToInput && inside ? (y * g.width + x) * g.depth : 0;
      int32_t taps = 0;
      ForTaps(g, r % g.rows, c, [&](int64_t cell, int64_t tap) {
        places[static_cast<size_t>(++taps)] = way == Way::kToInput ? cell : tap;
        const T *const from = image + cell, *const weights = filter + tap;
        Accumulator<T>* const b = best.data();
        int32_t* const at = chosen.data();
        for (int64_t d = 0; d < g.depth; ++d) {
          const Accumulator<T> v = SumOf<T>(from[d], weights[d]);
          const bool above = !(v <= b[d]) & (b[d] == b[d]);  // IsAbove, without a branch
          b[d] = above ? v : b[d];
          at[d] = above ? taps : at[d];
        }
      });
      for (int64_t d = 0; d < g.depth; ++d) {
        const auto place = static_cast<size_t>(chosen[static_cast<size_t>(d)]);
        CombineInto<RowOp::kAdd, Accumulator<T>, T>(sums[places[place] + d], gradient[d]);
      }
    }
  }

  std::vector<int64_t> strides_, rates_;
  Padding padding_ = Padding::kValid;
};

}  // namespace

void RegisterDilationKernels(KernelRegistry& r) {
  r.Add<DilationKernel<Way::kForward>>({.op = "Dilation2D"});
  r.Add<DilationKernel<Way::kToInput>>({.op = "Dilation2DBackpropInput"});
  r.Add<DilationKernel<Way::kToFilter>>({.op = "Dilation2DBackpropFilter"});
}

}  // namespace millrace
