// SPDX-License-Identifier: Apache-2.0
// CPU kernel: SingleImageRandomDotStereograms, after Thimbleby, Inglis and Witten, "Displaying 3D images: algorithms
// for single-image random-dot stereograms" (IEEE Computer 27(10), 1994).
//
// The two eyes see a point of the scene at two pixels of a row, the nearer the point the closer together; these must
// have the same colour. Each pixel of a row leads to one right of it that must equal it, or to itself; those get
// colours by chance, from the right to the left.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/env.h"
#include "base/stop_scope.h"
#include "kernel/device_env.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/image/image.h"
#include "kernels/shared/philox.h"

namespace millrace {
namespace {

// What stands where in the image.
struct Layout {
  int64_t width = 0, height = 0, channels = 0;
  int64_t left = 0, top = 0, window_width = 0, window_height = 0;  // of the depths
  int64_t last_dot_row = 0;
};

// Depths from 0 (far) to 1 (near), by pixels of the image.
struct Scene {
  double Depth(int64_t x, int64_t y) const {
    const double column = static_cast<double>(columns * (x - layout.left)) / static_cast<double>(layout.window_width);
    const double row = static_cast<double>(rows * (y - layout.top)) / static_cast<double>(layout.window_height);
    const bool is_inside =
        column >= 0 && row >= 0 && column < static_cast<double>(columns) && row < static_cast<double>(rows);
    return is_inside ? depths[static_cast<size_t>(static_cast<int64_t>(row) * columns + static_cast<int64_t>(column))]
                     : border;
  }
  const Layout& layout;
  int64_t rows, columns;
  std::vector<double> depths;
  double border;
};

class StereogramKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(hides_, init.Attr<bool>("hidden_surface_removal"));
    MR_ASSIGN_OR_RETURN(dots_, init.Attr<int64_t>("convergence_dots_size"));
    MR_ASSIGN_OR_RETURN(const int64_t dots_per_inch, init.Attr<int64_t>("dots_per_inch"));
    MR_ASSIGN_OR_RETURN(const float eyes, init.Attr<float>("eye_separation"));
    MR_ASSIGN_OR_RETURN(mu_, init.Attr<float>("mu"));
    MR_ASSIGN_OR_RETURN(normalize_, init.Attr<bool>("normalize"));
    MR_ASSIGN_OR_RETURN(most_, init.Attr<float>("normalize_max"));
    MR_ASSIGN_OR_RETURN(least_, init.Attr<float>("normalize_min"));
    MR_ASSIGN_OR_RETURN(border_, init.Attr<float>("border_level"));
    MR_ASSIGN_OR_RETURN(const int64_t colours, init.Attr<int64_t>("number_colors"));
    MR_ASSIGN_OR_RETURN(const PartialShape image, init.Attr<PartialShape>("output_image_shape"));
    MR_ASSIGN_OR_RETURN(const PartialShape window, init.Attr<PartialShape>("output_data_window"));
    if (!(mu_ > 0 && mu_ <= 1)) return InvalidArgument("mu must be in (0, 1], got ", mu_);
    if (!(border_ >= 0 && border_ <= 1)) return InvalidArgument("border_level must be in [0, 1], got ", border_);
    const double pixels = static_cast<double>(eyes) * static_cast<double>(dots_per_inch);
    if (!(pixels >= 1 && pixels <= 1e6)) {
      return InvalidArgument("between the eyes must be 1 to 1000000 dots, not ", eyes, " * ", dots_per_inch);
    }
    eyes_ = std::floor(pixels);
    is_two_coloured_ = colours == 2;
    if (image.rank() != 3 || window.rank() != 2 || !image.IsFullyDefined() || !window.IsFullyDefined() ||
        image.num_elements() <= 0 || window.num_elements() <= 0 || window.dim(0) > image.dim(0) ||
        window.dim(1) > image.dim(1)) {
      return InvalidArgument(
          "output_image_shape must be [width, height, channels] and output_data_window no larger, got ",
          image.ToString(), " and ", window.ToString());
    }
    if (dots_ < 0 || dots_ > image.dim(1)) {
      return InvalidArgument("convergence_dots_size must be in [0, ", image.dim(1), "], got ", dots_);
    }
    layout_.width = image.dim(0);
    layout_.height = image.dim(1);
    layout_.channels = colours > 256 ? 3 : image.dim(2);
    layout_.window_width = window.dim(0);
    layout_.window_height = window.dim(1);
    layout_.left = (image.dim(0) - window.dim(0)) / 2;
    const int64_t spare = image.dim(1) - window.dim(1);
    layout_.top = dots_ > 0 ? std::max<int64_t>(spare - dots_, 0) / 3 : spare / 2;
    layout_.last_dot_row = image.dim(1) - 1 - (dots_ > 0 ? layout_.top : 0);
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& depths = ctx.input(0);
    if (depths.rank() != 2 || depths.num_elements() == 0) {
      return InvalidArgument("depth_values must be a matrix with elements, got shape ", depths.shape().ToString());
    }
    Scene scene{layout_, depths.dim(0), depths.dim(1), {}, border_};
    VisitTypes<float, double, int32_t, int64_t>(depths.dtype(), [&]<typename T>() {
      const absl::Span<const T> given = depths.flat<T>();
      scene.depths.assign(given.begin(), given.end());
    });
    Normalize(scene.depths);
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({layout_.height, layout_.width, layout_.channels}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    uint8_t* const pixels = out->mutable_data<uint8_t>();
    Env& env = EnvOf(ctx.device());
    PhiloxWords words(Philox(env.Random64(), env.Random64()));
    StopNowAndThen pause;
    std::vector<int64_t> equal(static_cast<size_t>(layout_.width));
    for (int64_t y = 0; y < layout_.height; ++y) {
      Link(scene, y, pause, equal);
      uint8_t* const row = pixels + y * layout_.width * layout_.channels;
      for (int64_t x = layout_.width - 1; x >= 0; --x) {
        const int64_t same = equal[static_cast<size_t>(x)];
        for (int64_t c = 0; c < layout_.channels; ++c) {
          const uint32_t drawn = same == x ? words() : 0;
          row[x * layout_.channels + c] =
              same != x          ? row[same * layout_.channels + c]
              : is_two_coloured_ ? static_cast<uint8_t>(drawn % 2 * 255)
                                 : static_cast<uint8_t>(drawn % 256);
        }
      }
    }
    DrawDots(pixels);
    return absl::OkStatus();
  }

