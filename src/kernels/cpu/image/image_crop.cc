// SPDX-License-Identifier: Apache-2.0
// CPU kernels: crops of images, resized, and their derivatives.
//
// Pixel y of a crop lies at row y1 (h - 1) + y (y2 - y1) (h - 1) / (crop_h - 1) of the image; a crop of one pixel lies
// in the middle of its box. What lies outside the image has the extrapolation value, and no derivative.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/image/image.h"
#include "kernels/cpu/image/image_simd.h"

namespace millrace {
namespace {

// One axis of a box, over an image and a crop of these sizes.
struct Axis {
  float begin, end;
  int64_t image, crop;

  float last() const { return static_cast<float>(image - 1); }
  float Ratio() const { return crop > 1 ? last() / static_cast<float>(crop - 1) : 0; }
  Place At(int64_t i) const {
    const float scale = (end - begin) * last() / static_cast<float>(crop - 1);
    const float at = crop > 1 ? begin * last() + static_cast<float>(i) * scale : 0.5f * (begin + end) * last();
    Place p;
    p.inside = at >= 0 && at <= last();
    if (!p.inside) return p;
    p.below = static_cast<int64_t>(std::floor(at));
    p.above = std::min(static_cast<int64_t>(std::ceil(at)), image - 1);
    p.nearest = std::min(static_cast<int64_t>(std::round(at)), image - 1);
    p.part = at - static_cast<float>(p.below);
    return p;
  }
};

struct Sizes {
  int64_t batch, height, width, depth;  // of the images
  int64_t boxes, crop_height, crop_width;

  int64_t image_row() const { return width * depth; }
  int64_t image() const { return height * image_row(); }
  int64_t crop_row() const { return crop_width * depth; }
  int64_t crop() const { return crop_height * crop_row(); }
};

Axis Rows(const Sizes& s, const float* box) { return {box[0], box[2], s.height, s.crop_height}; }
Axis Columns(const Sizes& s, const float* box) { return {box[1], box[3], s.width, s.crop_width}; }

std::vector<Place> PlacesOf(const Axis& axis) {
  std::vector<Place> places(static_cast<size_t>(axis.crop));
  for (int64_t i = 0; i < axis.crop; ++i) places[static_cast<size_t>(i)] = axis.At(i);
  return places;
}

// The four pixels around a place, and what is between them, in each channel.
template <typename T>
struct Corners {
  const T *top_left, *top_right, *bottom_left, *bottom_right;

  Corners(const T* image, const Sizes& s, const Place& y, const Place& x)
      : top_left(image + y.below * s.image_row() + x.below * s.depth),
        top_right(image + y.below * s.image_row() + x.above * s.depth),
        bottom_left(image + y.above * s.image_row() + x.below * s.depth),
        bottom_right(image + y.above * s.image_row() + x.above * s.depth) {}

