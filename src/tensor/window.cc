// SPDX-License-Identifier: Apache-2.0
#include "tensor/window.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/checked.h"

namespace millrace {
namespace {

Status CheckList(absl::string_view what, const ImageLayout& layout, std::vector<int64_t>* list) {
  const size_t rank = static_cast<size_t>(layout.rank);
  if (list->empty()) list->assign(rank, 1);
  if (list->size() != rank) {
    return InvalidArgument(what, " must have ", rank, " entries, got [", absl::StrJoin(*list, ","), "]");
  }
  for (int64_t v : *list) {
    if (v < 1) return InvalidArgument(what, " must be positive, got [", absl::StrJoin(*list, ","), "]");
    if (v > INT32_MAX) return InvalidArgument(what, " is too large: [", absl::StrJoin(*list, ","), "]");
  }
  return absl::OkStatus();
}

Status CheckExplicit(const WindowAttrs& a) {
  if (a.padding != Padding::kExplicit) {
    if (a.explicit_paddings.empty()) return absl::OkStatus();
    return InvalidArgument("explicit_paddings is for padding EXPLICIT only");
  }
  if (a.explicit_paddings.size() != static_cast<size_t>(2 * a.layout.rank)) {
    return InvalidArgument(
        "explicit_paddings must have ", 2 * a.layout.rank, " entries, got ", a.explicit_paddings.size());
  }
  for (size_t i = 0; i < a.explicit_paddings.size(); ++i) {
    const int64_t v = a.explicit_paddings[i];
    if (v < 0 || v > kMaxExplicitPadding) {
      return InvalidArgument("explicit_paddings must lie in [0, ", kMaxExplicitPadding, "], got ", v);
    }
    const int dim = static_cast<int>(i / 2);
    if (v != 0 && (dim == 0 || dim == a.layout.channel)) {
      return InvalidArgument("explicit_paddings of batch and channel must be 0, got ", v, " at ", i);
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Padding> ParsePadding(absl::string_view text) {
  if (text == "VALID") return Padding::kValid;
  if (text == "SAME") return Padding::kSame;
  if (text == "EXPLICIT") return Padding::kExplicit;
  return InvalidArgument("unknown padding '", text, "'");
}

StatusOr<ImageLayout> ParseImageLayout(absl::string_view format) {
  if (format == "NHWC") return ImageLayout{4, 3, 1};
  if (format == "NCHW") return ImageLayout{4, 1, 2};
  if (format == "NDHWC") return ImageLayout{5, 4, 1};
  if (format == "NCDHW") return ImageLayout{5, 1, 2};
  return InvalidArgument("unsupported data format '", format, "'");
}

StatusOr<int64_t> EffectiveWindow(int64_t kernel, int64_t dilation) {
  if (kernel < 1) return InvalidArgument("window size must be positive, got ", kernel);
  if (dilation < 1) return InvalidArgument("dilation must be positive, got ", dilation);
  int64_t extent = 0;
  if (!CheckedMul(kernel - 1, dilation, &extent) || !CheckedAdd(extent, int64_t{1}, &extent)) {
    return InvalidArgument("window of ", kernel, " taps with dilation ", dilation, " is too large");
  }
  return extent;
}

StatusOr<WindowExtent> ComputeWindow(int64_t input, int64_t kernel, int64_t stride, int64_t dilation, Padding padding,
                                     int64_t explicit_before, int64_t explicit_after) {
  if (input < 0) return InvalidArgument("input size must not be negative, got ", input);
  if (stride < 1) return InvalidArgument("stride must be positive, got ", stride);
  MR_ASSIGN_OR_RETURN(const int64_t window, EffectiveWindow(kernel, dilation));
  WindowExtent w;
  if (padding == Padding::kSame) {
    w.output = input / stride + (input % stride != 0 ? 1 : 0);
    // (output - 1) * stride < input, so this cannot overflow; window - input can only by window, which is checked.
    const int64_t last = w.output > 0 ? (w.output - 1) * stride : 0;
    int64_t needed = 0;
    if (!CheckedAdd(last, window, &needed)) return InvalidArgument("window of ", window, " is too large");
    needed = w.output > 0 ? std::max<int64_t>(0, needed - input) : 0;
    w.pad_before = needed / 2;
    w.pad_after = needed - w.pad_before;
    return w;
  }
  if (padding == Padding::kExplicit) {
    if (explicit_before < 0 || explicit_after < 0 || explicit_before > kMaxExplicitPadding ||
        explicit_after > kMaxExplicitPadding) {
      return InvalidArgument(
          "padding must lie in [0, ", kMaxExplicitPadding, "], got ", explicit_before, " and ", explicit_after);
    }
    w.pad_before = explicit_before;
    w.pad_after = explicit_after;
  }
  int64_t span = 0;
  if (!CheckedAdd(input, w.pad_before + w.pad_after, &span) || !CheckedSub(span, window, &span) ||
      !CheckedAdd(span, stride, &span)) {
    return InvalidArgument("window arithmetic overflows: input ", input, ", window ", window, ", stride ", stride);
  }
  w.output = span / stride;  // toward zero: a window that misses by less than a stride gives 0
  if (w.output < 0) {
    return InvalidArgument("output size would be negative: input ", input, ", padding ", w.pad_before, "+", w.pad_after,
                           ", window ", window, ", stride ", stride);
  }
  return w;
}

StatusOr<WindowExtent> ComputeWindowStrict(int64_t input, int64_t kernel, int64_t stride, int64_t dilation,
                                           Padding padding, int64_t explicit_before, int64_t explicit_after) {
  MR_ASSIGN_OR_RETURN(
      WindowExtent w, ComputeWindow(input, kernel, stride, dilation, padding, explicit_before, explicit_after));
  if (padding != Padding::kSame) {
    MR_ASSIGN_OR_RETURN(const int64_t window, EffectiveWindow(kernel, dilation));
    if (input + w.pad_before + w.pad_after < window) {
      return InvalidArgument("Negative dimension size: a window of ", window, " does not fit into input ", input,
                             " with padding ", w.pad_before, "+", w.pad_after);
    }
  }
  return w;
}

StatusOr<WindowExtent> WindowAttrs::Spatial(int i, int64_t input, int64_t kernel, bool strict) const {
  const size_t d = static_cast<size_t>(layout.first_spatial + i);
  const bool given = padding == Padding::kExplicit;
  const int64_t before = given ? explicit_paddings[2 * d] : 0;
  const int64_t after = given ? explicit_paddings[2 * d + 1] : 0;
  return (strict ? ComputeWindowStrict : ComputeWindow)(
      input, kernel, strides[d], dilations[d], padding, before, after);
}

Status CheckWindowAttrs(WindowAttrs* a, bool spatial_only) {
  MR_RETURN_IF_ERROR(CheckList("strides", a->layout, &a->strides));
  MR_RETURN_IF_ERROR(CheckList("dilations", a->layout, &a->dilations));
  MR_RETURN_IF_ERROR(CheckList("ksize", a->layout, &a->ksize));
  if (spatial_only) {
    for (int dim : {0, a->layout.channel}) {
      const size_t d = static_cast<size_t>(dim);
      if (a->strides[d] != 1 || a->dilations[d] != 1) {
        return InvalidArgument("strides in the batch and depth dimensions, and dilations, must be 1, got strides [",
                               absl::StrJoin(a->strides, ","), "], dilations [", absl::StrJoin(a->dilations, ","), "]");
      }
    }
  }
  return CheckExplicit(*a);
}

}  // namespace millrace
