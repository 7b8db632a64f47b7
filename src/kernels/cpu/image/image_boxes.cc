// SPDX-License-Identifier: Apache-2.0
// CPU kernels: the choice of boxes in images.
#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/image/image.h"
#include "kernels/cpu/image/image_suppression.h"

namespace millrace {
namespace {

float Read(const Tensor& t, int64_t i) {
  return t.dtype() == DType::kHalf ? static_cast<float>(t.data<Half>()[i]) : t.data<float>()[i];
}

// A tensor of `dtype` (float or half) from floats.
void Write(Tensor& t, int64_t i, float v) {
  if (t.dtype() == DType::kHalf) {
    t.mutable_data<Half>()[i] = Half(v);
  } else {
    t.mutable_data<float>()[i] = v;
  }
}

StatusOr<float> Threshold(const KernelContext& ctx, int i, absl::string_view name) {
  MR_RETURN_IF_ERROR(RequireScalar(name, ctx.input(i)));
  return Read(ctx.input(i), 0);
}

StatusOr<int64_t> Limit(const KernelContext& ctx, int i, absl::string_view name, int32_t least) {
  MR_RETURN_IF_ERROR(RequireScalar(name, ctx.input(i)));
  const int32_t limit = *ctx.input(i).data<int32_t>();
  if (limit < least) return InvalidArgument(name, " is ", limit, ", want ", least, " or more");
  return limit;
}

Status RequireFraction(float iou) {
  return iou >= 0 && iou <= 1 ? absl::OkStatus() : InvalidArgument("iou_threshold is ", iou, ", want 0 to 1");
}

std::vector<float> Floats(const Tensor& t) {
  std::vector<float> floats(static_cast<size_t>(t.num_elements()));
  for (size_t i = 0; i < floats.size(); ++i) floats[i] = Read(t, static_cast<int64_t>(i));
  return floats;
}

// NonMaxSuppression, V2 to V5, and ...WithOverlaps.
class SuppressionKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    by_overlaps_ = init.op.name == "NonMaxSuppressionWithOverlaps";
    if (init.HasAttr("iou_threshold")) {
      MR_ASSIGN_OR_RETURN(iou_, init.Attr<float>("iou_threshold"));
    }
    if (init.HasAttr("pad_to_max_output_size")) {
      MR_ASSIGN_OR_RETURN(padded_, init.Attr<bool>("pad_to_max_output_size"));
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &boxes = ctx.input(0), &scores = ctx.input(1);
    if (boxes.rank() != 2 || scores.rank() != 1 || scores.dim(0) != boxes.dim(0) ||
        boxes.dim(1) != (by_overlaps_ ? boxes.dim(0) : 4)) {
      return InvalidArgument(by_overlaps_ ? "overlaps must be [n, n]" : "boxes must be [n, 4]", " and scores [n], got ",
                             boxes.shape().ToString(), " and ", scores.shape().ToString());
    }
    if (boxes.dim(0) > std::numeric_limits<int32_t>::max()) return InvalidArgument("too many boxes: ", boxes.dim(0));
    SuppressionRule rule{
        .similar = iou_,
        .least = std::numeric_limits<float>::lowest(),
        .round_to_half = scores.dtype() == DType::kHalf};
    MR_ASSIGN_OR_RETURN(rule.most, Limit(ctx, 2, "max_output_size", 0));
    if (ctx.num_inputs() > 3) {
      MR_ASSIGN_OR_RETURN(rule.similar, Threshold(ctx, 3, by_overlaps_ ? "overlap_threshold" : "iou_threshold"));
    }
    if (ctx.num_inputs() > 4) {
      MR_ASSIGN_OR_RETURN(rule.least, Threshold(ctx, 4, "score_threshold"));
    }
    if (ctx.num_inputs() > 5) {
      MR_ASSIGN_OR_RETURN(rule.sigma, Threshold(ctx, 5, "soft_nms_sigma"));
      if (!(rule.sigma >= 0)) return InvalidArgument("soft_nms_sigma is ", rule.sigma, ", want 0 or more");
    }
    if (!by_overlaps_) MR_RETURN_IF_ERROR(RequireFraction(rule.similar));
    return WriteChoice(ctx, Choose(boxes, scores, rule), rule.most);
  }