  void Blend(float y, float x, int64_t depth, float* out) const {
    for (int64_t d = 0; d < depth; ++d) {
      const auto tl = static_cast<float>(top_left[d]), tr = static_cast<float>(top_right[d]);
      const auto bl = static_cast<float>(bottom_left[d]), br = static_cast<float>(bottom_right[d]);
      const float top = tl + (tr - tl) * x, bottom = bl + (br - bl) * x;
      out[d] = top + (bottom - top) * y;
    }
  }
  // The derivatives of the blend by y and x, times the gradient, summed over the channels.
  void Slopes(float y, float x, int64_t depth, const float* grad, double* by_y, double* by_x) const {
    for (int64_t d = 0; d < depth; ++d) {
      const auto tl = static_cast<float>(top_left[d]), tr = static_cast<float>(top_right[d]);
      const auto bl = static_cast<float>(bottom_left[d]), br = static_cast<float>(bottom_right[d]);
      *by_y += double{((1 - x) * (bl - tl) + x * (br - tr)) * grad[d]};
      *by_x += double{((1 - y) * (tr - tl) + y * (br - bl)) * grad[d]};
    }
  }
};

// Rows [begin, end) of a crop.
template <typename T>
void CropRows(const T* image, const Sizes& s, const float* box, bool bilinear, float outside, int64_t begin,
              int64_t end, float* crop) {
  const std::vector<Place> columns = PlacesOf(Columns(s, box));
  const Axis rows = Rows(s, box);
  for (int64_t i = begin; i < end; ++i) {
    const Place y = rows.At(i);
    float* out = crop + i * s.crop_row();
    if (!y.inside) {
      std::fill_n(out, s.crop_row(), outside);
      continue;
    }
    if constexpr (std::is_same_v<T, float>) {
      if (bilinear) {
        BlendPixels(image + y.below * s.image_row(), image + y.above * s.image_row(), y.part, columns.data(),
                    columns.size(), static_cast<size_t>(s.depth), outside, out);
        continue;
      }
    }
    for (const Place& x : columns) {
      if (!x.inside) {
        std::fill_n(out, s.depth, outside);
      } else if (bilinear) {
        Corners<T>(image, s, y, x).Blend(y.part, x.part, s.depth, out);
      } else {
        const T* pixel = image + y.nearest * s.image_row() + x.nearest * s.depth;
        for (int64_t d = 0; d < s.depth; ++d) out[d] = static_cast<float>(pixel[d]);
      }
      out += s.depth;
    }
  }
}

template <typename T>
void BoxGradient(const T* image, const Sizes& s, const float* box, const float* grad, float* out) {
  const Axis rows = Rows(s, box), columns = Columns(s, box);
  const std::vector<Place> across = PlacesOf(columns);
  double sums[4] = {};
  // How a place moves with the begin and the end of the box.
  const auto add = [](const Axis& a, int64_t i, double slope, double* begin, double* end) {
    const float by_end = a.crop > 1 ? static_cast<float>(i) * a.Ratio() : 0.5f * a.last();
    *begin += slope * double{a.last() - by_end};
    *end += slope * double{by_end};
  };
  for (int64_t i = 0; i < s.crop_height; ++i) {
    const Place y = rows.At(i);
    if (!y.inside) continue;
    for (int64_t j = 0; j < s.crop_width; ++j) {
      const Place& x = across[static_cast<size_t>(j)];
      if (!x.inside) continue;
      double by_y = 0, by_x = 0;
      Corners<T>(image, s, y, x).Slopes(y.part, x.part, s.depth, grad + i * s.crop_row() + j * s.depth, &by_y, &by_x);
      add(rows, i, by_y, &sums[0], &sums[2]);
      add(columns, j, by_x, &sums[1], &sums[3]);
    }
  }
  for (int k = 0; k < 4; ++k) out[k] = static_cast<float>(sums[k]);
}

// What the pixels of a crop's row give to one row of the image.
template <typename T>
void SpreadRow(const float* from, float weight, const std::vector<Place>& columns, int64_t depth, bool bilinear,
               T* row) {
  if constexpr (std::is_same_v<T, float>) {
    SpreadPixels(from, weight, columns.data(), columns.size(), static_cast<size_t>(depth), bilinear, row);
  } else {
    const auto add = [&](int64_t column, float w) {
      for (int64_t d = 0; d < depth; ++d) row[column * depth + d] += static_cast<T>(w * from[d]);
    };
    for (const Place& x : columns) {
      if (x.inside && bilinear) {
        add(x.below, weight * (1 - x.part));
        add(x.above, weight * x.part);
      } else if (x.inside) {
        add(x.nearest, weight);
      }
      from += depth;
    }
  }
}

// What a crop gives to rows [begin, end) of its image, which stand at `to`.
template <typename T>
void ImageGradient(const Sizes& s, const float* box, bool bilinear, const float* grad, int64_t begin, int64_t end,
                   T* to) {
  const std::vector<Place> columns = PlacesOf(Columns(s, box));
  const Axis rows = Rows(s, box);
  for (int64_t i = 0; i < s.crop_height; ++i, grad += s.crop_row()) {
    const Place y = rows.At(i);
    if (!y.inside) continue;
    const auto give = [&](int64_t row, float weight) {
      if (row < begin || row >= end) return;
      SpreadRow(grad, weight, columns, s.depth, bilinear, to + (row - begin) * s.image_row());
    };
    if (bilinear) {
      give(y.below, 1 - y.part);
      give(y.above, y.part);
    } else {
      give(y.nearest, 1);
    }
  }
}

// [n, 4] and [n]; nothing at all is as good as no box. Images that boxes name must be there.
StatusOr<int64_t> CheckBoxes(const Tensor& boxes, const Tensor& numbers, int64_t batch) {
  if (boxes.num_elements() == 0 && numbers.num_elements() == 0) return 0;
  if (boxes.rank() != 2 || boxes.dim(1) != 4 || numbers.rank() != 1 || numbers.dim(0) != boxes.dim(0)) {
    return InvalidArgument(
        "boxes must be [n, 4] and box_ind [n], got ", boxes.shape().ToString(), " and ", numbers.shape().ToString());
  }
  for (const int32_t i : numbers.flat<int32_t>()) {
    if (!InRange(i, batch)) return OutOfRange("box_ind has ", i, ", the batch has ", batch, " images");
  }
  const auto coordinates = boxes.flat<float>();
  if (!std::all_of(coordinates.begin(), coordinates.end(), [](float v) { return std::isfinite(v); })) {
    return InvalidArgument("boxes must be finite numbers");
  }
  return boxes.dim(0);
}

Status CheckPositive(const Sizes& s) {
  if (s.height < 1 || s.width < 1) {
    return InvalidArgument("images of ", s.height, " x ", s.width, " pixels, want at least one");
  }
  if (s.crop_height < 1 || s.crop_width < 1) {
    return InvalidArgument("crops of ", s.crop_height, " x ", s.crop_width, " pixels, want at least one");
  }
  return absl::OkStatus();
}

Status WantRank4(const Tensor& t, absl::string_view name) {
  return t.rank() == 4
             ? absl::OkStatus()
             : InvalidArgument(name, " must be [n, height, width, channels], got shape ", t.shape().ToString());
}

StatusOr<bool> IsBilinear(const KernelInit& init) {
  MR_ASSIGN_OR_RETURN(const std::string method, init.Attr<std::string>("method"));
  if (method != "bilinear" && method != "nearest")
    return InvalidArgument("method is ", method, ", want bilinear or nearest");
  return method == "bilinear";
}

template <typename F>
void VisitImageTypes(DType dtype, F&& f) {
  VisitTypes<float, double, Half, int32_t, int64_t, int8_t, int16_t, uint8_t, uint16_t>(dtype, f);
}

constexpr double kPixelCost = 10;
constexpr double kValueCost = 0.5;  // of a crop

class CropAndResizeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(bilinear_, IsBilinear(init));
    MR_ASSIGN_OR_RETURN(outside_, init.Attr<float>("extrapolation_value"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &images = ctx.input(0), &boxes = ctx.input(1), &numbers = ctx.input(2), &size = ctx.input(3);
    MR_RETURN_IF_ERROR(WantRank4(images, "image"));
    if (size.rank() != 1 || size.dim(0) != 2) {
      return InvalidArgument("crop_size must be [height, width], got shape ", size.shape().ToString());
    }
    Sizes s{images.dim(0),           images.dim(1),          images.dim(2), images.dim(3), 0,
            size.data<int32_t>()[0], size.data<int32_t>()[1]};
    MR_RETURN_IF_ERROR(CheckPositive(s));
    MR_ASSIGN_OR_RETURN(s.boxes, CheckBoxes(boxes, numbers, s.batch));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({s.boxes, s.crop_height, s.crop_width, s.depth}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    VisitImageTypes(images.dtype(), [&]<typename T>() {
      const int64_t rows = s.crop_height;
      ctx.ParallelFor(s.boxes * rows, kValueCost * static_cast<double>(s.crop_row()), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin / rows; b * rows < end; ++b) {
          CropRows(images.data<T>() + numbers.data<int32_t>()[b] * s.image(), s, boxes.data<float>() + 4 * b, bilinear_,
                   outside_, std::max(begin - b * rows, int64_t{0}), std::min(end - b * rows, rows),
                   out->mutable_data<float>() + b * s.crop());
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  bool bilinear_ = true;
  float outside_ = 0;
};

class BoxGradientKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &grads = ctx.input(0), &images = ctx.input(1), &boxes = ctx.input(2), &numbers = ctx.input(3);
    MR_RETURN_IF_ERROR(WantRank4(grads, "grads"));
    MR_RETURN_IF_ERROR(WantRank4(images, "image"));
    Sizes s{images.dim(0), images.dim(1), images.dim(2), images.dim(3), 0, grads.dim(1), grads.dim(2)};
    MR_RETURN_IF_ERROR(CheckPositive(s));
    if (grads.dim(3) != s.depth) {
      return InvalidArgument("grads have ", grads.dim(3), " channels, the images ", s.depth);
    }
    MR_ASSIGN_OR_RETURN(s.boxes, CheckBoxes(boxes, numbers, s.batch));
    if (grads.dim(0) != s.boxes) return InvalidArgument("grads are for ", grads.dim(0), " boxes, there are ", s.boxes);
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({s.boxes, 4}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    VisitImageTypes(images.dtype(), [&]<typename T>() {
      ctx.ParallelFor(s.boxes, kPixelCost * static_cast<double>(s.crop()), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          BoxGradient(images.data<T>() + numbers.data<int32_t>()[b] * s.image(), s, boxes.data<float>() + 4 * b,
                      grads.data<float>() + b * s.crop(), out->mutable_data<float>() + 4 * b);
        }
      });
    });
    return absl::OkStatus();
  }
};

class ImageGradientKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(bilinear_, IsBilinear(init));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &grads = ctx.input(0), &boxes = ctx.input(1), &numbers = ctx.input(2), &size = ctx.input(3);
    MR_RETURN_IF_ERROR(WantRank4(grads, "grads"));
    if (size.rank() != 1 || size.dim(0) != 4) {
      return InvalidArgument("image_size must have shape [4], got ", size.shape().ToString());
    }
    const int32_t* n = size.data<int32_t>();
    Sizes s{n[0], n[1], n[2], n[3], 0, grads.dim(1), grads.dim(2)};
    MR_RETURN_IF_ERROR(CheckPositive(s));
    if (s.depth != grads.dim(3))
      return InvalidArgument("image_size says ", s.depth, " channels, grads have ", grads.dim(3));
    MR_ASSIGN_OR_RETURN(s.boxes, CheckBoxes(boxes, numbers, s.batch));
    if (grads.dim(0) != s.boxes) return InvalidArgument("grads are for ", grads.dim(0), " boxes, there are ", s.boxes);
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({s.batch, s.height, s.width, s.depth}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    VisitTypes<float, double, Half>(out->dtype(), [&]<typename T>() {
      // A task looks at the boxes of its image and adds what they give to its own rows.
      const int64_t bands = std::min<int64_t>(s.height, 8), band = (s.height + bands - 1) / bands;
      const double cost = 0.2 * static_cast<double>(s.image()) +
                          static_cast<double>(s.boxes * s.crop()) / static_cast<double>(std::max<int64_t>(s.batch, 1));
      ctx.ParallelFor(s.batch * bands, cost / static_cast<double>(bands), [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end; ++u) {
          const int64_t b = u / bands, first = std::min(u % bands * band, s.height);
          Fill(s, b, boxes.data<float>(), numbers.data<int32_t>(), grads.data<float>(), first,
               std::min(first + band, s.height), out->mutable_data<T>() + b * s.image());
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  // Rows [begin, end) of image b, boxes in order. Halves are summed as floats.
  template <typename T>
  void Fill(const Sizes& s, int64_t b, const float* boxes, const int32_t* numbers, const float* grads, int64_t begin,
            int64_t end, T* image) const {
    using Sum = Accumulator<T>;
    T* const own = image + begin * s.image_row();
    const int64_t count = (end - begin) * s.image_row();
    std::vector<Sum> wide(kIsHalf<T> ? static_cast<size_t>(count) : 0);
    Sum* sum = nullptr;
    if constexpr (kIsHalf<T>) {
      sum = wide.data();
    } else {
      sum = own;
      std::fill_n(own, count, T{});
    }
    for (int64_t k = 0; k < s.boxes; ++k) {
      if (numbers[k] == b) ImageGradient(s, boxes + 4 * k, bilinear_, grads + k * s.crop(), begin, end, sum);
    }
    if constexpr (kIsHalf<T>) std::transform(wide.begin(), wide.end(), own, [](float v) { return T(v); });
  }
  bool bilinear_ = true;
};

}  // namespace

void RegisterImageCropKernels(KernelRegistry& registry) {
  registry.Add<CropAndResizeKernel>({.op = "CropAndResize"});
  registry.Add<BoxGradientKernel>({.op = "CropAndResizeGradBoxes"});
  registry.Add<ImageGradientKernel>({.op = "CropAndResizeGradImage"});
}

}  // namespace millrace
