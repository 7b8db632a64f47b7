// SPDX-License-Identifier: Apache-2.0
// CPU kernels: pooling over windows of two neighbouring sizes, drawn at random (Graham, Fractional max-pooling, 2014),
// and its derivatives.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/nn/nn_pool.h"
#include "kernels/cpu/random/random.h"

namespace millrace {
namespace {

using Bounds = std::vector<int64_t>;  // window i begins at [i] and ends before [i + 1], or with it where they overlap

// Window `i` of cells [0, size): [begin, end).
std::pair<int64_t, int64_t> WindowOf(const int64_t* bounds, int64_t i, bool overlapping, int64_t size) {
  return {bounds[i], std::min(bounds[i + 1] + (overlapping ? 1 : 0), size)};
}

struct Windows {
  const int64_t* rows;
  const int64_t* columns;
  bool overlapping;
  int64_t height, width, depth, out_rows, out_columns;
};

// Calls fn(result, first cell of a run, cells in it) for each result of one image and each row of cells of its window;
// numbers count pixels.
template <typename Fn, typename Done>
void ForWindows(const Windows& w, const Fn& fn, const Done& done) {
  for (int64_t r = 0; r < w.out_rows; ++r) {
    const auto [top, bottom] = WindowOf(w.rows, r, w.overlapping, w.height);
    for (int64_t c = 0; c < w.out_columns; ++c) {
      const auto [left, right] = WindowOf(w.columns, c, w.overlapping, w.width);
      const int64_t result = r * w.out_columns + c;
      for (int64_t y = top; y < bottom; ++y) fn(result, y * w.width + left, right - left);
      done(result, (bottom - top) * (right - left));
    }
  }
}

template <typename T>
using SumOf = std::conditional_t<std::is_integral_v<T>,
                                 std::make_unsigned_t<std::conditional_t<std::is_integral_v<T>, T, int>>, T>;

template <bool kMax>
class FractionalPoolKernel final : public RandomKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(RandomKernel::Init(init));
    MR_ASSIGN_OR_RETURN(ratio_, init.Attr<std::vector<float>>("pooling_ratio"));
    MR_ASSIGN_OR_RETURN(pseudo_random_, init.Attr<bool>("pseudo_random"));
    MR_ASSIGN_OR_RETURN(overlapping_, init.Attr<bool>("overlapping"));
    MR_ASSIGN_OR_RETURN(deterministic_, init.Attr<bool>("deterministic"));
    if (ratio_.size() != 4)
      return InvalidArgument("pooling_ratio field must specify 4 dimensions, got ", ratio_.size());
    for (const float r : ratio_) {
      if (!(r >= 1)) return InvalidArgument("pooling_ratio cannot be smaller than 1, got: ", r);
    }
    if (ratio_[0] != 1 || ratio_[3] != 1) {
      return Unimplemented("Fractional pooling is not supported on the batch nor channel dimension");
    }
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.rank() != 4) return InvalidArgument("tensor_in must be 4-dimensional, got ", in.shape().ToString());
    int64_t out_dims[4];
    for (int i = 0; i < 4; ++i) {
      out_dims[i] =
          i == 1 || i == 2
              ? SaturatingCast<int64_t>(std::floor(static_cast<float>(in.dim(i)) / ratio_[static_cast<size_t>(i)]))
              : in.dim(i);
      if (in.dim(i) < 1 || out_dims[i] < 1 || out_dims[i] > in.dim(i)) {
        return InvalidArgument("pooling ", in.shape().ToString(), " by ratios ", ratio_[1], " and ", ratio_[2],
                               " leaves nothing of dimension ", i);
      }
    }
    Bounds bounds[2];
    Draw({in.dim(1), in.dim(2)}, {out_dims[1], out_dims[2]}, bounds);
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({out_dims[0], out_dims[1], out_dims[2], out_dims[3]}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    for (int k = 0; k < 2; ++k) {
      MR_ASSIGN_OR_RETURN(Tensor * t, ctx.AllocateOutput(1 + k, Shape::Vector(static_cast<int64_t>(bounds[k].size()))));
      std::copy(bounds[k].begin(), bounds[k].end(), t->mutable_data<int64_t>());
    }
    const Windows w{
        bounds[0].data(), bounds[1].data(), overlapping_, in.dim(1), in.dim(2), in.dim(3), out_dims[1], out_dims[2]};
    VisitTypes<float, double, int32_t, int64_t>(in.dtype(), [&]<typename T>() {
      const int64_t image = in.num_elements() / in.dim(0), result = out->num_elements() / in.dim(0);
      ctx.ParallelFor(in.dim(0), static_cast<double>(image), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) Pool<T>(w, in.data<T>() + b * image, out->mutable_data<T>() + b * result);
      });
    });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static void Pool(const Windows& w, const T* image, T* out) {
    using Sum = SumOf<T>;
    const int64_t depth = w.depth;
    std::vector<T> best(static_cast<size_t>(depth), LowestOf<T>());
    std::vector<Sum> sums(static_cast<size_t>(depth));
    ForWindows(
        w,
        [&](int64_t, int64_t first, int64_t cells) {
          for (const T* x = image + first * depth; x != image + (first + cells) * depth; x += depth) {
            for (size_t d = 0; d < static_cast<size_t>(depth); ++d) {
              if constexpr (kMax) {
                best[d] = Combine<RowOp::kMax>(best[d], x[d]);
              } else {
                sums[d] += static_cast<Sum>(x[d]);
              }
            }
          }
        },
        [&](int64_t result, int64_t cells) {
          for (size_t d = 0; d < static_cast<size_t>(depth); ++d) {
            T& to = out[result * depth + static_cast<int64_t>(d)];
            to = kMax ? best[d] : static_cast<T>(static_cast<T>(sums[d]) / static_cast<T>(cells));
            best[d] = LowestOf<T>();
            sums[d] = 0;
          }
        });
  }

  void Draw(std::array<int64_t, 2> in, std::array<int64_t, 2> out, Bounds* bounds) {
    if (deterministic_) {
      const absl::MutexLock lock(&drawn_mu_);
      if (drawn_for_ != std::array<int64_t, 4>{in[0], in[1], out[0], out[1]}) {
        for (size_t k = 0; k < 2; ++k) drawn_[k] = Sequence(in[k], out[k]);
        drawn_for_ = {in[0], in[1], out[0], out[1]};
      }
      std::copy(drawn_, drawn_ + 2, bounds);
      return;
    }
    for (size_t k = 0; k < 2; ++k) bounds[k] = Sequence(in[k], out[k]);
  }

  Bounds Sequence(int64_t in, int64_t out) {
    Bounds bounds{0};
    const int64_t k = in / out;
    if (pseudo_random_) {
      // ceil(alpha (i + u)), with u so small that neither the first nor the last window is of another size than k, k
      // + 1.
      const double alpha = static_cast<double>(in) / static_cast<double>(out);
      const double first = static_cast<double>(k + 2) / alpha - 1;
      const double last = static_cast<double>(in + 1 - k) / alpha - static_cast<double>(out - 1);
      PhiloxWords words(ReserveBlocks(1));
      const uint32_t x0 = words(), x1 = words();
      const double u = UnitDouble(x0, x1) * std::min(first, last);
      for (int64_t i = 1; i < out; ++i) {
        bounds.push_back(SaturatingCast<int64_t>(std::ceil(alpha * (static_cast<double>(i) + u))) - 1);
      }
      bounds.push_back(in);
      return bounds;
    }
    Bounds sizes(static_cast<size_t>(out), k);
    for (int64_t i = 0; i < in % out; ++i) ++sizes[static_cast<size_t>(i)];
    PhiloxWords words(ReserveBlocks((static_cast<uint64_t>(out) + 3) / 4));
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      std::swap(sizes[i], sizes[i + words() % static_cast<uint32_t>(sizes.size() - i)]);
    }
    for (const int64_t s : sizes) bounds.push_back(bounds.back() + s);
    return bounds;
  }

  std::vector<float> ratio_;
  bool pseudo_random_ = false, overlapping_ = false, deterministic_ = false;
  absl::Mutex drawn_mu_;
  Bounds drawn_[2] ABSL_GUARDED_BY(drawn_mu_);
  std::array<int64_t, 4> drawn_for_ ABSL_GUARDED_BY(drawn_mu_){};
};