 private:
  std::vector<Kept> Choose(const Tensor& boxes, const Tensor& scores, const SuppressionRule& rule) const {
    if (by_overlaps_) {
      const int64_t n = boxes.dim(0);
      const float* overlaps = boxes.data<float>();
      return Suppress(Floats(scores), rule, [&](int32_t i, int32_t j) { return overlaps[i * n + j]; });
    }
    std::vector<Box> places;
    for (int64_t i = 0; i < boxes.dim(0); ++i) {
      places.push_back(
          BoxOf(Read(boxes, 4 * i), Read(boxes, 4 * i + 1), Read(boxes, 4 * i + 2), Read(boxes, 4 * i + 3)));
    }
    return Suppress(Floats(scores), rule, [&](int32_t i, int32_t j) {
      return Similarity(places[static_cast<size_t>(i)], places[static_cast<size_t>(j)]);
    });
  }

  Status WriteChoice(KernelContext& ctx, const std::vector<Kept>& kept, int64_t most) const {
    const auto count = static_cast<int64_t>(kept.size());
    const Shape shape = Shape::Vector(padded_ ? most : count);
    MR_ASSIGN_OR_RETURN(Tensor * numbers, ctx.AllocateOutput(0, shape));
    ZeroElements(DType::kInt32, numbers->mutable_raw(), count, shape.dim(0) - count);
    for (int64_t i = 0; i < count; ++i) numbers->mutable_data<int32_t>()[i] = kept[static_cast<size_t>(i)].number;
    const int outputs = static_cast<int>(ctx.node().signature.output_types.size());
    if (outputs == 3) {
      MR_ASSIGN_OR_RETURN(Tensor * scores, ctx.AllocateOutput(1, shape));
      ZeroElements(scores->dtype(), scores->mutable_raw(), count, shape.dim(0) - count);
      for (int64_t i = 0; i < count; ++i) Write(*scores, i, kept[static_cast<size_t>(i)].score);
    }
    if (outputs > 1) {
      MR_ASSIGN_OR_RETURN(Tensor * valid, ctx.AllocateOutput(outputs - 1, Shape()));
      *valid->mutable_data<int32_t>() = static_cast<int32_t>(count);
    }
    return absl::OkStatus();
  }

