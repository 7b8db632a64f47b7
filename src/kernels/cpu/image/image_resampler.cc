// SPDX-License-Identifier: Apache-2.0
// CPU kernels: images read between their pixels (Jaderberg and others 2015), and the gradients of that.
#include <algorithm>
#include <cmath>

#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/image/image.h"

namespace millrace {
namespace {

struct Sizes {
  int64_t batch, height, width, depth;
  int64_t points;  // of an image
  int64_t image() const { return height * width * depth; }
};

StatusOr<Sizes> CheckInputs(const Tensor& data, const Tensor& warp) {
  if (data.rank() != 4) {
    return Unimplemented(
        "Only bilinear interpolation is currently supported. The input data shape must be [batch_size, data_height, "
        "data_width, data_channels], but is: ",
        data.shape().ToString());
  }
  if (warp.rank() < 2) return InvalidArgument("warp should be at least a matrix, got shape ", warp.shape().ToString());
  if (warp.dim(warp.rank() - 1) != 2) {
    return Unimplemented(
        "Only bilinear interpolation is supported, warping coordinates must be 2D; warp shape last entry should be 2, "
        "but shape vector is: ",
        warp.shape().ToString());
  }
  if (data.dim(0) != warp.dim(0)) {
    return InvalidArgument(
        "Batch size of data and warp tensor must be the same, but input shapes are: ", data.shape().ToString(), ", ",
        warp.shape().ToString());
  }
  return Sizes{data.dim(0), data.dim(1), data.dim(2), data.dim(3), DimProduct(warp.shape(), 1, warp.rank() - 1)};
}

// The four pixels around a place, of which those outside of the image are none (-1), and how near it is to them.
template <typename W>
struct Around {
  Around(const Sizes& s, W x, W y) {
    is_inside = x > -1 && y > -1 && x < static_cast<W>(s.width) && y < static_cast<W>(s.height);
    if (!is_inside) return;
    const W left = std::floor(x), top = std::floor(y);
    right_share = x - left;
    lower_share = y - top;
    const auto column = static_cast<int64_t>(left), row = static_cast<int64_t>(top);
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t r = row + k / 2, c = column + k % 2;
      const bool exists = r >= 0 && c >= 0 && r < s.height && c < s.width;
      at[k] = exists ? (r * s.width + c) * s.depth : -1;
      weight[k] = (k / 2 ? lower_share : 1 - lower_share) * (k % 2 ? right_share : 1 - right_share);
    }
  }
  bool is_inside;
  int64_t at[4] = {-1, -1, -1, -1};  // upper left, upper right, lower left, lower right
  W weight[4] = {};
  W right_share = 0, lower_share = 0;
};

template <typename T>
using Wide = Accumulator<T>;

template <typename T>
void Read(const Sizes& s, const T* image, const T* place, T* out) {
  using W = Wide<T>;
  const Around<W> around(s, static_cast<W>(place[0]), static_cast<W>(place[1]));
  for (int64_t c = 0; c < s.depth; ++c) {
    W sum = 0;
    for (int64_t k = 0; k < 4; ++k) {
      if (around.at[k] >= 0) sum += around.weight[k] * static_cast<W>(image[around.at[k] + c]);
    }
    out[c] = static_cast<T>(sum);
  }
}

// What one place adds to the gradient of its image, and the gradient of the place.
template <typename T>
void ReadBack(const Sizes& s, const T* image, const T* place, const T* grad, Wide<T>* image_grad, T* place_grad) {
  using W = Wide<T>;
  const Around<W> around(s, static_cast<W>(place[0]), static_cast<W>(place[1]));
  W dx = 0, dy = 0;
  for (int64_t c = 0; around.is_inside && c < s.depth; ++c) {
    const auto g = static_cast<W>(grad[c]);
    W pixel[4];
    for (int64_t k = 0; k < 4; ++k) {
      pixel[k] = around.at[k] >= 0 ? static_cast<W>(image[around.at[k] + c]) : 0;
      if (around.at[k] >= 0) image_grad[around.at[k] + c] += g * around.weight[k];
    }
    const W right = around.right_share, lower = around.lower_share;
    dx += g * ((1 - lower) * (pixel[1] - pixel[0]) + lower * (pixel[3] - pixel[2]));
    dy += g * ((1 - right) * (pixel[2] - pixel[0]) + right * (pixel[3] - pixel[1]));
  }
  place_grad[0] = static_cast<T>(dx);
  place_grad[1] = static_cast<T>(dy);
}

constexpr double kCostOfChannel = 6;

Status Resampler(KernelContext& ctx) {
  const Tensor &data = ctx.input(0), &warp = ctx.input(1);
  MR_ASSIGN_OR_RETURN(const Sizes s, CheckInputs(data, warp));
  MR_ASSIGN_OR_RETURN(const Shape shape, warp.shape().WithDim(warp.rank() - 1, s.depth));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  VisitTypes<float, double, Half, BFloat16>(data.dtype(), [&]<typename T>() {
    const double cost = 20 + kCostOfChannel * static_cast<double>(s.depth);
    ctx.ParallelFor(s.batch * s.points, cost, [&](int64_t begin, int64_t end) {
      StopNowAndThen pause;
      for (int64_t i = begin; i < end; ++i) {
        pause();
        const T* const image = data.data<T>() + i / s.points * s.image();
        Read(s, image, warp.data<T>() + 2 * i, out->mutable_data<T>() + i * s.depth);
      }
    });
  });
  return absl::OkStatus();
}

Status ResamplerGrad(KernelContext& ctx) {
  const Tensor &data = ctx.input(0), &warp = ctx.input(1), &grad = ctx.input(2);
  MR_ASSIGN_OR_RETURN(const Sizes s, CheckInputs(data, warp));
  MR_ASSIGN_OR_RETURN(const Shape shape, warp.shape().WithDim(warp.rank() - 1, s.depth));
  if (grad.shape() != shape) {
    return InvalidArgument("grad_output shape is not consistent with data and warp shapes; it should be ",
                           shape.ToString(), " but is ", grad.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(Tensor * data_grad, ctx.AllocateOutput(0, data.shape()));
  MR_ASSIGN_OR_RETURN(Tensor * warp_grad, ctx.AllocateOutput(1, warp.shape()));
  Status status;
  VisitTypes<float, double, Half, BFloat16>(data.dtype(), [&]<typename T>() {
    using W = Wide<T>;
    status = [&]() -> Status {
      Tensor sums = *data_grad;
      if constexpr (!std::is_same_v<T, W>) {
        MR_ASSIGN_OR_RETURN(sums, ctx.AllocateTemp(DTypeOf<W>::value, data.shape()));
      }
      W* const to = static_cast<W*>(std::is_same_v<T, W> ? data_grad->mutable_raw() : sums.mutable_raw());
      const double cost =
          static_cast<double>(s.image()) + static_cast<double>(s.points) * static_cast<double>(s.depth) * 20;
      ctx.ParallelFor(s.batch, cost, [&](int64_t begin, int64_t end) {
        StopNowAndThen pause;
        for (int64_t b = begin; b < end; ++b) {
          std::fill_n(to + b * s.image(), s.image(), W{0});
          for (int64_t i = b * s.points; i < (b + 1) * s.points; ++i) {
            pause();
            ReadBack(s, data.data<T>() + b * s.image(), warp.data<T>() + 2 * i, grad.data<T>() + i * s.depth,
                     to + b * s.image(), warp_grad->mutable_data<T>() + 2 * i);
          }
          if constexpr (!std::is_same_v<T, W>) {
            T* const narrow = data_grad->mutable_data<T>() + b * s.image();
            for (int64_t i = 0; i < s.image(); ++i) narrow[i] = static_cast<T>(to[b * s.image() + i]);
          }
        }
      });
      return absl::OkStatus();
    }();
  });
  return status;
}

}  // namespace

void RegisterImageResamplerKernels(KernelRegistry& r) {
  r.AddFn({.op = "Resampler"}, Resampler);
  r.AddFn({.op = "ResamplerGrad"}, ResamplerGrad);
}

}  // namespace millrace
