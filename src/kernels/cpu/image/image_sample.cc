// SPDX-License-Identifier: Apache-2.0
// CPU kernels: random windows of images. The numbers are drawn in TensorFlow's order, so a graph with fixed seeds gives
// the same windows.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/image/image.h"
#include "kernels/cpu/random/random.h"

namespace millrace {
namespace {

// 0 to n - 1, each as likely: draws again what would favour small numbers.
uint32_t UniformBelow(uint32_t n, PhiloxWords& words) {
  if (n == 0) {
    words();
    return 0;
  }
  if ((n & (n - 1)) == 0) return words() & (n - 1);
  const uint32_t surplus = std::numeric_limits<uint32_t>::max() % n + 1;
  uint32_t x = words();
  while (x < surplus) x = words();
  return x % n;
}

struct Window {
  int32_t top = 0, left = 0, bottom = 0, right = 0;
  float area() const { return static_cast<float>(bottom - top) * static_cast<float>(right - left); }
};

float SharedArea(const Window& a, const Window& b) {
  const Window both{
      std::max(a.top, b.top), std::max(a.left, b.left), std::min(a.bottom, b.bottom), std::min(a.right, b.right)};
  return both.top < both.bottom && both.left < both.right ? both.area() : 0;
}

struct Range {
  float low = 0, high = 0;
};

int32_t Rounded(float v) { return SaturatingCast<int32_t>(std::nearbyint(v)); }

// A window of an aspect ratio (width by height) whose share of the image is in the range.
std::optional<Window> DrawWindow(int32_t height, int32_t width, const Range& share, float ratio, PhiloxWords& words) {
  if (share.high <= 0 || !(ratio > 0) || height <= 0 || width <= 0 || share.low > share.high) return std::nullopt;
  const float least = share.low * static_cast<float>(width) * static_cast<float>(height);
  const float most = share.high * static_cast<float>(width) * static_cast<float>(height);
  const auto width_of = [ratio](int64_t h) { return Rounded(static_cast<float>(h) * ratio); };
  int64_t tallest = Rounded(std::sqrt(most / ratio));
  if (width_of(tallest) > width) {
    tallest = SaturatingCast<int32_t>((static_cast<double>(width) + 0.5 - 1e-7) / static_cast<double>(ratio));
    if (width_of(tallest) > width) --tallest;
  }
  tallest = std::min<int64_t>(tallest, height);
  int64_t h = std::min<int64_t>(Rounded(std::sqrt(least / ratio)), tallest);
  if (h < tallest) h += UniformBelow(static_cast<uint32_t>(tallest - h + 1), words);
  // One row more or less may bring a rounded area into the range.
  const auto area = [&] { return static_cast<float>(width_of(h)) * static_cast<float>(h); };
  if (area() < least) ++h;
  if (area() > most) --h;
  const int32_t w = width_of(h);
  if (!(area() >= least && area() <= most) || w > width || h > height || w <= 0 || h <= 0) return std::nullopt;
  const auto rows = static_cast<int32_t>(h);
  Window out;
  if (rows < height) out.top = static_cast<int32_t>(UniformBelow(static_cast<uint32_t>(height - rows), words));
  if (w < width) out.left = static_cast<int32_t>(UniformBelow(static_cast<uint32_t>(width - w), words));
  out.bottom = out.top + rows;
  out.right = out.left + w;
  return out;
}

bool CoversOne(const Window& window, const std::vector<Window>& objects, float least) {
  if (window.area() < 1) return false;
  return std::any_of(objects.begin(), objects.end(), [&](const Window& object) {
    return object.area() >= 1 && SharedArea(object, window) / object.area() >= least;
  });
}

StatusOr<Range> RangeAttr(const KernelInit& init, absl::string_view name, float limit) {
  MR_ASSIGN_OR_RETURN(const std::vector<float> values, init.Attr<std::vector<float>>(name));
  if (values.size() != 2 || !(values[0] > 0) || !(values[1] > 0) || values[0] > limit || values[1] > limit) {
    return InvalidArgument(name, " must be two numbers in (0, ", limit, "]");
  }
  return Range{values[0], values[1]};
}

class SampleKernel final : public RandomKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(RandomKernel::Init(init));
    if (init.HasAttr("min_object_covered")) {
      MR_ASSIGN_OR_RETURN(covered_, init.Attr<float>("min_object_covered"));
      MR_RETURN_IF_ERROR(CheckCovered(covered_));
    }
    MR_ASSIGN_OR_RETURN(whole_if_none_, init.Attr<bool>("use_image_if_no_bounding_boxes"));
    MR_ASSIGN_OR_RETURN(ratio_, RangeAttr(init, "aspect_ratio_range", std::numeric_limits<float>::infinity()));
    MR_ASSIGN_OR_RETURN(share_, RangeAttr(init, "area_range", 1));
    MR_ASSIGN_OR_RETURN(attempts_, init.Attr<int64_t>("max_attempts"));
    if (attempts_ < 1 || attempts_ > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("max_attempts is ", attempts_, ", want at least 1");
    }
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Window image, Image(ctx.input(0)));
    float covered = covered_;
    if (ctx.num_inputs() > 2) {
      if (ctx.input(2).rank() != 0) {
        return InvalidArgument("min_object_covered must be a scalar, got shape ", ctx.input(2).shape().ToString());
      }
      covered = *ctx.input(2).data<float>();
      MR_RETURN_IF_ERROR(CheckCovered(covered));
    }
    MR_ASSIGN_OR_RETURN(const std::vector<Window> objects, Objects(ctx.input(1), image));
    MR_ASSIGN_OR_RETURN(const Window window, Sample(ctx, image, objects, covered));
    return SetOutputs(ctx, image, window);
  }

 private:
  static Status CheckCovered(float share) {
    return share >= 0 ? absl::OkStatus()
                      : InvalidArgument("min_object_covered is ", share, ", want a number that is not negative");
  }

  static StatusOr<Window> Image(const Tensor& size) {
    if (size.rank() != 1 || size.dim(0) != 3) {
      return InvalidArgument("image_size must be [height, width, channels], got shape ", size.shape().ToString());
    }
    int64_t sides[2] = {};
    VisitTypes<int8_t, int16_t, int32_t, int64_t, uint8_t>(size.dtype(), [&]<typename T>() {
      for (int i = 0; i < 2; ++i) sides[i] = static_cast<int64_t>(size.data<T>()[i]);
    });
    for (const int64_t side : sides) {
      if (side < 0 || side >= std::numeric_limits<int32_t>::max()) {
        return InvalidArgument("image_size [", sides[0], ", ", sides[1], ", ...]; sides must be in [0, 2^31 - 1)");
      }
    }
    return Window{0, 0, static_cast<int32_t>(sides[0]), static_cast<int32_t>(sides[1])};
  }

  StatusOr<std::vector<Window>> Objects(const Tensor& boxes, const Window& image) const {
    if (boxes.rank() != 3 || boxes.dim(2) != 4) {
      return InvalidArgument("bounding_boxes must be [batch, n, 4], got shape ", boxes.shape().ToString());
    }
    std::vector<Window> objects;
    const auto pixel = [](float at, int32_t size) { return SaturatingCast<int32_t>(at * static_cast<float>(size)); };
    for (int64_t i = 0; i < boxes.num_elements(); i += 4) {
      const float* b = boxes.data<float>() + i;
      if (!std::all_of(b, b + 4, [](float v) { return v >= 0 && v <= 1; })) {
        return InvalidArgument("bounding_boxes must be in [0, 1], got ", b[0], ", ", b[1], ", ", b[2], ", ", b[3]);
      }
      objects.push_back(
          {pixel(b[0], image.bottom), pixel(b[1], image.right), pixel(b[2], image.bottom), pixel(b[3], image.right)});
    }
    if (!objects.empty()) return objects;
    if (!whole_if_none_) {
      return InvalidArgument("there are no bounding_boxes; use_image_if_no_bounding_boxes takes the image instead");
    }
    return std::vector<Window>{image};
  }

  StatusOr<Window> Sample(const KernelContext& ctx, const Window& image, const std::vector<Window>& objects,
                          float covered) {
    PhiloxWords words(ReserveBlocks(static_cast<uint64_t>(attempts_)));
    const CancellationManager* cancellation = ctx.step().cancellation;
    for (int64_t i = 0; i < attempts_; ++i) {
      if (i % 1024 == 1023 && cancellation != nullptr) MR_RETURN_IF_ERROR(cancellation->reason());
      const float ratio = UnitFloat(words()) * (ratio_.high - ratio_.low) + ratio_.low;
      const std::optional<Window> window = DrawWindow(image.bottom, image.right, share_, ratio, words);
      if (window && CoversOne(*window, objects, covered)) return *window;
    }
    return image;
  }

  static Status SetOutputs(KernelContext& ctx, const Window& image, const Window& window) {
    MR_ASSIGN_OR_RETURN(Tensor * begin, ctx.AllocateOutput(0, Shape::Vector(3)));
    MR_ASSIGN_OR_RETURN(Tensor * size, ctx.AllocateOutput(1, Shape::Vector(3)));
    MR_ASSIGN_OR_RETURN(const Shape box, Shape::Make({1, 1, 4}));
    MR_ASSIGN_OR_RETURN(Tensor * boxes, ctx.AllocateOutput(2, box));
    VisitTypes<int8_t, int16_t, int32_t, int64_t, uint8_t>(begin->dtype(), [&]<typename T>() {
      const int32_t begins[] = {window.top, window.left, 0};
      const int32_t sizes[] = {window.bottom - window.top, window.right - window.left, -1};  // all channels
      for (int i = 0; i < 3; ++i) {
        begin->mutable_data<T>()[i] = static_cast<T>(begins[i]);
        size->mutable_data<T>()[i] = static_cast<T>(sizes[i]);
      }
    });
    float* b = boxes->mutable_data<float>();
    const auto height = static_cast<float>(image.bottom), width = static_cast<float>(image.right);
    b[0] = static_cast<float>(window.top) / height;
    b[1] = static_cast<float>(window.left) / width;
    b[2] = static_cast<float>(window.bottom) / height;
    b[3] = static_cast<float>(window.right) / width;
    return absl::OkStatus();
  }

  float covered_ = 0;
  bool whole_if_none_ = false;
  Range ratio_, share_;
  int64_t attempts_ = 1;
};