 private:
  // How far apart two eyes see a point of this depth.
  int64_t Separation(double depth) const {
    return static_cast<int64_t>(std::round((1 - mu_ * depth) * eyes_ / (2 - mu_ * depth)));
  }

  void Normalize(std::vector<double>& depths) const {
    double least = 0, most = 1;
    if (normalize_ && most_ < least_) {
      least = *std::min_element(depths.begin(), depths.end());
      most = *std::max_element(depths.begin(), depths.end());
    } else if (normalize_) {
      least = least_;
      most = most_;
    }
    for (double& depth : depths) {
      depth = (depth - least) / (most - least);
      depth = depth > 0 ? std::min(depth, 1.0) : 0;  // what is no number is far
    }
  }

  // Whether nothing nearer hides the point at x from one of the eyes.
  bool IsVisible(const Scene& scene, int64_t x, int64_t y, double depth, StopNowAndThen& pause) const {
    double ray = 0;
    for (int64_t t = 1; ray < 1; ++t) {
      pause();
      ray = depth + 2 * (2 - mu_ * depth) * static_cast<double>(t) / (mu_ * eyes_);
      if (scene.Depth(x - t, y) >= ray || scene.Depth(x + t, y) >= ray) return false;
    }
    return true;
  }

  // equal[x]: the pixel of this row that x must equal, x itself or one right of it.
  void Link(const Scene& scene, int64_t y, StopNowAndThen& pause, std::vector<int64_t>& equal) const {
    std::iota(equal.begin(), equal.end(), int64_t{0});
    for (int64_t x = 0; x < layout_.width; ++x) {
      const double depth = scene.Depth(x, y);
      const int64_t apart = Separation(depth);
      int64_t left = x - apart / 2, right = left + apart;
      if (left < 0 || right >= layout_.width || (hides_ && !IsVisible(scene, x, y, depth, pause))) continue;
      // What left must equal already must now equal right, too, or the other way around.
      for (int64_t next = equal[static_cast<size_t>(left)]; next != left && next != right;
           next = equal[static_cast<size_t>(left)]) {
        pause();
        if (next < right) {
          left = next;
        } else {
          equal[static_cast<size_t>(left)] = right;
          left = right;
          right = next;
        }
      }
      equal[static_cast<size_t>(left)] = right;
    }
  }

  // Two black squares as far apart as the far plane's points.
  void DrawDots(uint8_t* pixels) const {
    const int64_t half = Separation(0) / 2;
    for (const int64_t centre : {layout_.width / 2 - half, layout_.width / 2 + half}) {
      const int64_t begin = std::max<int64_t>(centre - dots_ / 2, 0);
      const int64_t end = std::min(centre - dots_ / 2 + dots_, layout_.width);
      for (int64_t i = 0; i < dots_ && begin < end && i <= layout_.last_dot_row; ++i) {
        uint8_t* const row = pixels + (layout_.last_dot_row - i) * layout_.width * layout_.channels;
        std::fill(row + begin * layout_.channels, row + end * layout_.channels, uint8_t{0});
      }
    }
  }

  bool hides_ = true, normalize_ = true, is_two_coloured_ = false;
  int64_t dots_ = 0;
  float mu_ = 0, most_ = 0, least_ = 0, border_ = 0;
  double eyes_ = 0;  // pixels between them
  Layout layout_;
};

}  // namespace

void RegisterImageStereogramKernels(KernelRegistry& r) {
  r.Add<StereogramKernel>({.op = "SingleImageRandomDotStereograms"});
}

}  // namespace millrace