  bool by_overlaps_ = false, padded_ = false;
  float iou_ = 0.5f;
};

// A choice for every class of every image; of all classes the best are kept.
class CombinedSuppressionKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(padded_per_class_, init.Attr<bool>("pad_per_class"));
    MR_ASSIGN_OR_RETURN(clipped_, init.Attr<bool>("clip_boxes"));
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor &boxes = ctx.input(0), &scores = ctx.input(1);
    if (boxes.rank() != 4 || scores.rank() != 3 || boxes.dim(0) != scores.dim(0) || boxes.dim(1) != scores.dim(1) ||
        boxes.dim(3) != 4 || (boxes.dim(2) != 1 && boxes.dim(2) != scores.dim(2))) {
      return InvalidArgument("boxes must be [batch, n, 1 or classes, 4] and scores [batch, n, classes], got ",
                             boxes.shape().ToString(), " and ", scores.shape().ToString());
    }
    if (boxes.dim(1) > std::numeric_limits<int32_t>::max()) return InvalidArgument("too many boxes: ", boxes.dim(1));
    SuppressionRule rule;
    MR_ASSIGN_OR_RETURN(rule.most, Limit(ctx, 2, "max_output_size_per_class", 1));
    MR_ASSIGN_OR_RETURN(int64_t size, Limit(ctx, 3, "max_total_size", 1));
    MR_ASSIGN_OR_RETURN(rule.similar, Threshold(ctx, 4, "iou_threshold"));
    MR_ASSIGN_OR_RETURN(rule.least, Threshold(ctx, 5, "score_threshold"));
    MR_RETURN_IF_ERROR(RequireFraction(rule.similar));
    const int64_t batch = boxes.dim(0), classes = scores.dim(2);
    if (padded_per_class_ && (classes == 0 || rule.most <= size / classes)) size = std::min(size, rule.most * classes);

    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({batch, size}));
    MR_ASSIGN_OR_RETURN(const Shape boxes_shape, Shape::Make({batch, size, 4}));
    Tensor* out[3];
    for (int i = 0; i < 3; ++i) {
      MR_ASSIGN_OR_RETURN(out[i], ctx.AllocateOutput(i, i == 0 ? boxes_shape : shape));
      ZeroElements(DType::kFloat, out[i]->mutable_raw(), 0, out[i]->num_elements());
    }
    MR_ASSIGN_OR_RETURN(Tensor * valid, ctx.AllocateOutput(3, Shape::Vector(batch)));
    std::vector<std::vector<Kept>> chosen(static_cast<size_t>(batch * classes));
    const double cost = 50 * static_cast<double>(boxes.dim(1));
    ctx.ParallelFor(batch * classes, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        chosen[static_cast<size_t>(i)] = ChooseClass(boxes, scores, i / classes, i % classes, rule);
      }
    });
    for (int64_t b = 0; b < batch; ++b) {
      valid->mutable_data<int32_t>()[b] =
          static_cast<int32_t>(WriteBest(boxes, b, classes, size, chosen.data() + b * classes, out));
    }
    return absl::OkStatus();
  }

 private:
  static const float* PlaceOf(const Tensor& boxes, int64_t image, int64_t number, int64_t of_class) {
    const int64_t per_box = boxes.dim(2);
    return boxes.data<float>() + 4 * ((image * boxes.dim(1) + number) * per_box + (per_box == 1 ? 0 : of_class));
  }

  static std::vector<Kept> ChooseClass(const Tensor& boxes, const Tensor& scores, int64_t image, int64_t of_class,
                                       const SuppressionRule& rule) {
    const int64_t n = boxes.dim(1), classes = scores.dim(2);
    std::vector<float> of_boxes(static_cast<size_t>(n));
    std::vector<Box> places(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      of_boxes[static_cast<size_t>(i)] = scores.data<float>()[(image * n + i) * classes + of_class];
      const float* p = PlaceOf(boxes, image, i, of_class);
      places[static_cast<size_t>(i)] = BoxOf(p[0], p[1], p[2], p[3]);
    }
    return Suppress(of_boxes, rule, [&](int32_t i, int32_t j) {
      return Similarity(places[static_cast<size_t>(i)], places[static_cast<size_t>(j)]);
    });
  }

  int64_t WriteBest(const Tensor& boxes, int64_t image, int64_t classes, int64_t size, const std::vector<Kept>* chosen,
                    Tensor* const* out) const {
    std::vector<std::pair<Kept, int64_t>> all;
    for (int64_t c = 0; c < classes; ++c) {
      for (const Kept& k : chosen[c]) all.emplace_back(k, c);
    }
    std::stable_sort(
        all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first.score > b.first.score; });
    const int64_t count = std::min(size, static_cast<int64_t>(all.size()));
    for (int64_t i = 0; i < count; ++i) {
      const auto& [kept, of_class] = all[static_cast<size_t>(i)];
      const float* place = PlaceOf(boxes, image, kept.number, of_class);
      const int64_t at = image * size + i;
      for (int64_t k = 0; k < 4; ++k) {
        out[0]->mutable_data<float>()[4 * at + k] = clipped_ ? std::clamp(place[k], 0.0f, 1.0f) : place[k];
      }
      out[1]->mutable_data<float>()[at] = kept.score;
      out[2]->mutable_data<float>()[at] = static_cast<float>(of_class);
    }
    return count;
  }

  bool padded_per_class_ = false, clipped_ = true;
};

}  // namespace

void RegisterImageBoxKernels(KernelRegistry& registry) {
  for (const char* op : {"NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4",
                         "NonMaxSuppressionV5", "NonMaxSuppressionWithOverlaps"}) {
    registry.Add<SuppressionKernel>({.op = op});
  }
  registry.Add<CombinedSuppressionKernel>({.op = "CombinedNonMaxSuppression"});
}

void RegisterImageKernels(KernelRegistry& registry) {
  RegisterImageResizeKernels(registry);
  RegisterImageColourKernels(registry);
  RegisterImageBoxKernels(registry);
  RegisterImageCropKernels(registry);
  RegisterImageDrawKernels(registry);
  RegisterImageSampleKernels(registry);
  RegisterImageFileKernels(registry);
  RegisterImageScaleKernels(registry);
  RegisterImageTransformKernels(registry);
  RegisterImageResamplerKernels(registry);
  RegisterImageMatchKernels(registry);
  RegisterImageStereogramKernels(registry);
}

}  // namespace millrace