class RandomCropKernel final : public RandomKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &image = ctx.input(0), &size = ctx.input(1);
    if (image.rank() != 3 || size.rank() != 1 || size.dim(0) != 2) {
      return InvalidArgument("image must be [height, width, channels] and size [height, width], got shapes ",
                             image.shape().ToString(), " and ", size.shape().ToString());
    }
    const int64_t height = size.data<int64_t>()[0], width = size.data<int64_t>()[1];
    if (height < 0 || width < 0) return InvalidArgument("size is [", height, ", ", width, "]");
    if (height > image.dim(0) || width > image.dim(1)) {
      return FailedPrecondition("size [", height, ", ", width, "] of an image ", image.shape().ToString());
    }
    PhiloxWords words(ReserveBlocks(1));
    const int64_t top = Offset(image.dim(0) - height, words), left = Offset(image.dim(1) - width, words);
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({height, width, image.dim(2)}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const size_t pixel = static_cast<size_t>(image.dim(2)) * DTypeSize(image.dtype());
    const size_t row = static_cast<size_t>(width) * pixel, stride = static_cast<size_t>(image.dim(1)) * pixel;
    if (shape.num_elements() == 0) return absl::OkStatus();
    const char* from =
        static_cast<const char*>(image.raw()) + static_cast<size_t>(top) * stride + static_cast<size_t>(left) * pixel;
    auto* to = static_cast<char*>(out->mutable_raw());
    for (int64_t y = 0; y < height; ++y, from += stride, to += row) std::memcpy(to, from, row);
    return absl::OkStatus();
  }

 private:
  static int64_t Offset(int64_t room, PhiloxWords& words) {
    return room > 0 ? static_cast<int64_t>(words() % static_cast<uint64_t>(room)) : 0;
  }
};

}  // namespace

void RegisterImageSampleKernels(KernelRegistry& registry) {
  for (const char* op : {"SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2"}) {
    registry.Add<SampleKernel>({.op = op});
  }
  registry.Add<RandomCropKernel>({.op = "RandomCrop"});
}

}  // namespace millrace
