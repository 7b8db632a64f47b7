// SPDX-License-Identifier: Apache-2.0
// CPU kernels: ImageProjectiveTransform, V2 and V3.
//
// Pixel (x, y) of a result is taken from ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) of the image, where
// k = c0 x + c1 y + 1, for a transform [a0, a1, a2, b0, b1, b2, c0, c1].
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/image/image.h"

namespace millrace {
namespace {

enum class Fill : uint8_t { kConstant, kReflect, kWrap, kNearest };

// A place beyond the ends of an axis, brought back to it: [abcd] goes on as ..dcba|abcd|dcba.., ..abcd|abcd|abcd.. or
// ..aaaa|abcd|dddd.. .
float Folded(float at, int64_t size, Fill fill) {
  const auto n = static_cast<float>(size), last = n - 1;
  if (fill == Fill::kConstant || (at >= 0 && at <= last)) return at;
  if (!std::isfinite(at)) return fill == Fill::kNearest && at > 0 ? last : 0;
  if (size > 1 && fill == Fill::kReflect) {
    const float period = 2 * n;
    if (at < 0) {
      at += period * std::trunc(-at / period);
      at = at < -n ? at + period : -at - 1;
    } else {
      at -= period * std::trunc(at / period);
      if (at >= n) at = period - at - 1;
    }
  } else if (size > 1 && fill == Fill::kWrap) {
    at += at < 0 ? n * (std::trunc(-at / last) + 1) : -n * std::trunc(at / last);
  } else if (size <= 1 && fill != Fill::kNearest) {
    at = 0;
  }
  return std::clamp(at, 0.0f, last);
}

// A number as an element of images: whole numbers end where their type does.
template <typename T, typename N>
T ElementOf(N v) {
  if constexpr (std::is_integral_v<T>) {
    if (v != v) return 0;
    if (v <= static_cast<N>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (v >= static_cast<N>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  }
  return static_cast<T>(v);
}

// The rows and columns of one image.
template <typename T>
struct Pixels {
  const T* data;
  int64_t height, width, depth;
  T fill;
  T At(float y, float x, int64_t c) const {
    const bool is_inside = y >= 0 && x >= 0 && y < static_cast<float>(height) && x < static_cast<float>(width);
    return is_inside ? data[(static_cast<int64_t>(y) * width + static_cast<int64_t>(x)) * depth + c] : fill;
  }
};

template <typename T, typename Wide = std::conditional_t<sizeof(T) == 8, double, float>>
void Take(const Pixels<T>& image, bool smooth, float y, float x, T* out) {
  if (!smooth) {
    const float row = std::round(y), column = std::round(x);
    for (int64_t c = 0; c < image.depth; ++c) out[c] = image.At(row, column, c);
    return;
  }
  const float top = std::floor(y), left = std::floor(x), bottom = top + 1, right = left + 1;
  const auto number = [&image](float row, float column, int64_t c) {
    return static_cast<Wide>(image.At(row, column, c));
  };
  for (int64_t c = 0; c < image.depth; ++c) {
    const Wide above = (right - x) * number(top, left, c) + (x - left) * number(top, right, c);
    const Wide below = (right - x) * number(bottom, left, c) + (x - left) * number(bottom, right, c);
    out[c] = ElementOf<T>((bottom - y) * above + (y - top) * below);
  }
}

class ProjectiveTransformKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(std::string interpolation, init.Attr<std::string>("interpolation"));
    std::string fill = "CONSTANT";
    if (init.HasAttr("fill_mode")) {
      MR_ASSIGN_OR_RETURN(fill, init.Attr<std::string>("fill_mode"));
    }
    absl::AsciiStrToUpper(&interpolation);
    absl::AsciiStrToUpper(&fill);
    smooth_ = interpolation == "BILINEAR";
    if (!smooth_ && interpolation != "NEAREST") {
      return InvalidArgument("Invalid interpolation ", interpolation, ". Supported types: NEAREST, BILINEAR");
    }
    if (fill == "CONSTANT") {
      fill_ = Fill::kConstant;
    } else if (fill == "REFLECT") {
      fill_ = Fill::kReflect;
    } else if (fill == "WRAP") {
      fill_ = Fill::kWrap;
    } else if (fill == "NEAREST") {
      fill_ = Fill::kNearest;
    } else {
      return InvalidArgument("Invalid mode ", fill, ". Supported types: CONSTANT, REFLECT, WRAP, NEAREST");
    }
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor &images = ctx.input(0), &transforms = ctx.input(1);
    if (images.rank() != 4) return InvalidArgument("images must have rank 4, got ", images.shape().ToString());
    if (transforms.rank() != 2 || transforms.dim(1) != 8 ||
        (transforms.dim(0) != 1 && transforms.dim(0) != images.dim(0))) {
      return InvalidArgument(
          "transforms must have shape [1,8] or [", images.dim(0), ",8], got ", transforms.shape().ToString());
    }
    int64_t height = images.dim(1), width = images.dim(2);
    if (ctx.num_inputs() > 2) {
      const Tensor& size = ctx.input(2);
      if (size.rank() != 1 || size.dim(0) != 2) {
        return InvalidArgument("output_shape must have two elements, got shape ", size.shape().ToString());
      }
      height = size.data<int32_t>()[0];
      width = size.data<int32_t>()[1];
      if (height <= 0 || width <= 0) {
        return InvalidArgument("output_shape must be positive, got [", height, ",", width, "]");
      }
    }
    float fill = 0;
    if (ctx.num_inputs() > 3) {
      if (ctx.input(3).rank() != 0) {
        return InvalidArgument("fill_value must be a scalar, got shape ", ctx.input(3).shape().ToString());
      }
      fill = *ctx.input(3).data<float>();
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({images.dim(0), height, width, images.dim(3)}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    VisitTypes<float, double, Half, BFloat16, uint8_t, int32_t, int64_t>(images.dtype(), [&]<typename T>() {
      const int64_t depth = images.dim(3), of_image = images.dim(1) * images.dim(2) * depth;
      const double cost = static_cast<double>(width) * (10 + (smooth_ ? 8.0 : 2.0) * static_cast<double>(depth));
      ctx.ParallelFor(images.dim(0) * height, cost, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const int64_t b = r / height;
          const Pixels<T> image{
              images.data<T>() + b * of_image, images.dim(1), images.dim(2), depth, ElementOf<T>(fill)};
          Row(image, transforms.data<float>() + (transforms.dim(0) == 1 ? 0 : 8 * b), static_cast<float>(r % height),
              width, out->mutable_data<T>() + r * width * depth);
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  void Row(const Pixels<T>& image, const float* t, float y, int64_t width, T* out) const {
    StopNowAndThen pause;
    for (int64_t i = 0; i < width; ++i, out += image.depth) {
      pause(1 + image.depth / 8);
      const auto x = static_cast<float>(i);
      const float k = t[6] * x + t[7] * y + 1.0f;
      const float from_x = (t[0] * x + t[1] * y + t[2]) / k, from_y = (t[3] * x + t[4] * y + t[5]) / k;
      const bool has_place = k != 0 && image.height > 0 && image.width > 0 && from_x == from_x && from_y == from_y;
      if (has_place) {
        Take(image, smooth_, Folded(from_y, image.height, fill_), Folded(from_x, image.width, fill_), out);
      } else {
        std::fill_n(out, image.depth, image.fill);
      }
    }
  }

  bool smooth_ = false;
  Fill fill_ = Fill::kConstant;
};

}  // namespace

void RegisterImageTransformKernels(KernelRegistry& r) {
  for (const char* version : {"", "V2", "V3"}) {
    r.Add<ProjectiveTransformKernel>({.op = absl::StrCat("ImageProjectiveTransform", version)});
  }
}

}  // namespace millrace
