// SPDX-License-Identifier: Apache-2.0
// CPU kernels: boxes in images.
#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/cpu/image/image.h"

namespace millrace {
namespace {

struct Box {
  float top, left, bottom, right;
  float area() const { return (bottom - top) * (right - left); }
};

float Read(const Tensor& t, int64_t i) {
  return t.dtype() == DType::kHalf ? static_cast<float>(t.data<Half>()[i]) : t.data<float>()[i];
}

Box BoxAt(const Tensor& t, int64_t i) {
  const float a = Read(t, 4 * i), b = Read(t, 4 * i + 1), c = Read(t, 4 * i + 2), d = Read(t, 4 * i + 3);
  return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
}

bool Overlap(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top),
              width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(a.area() > 0) || !(b.area() > 0)) return 0 > threshold;
  const float both = std::max(height, 0.0f) * std::max(width, 0.0f);
  return both / (a.area() + b.area() - both) > threshold;
}

StatusOr<float> Threshold(const KernelContext& ctx, int i, absl::string_view name) {
  if (ctx.input(i).rank() != 0)
    return InvalidArgument(name, " must be a scalar, got shape ", ctx.input(i).shape().ToString());
  return Read(ctx.input(i), 0);
}

class SuppressionKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    if (init.HasAttr("iou_threshold")) {
      MR_ASSIGN_OR_RETURN(iou_, init.Attr<float>("iou_threshold"));
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &boxes = ctx.input(0), &scores = ctx.input(1);
    if (boxes.rank() != 2 || boxes.dim(1) != 4 || scores.rank() != 1 || scores.dim(0) != boxes.dim(0)) {
      return InvalidArgument(
          "boxes must be [n, 4] and scores [n], got ", boxes.shape().ToString(), " and ", scores.shape().ToString());
    }
    if (ctx.input(2).rank() != 0)
      return InvalidArgument("max_output_size must be a scalar, got shape ", ctx.input(2).shape().ToString());
    const int64_t limit = std::max<int64_t>(0, *ctx.input(2).data<int32_t>());
    float iou = iou_, least = std::numeric_limits<float>::lowest();
    if (ctx.num_inputs() > 3) {
      MR_ASSIGN_OR_RETURN(iou, Threshold(ctx, 3, "iou_threshold"));
    }
    if (ctx.num_inputs() > 4) {
      MR_ASSIGN_OR_RETURN(least, Threshold(ctx, 4, "score_threshold"));
    }
    if (!(iou >= 0 && iou <= 1)) return InvalidArgument("iou_threshold is ", iou, ", want 0 to 1");
    if (boxes.dim(0) > std::numeric_limits<int32_t>::max()) return InvalidArgument("too many boxes: ", boxes.dim(0));
    const std::vector<int32_t> kept = Choose(boxes, scores, limit, iou, least);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(static_cast<int64_t>(kept.size()))));
    std::copy(kept.begin(), kept.end(), out->mutable_data<int32_t>());
    return absl::OkStatus();
  }

 private:
  static std::vector<int32_t> Choose(const Tensor& boxes, const Tensor& scores, int64_t limit, float iou, float least) {
    std::vector<int32_t> order;
    for (int64_t i = 0; i < boxes.dim(0); ++i) {
      if (Read(scores, i) > least) order.push_back(static_cast<int32_t>(i));
    }
    std::stable_sort(
        order.begin(), order.end(), [&](int32_t a, int32_t b) { return Read(scores, a) > Read(scores, b); });
    std::vector<int32_t> kept;
    std::vector<Box> places;
    for (const int32_t i : order) {
      if (static_cast<int64_t>(kept.size()) >= limit) break;
      const Box box = BoxAt(boxes, i);
      if (std::any_of(places.rbegin(), places.rend(), [&](const Box& b) { return Overlap(box, b, iou); })) continue;
      kept.push_back(i);
      places.push_back(box);
    }
    return kept;
  }
  float iou_ = 0.5f;
};

}  // namespace

void RegisterImageBoxKernels(KernelRegistry& registry) {
  for (const char* op : {"NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3"})
    registry.Add<SuppressionKernel>({.op = op});
}

void RegisterImageKernels(KernelRegistry& registry) {
  RegisterImageResizeKernels(registry);
  RegisterImageColourKernels(registry);
  RegisterImageBoxKernels(registry);
  RegisterImageCropKernels(registry);
  RegisterImageDrawKernels(registry);
  RegisterImageSampleKernels(registry);
  RegisterImageFileKernels(registry);
}

}  // namespace millrace