// (orig_input, orig_output, out_backprop, rows, columns), or (orig_input_tensor_shape, out_backprop, rows, columns).
template <bool kMax>
class FractionalPoolGradKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(overlapping_, init.Attr<bool>("overlapping"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    constexpr int kGradient = kMax ? 2 : 1;
    Shape in = ctx.input(0).shape();
    if constexpr (!kMax) {
      if (in.rank() != 1) return InvalidArgument("orig_input_tensor_shape must be a vector, got ", in.ToString());
      MR_ASSIGN_OR_RETURN(in, Shape::Make(ctx.input(0).flat<int64_t>()));
    }
    const Tensor &gradient = ctx.input(kGradient), &rows = ctx.input(kGradient + 1),
                 &columns = ctx.input(kGradient + 2);
    if (in.rank() != 4 || gradient.rank() != 4 || in.dim(0) != gradient.dim(0) || in.dim(3) != gradient.dim(3)) {
      return InvalidArgument("the input and out_backprop must be 4-dimensional, with as many images and channels, got ",
                             in.ToString(), " and ", gradient.shape().ToString());
    }
    if (kMax && ctx.input(1).shape() != gradient.shape()) {
      return InvalidArgument(
          "orig_output has shape ", ctx.input(1).shape().ToString(), ", out_backprop ", gradient.shape().ToString());
    }
    MR_RETURN_IF_ERROR(CheckBounds("row_pooling_sequence", rows, in.dim(1), gradient.dim(1)));
    MR_RETURN_IF_ERROR(CheckBounds("col_pooling_sequence", columns, in.dim(2), gradient.dim(2)));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in));
    if (out->num_elements() == 0) return absl::OkStatus();
    const Windows w{rows.data<int64_t>(), columns.data<int64_t>(), overlapping_, in.dim(1), in.dim(2), in.dim(3),
                    gradient.dim(1),      gradient.dim(2)};
    VisitTypes<float, double, int32_t, int64_t>(out->dtype(), [&]<typename T>() {
      const int64_t image = out->num_elements() / in.dim(0), result = gradient.num_elements() / in.dim(0);
      ctx.ParallelFor(in.dim(0), static_cast<double>(image), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const T *g = gradient.data<T>() + b * result, *x = kMax ? ctx.input(0).data<T>() + b * image : nullptr;
          kMax ? ToLargest<T>(w, x, g, out->mutable_data<T>() + b * image)
               : ToAll<T>(w, g, out->mutable_data<T>() + b * image);
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  static Status CheckBounds(absl::string_view name, const Tensor& t, int64_t size, int64_t windows) {
    if (t.rank() != 1 || t.dim(0) != windows + 1) {
      return InvalidArgument(
          name, " must have one bound more than the ", windows, " windows, got shape ", t.shape().ToString());
    }
    const int64_t* v = t.data<int64_t>();
    for (int64_t i = 0; i <= windows; ++i) {
      if (v[i] < (i == 0 ? 0 : v[i - 1]) || v[i] > size) {
        return InvalidArgument(name, "[", i, "] = ", v[i], " must ascend and be in [0, ", size, "]");
      }
    }
    return absl::OkStatus();
  }

  template <typename T>
  static void ToLargest(const Windows& w, const T* image, const T* gradient, T* out) {
    const int64_t depth = w.depth;
    std::fill(out, out + w.height * w.width * depth, T(0));
    std::vector<int64_t> place(static_cast<size_t>(depth), -1);
    ForWindows(
        w,
        [&](int64_t, int64_t first, int64_t cells) {
          for (int64_t at = first * depth; at < (first + cells) * depth; at += depth) {
            for (int64_t d = 0; d < depth; ++d) {
              int64_t& p = place[static_cast<size_t>(d)];
              if (p < 0 || IsAbove(image[at + d], image[p])) p = at + d;
            }
          }
        },
        [&](int64_t result, int64_t) {
          for (int64_t d = 0; d < depth; ++d) {
            int64_t& p = place[static_cast<size_t>(d)];
            if (p >= 0) CombineInto<RowOp::kAdd, T, T>(out[p], gradient[result * depth + d]);
            p = -1;
          }
        });
  }

  template <typename T>
  static void ToAll(const Windows& w, const T* gradient, T* out) {
    const int64_t depth = w.depth;
    std::vector<double> sums(static_cast<size_t>(w.height * w.width * depth));
    for (int64_t r = 0; r < w.out_rows; ++r) {
      const auto [top, bottom] = WindowOf(w.rows, r, w.overlapping, w.height);
      for (int64_t c = 0; c < w.out_columns; ++c) {
        const auto [left, right] = WindowOf(w.columns, c, w.overlapping, w.width);
        const T* g = gradient + (r * w.out_columns + c) * depth;
        const double share = 1.0 / static_cast<double>((bottom - top) * (right - left));
        for (int64_t y = top; y < bottom; ++y) {
          for (int64_t at = (y * w.width + left) * depth; at < (y * w.width + right) * depth; at += depth) {
            for (int64_t d = 0; d < depth; ++d) sums[static_cast<size_t>(at + d)] += static_cast<double>(g[d]) * share;
          }
        }
      }
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        out[i] = SaturatingCast<T>(sums[i]);
      } else {
        out[i] = static_cast<T>(sums[i]);
      }
    }
  }

  bool overlapping_ = false;
};

}  // namespace

void RegisterFractionalPoolKernels(KernelRegistry& r) {
  const std::vector<DType> types = Types("FD|IDX");
  r.Add<FractionalPoolKernel<true>>({.op = "FractionalMaxPool", .types = {{"T", types}}});
  r.Add<FractionalPoolKernel<false>>({.op = "FractionalAvgPool", .types = {{"T", types}}});
  r.Add<FractionalPoolGradKernel<true>>({.op = "FractionalMaxPoolGrad", .types = {{"T", types}}});
  r.Add<FractionalPoolGradKernel<false>>({.op = "FractionalAvgPoolGrad", .types = {{"T", types}}});
}

}  // namespace millrace
