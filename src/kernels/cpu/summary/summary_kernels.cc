// SPDX-License-Identifier: Apache-2.0
// CPU kernels: summaries of numbers, and their union.
#include "kernels/cpu/summary/summary.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "io/histogram.h"
#include "kernels/cpu/engine/elementwise_convert.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {

Status EmitSummary(KernelContext& ctx, const wire::Summary& summary) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<TString>() = wire::Encode(summary);
  return absl::OkStatus();
}

namespace {

// Numbers that one thread counts.
struct HistogramPart {
  Histogram counts;
  const char* bad = nullptr;  // what the first number is that cannot be counted

  void Count(const double* values, int64_t n) {
    for (int64_t i = 0; i < n && bad == nullptr; ++i) {
      if (std::isfinite(values[i])) {
        counts.Count(values[i]);
      } else {
        bad = std::isnan(values[i]) ? "NaN" : "infinity";
      }
    }
  }
};

}  // namespace

StatusOr<wire::Summary> HistogramSummaryOf(KernelContext& ctx, absl::string_view tag, const Tensor& values) {
  const ConvertRoute widen = FindConvert(values.dtype(), DType::kDouble);
  if (!widen.found) return InvalidArgument("no numbers: ", DTypeName(values.dtype()));
  constexpr int64_t kLeast = 1 << 16, kMostParts = 64;
  const int64_t n = values.num_elements(), size = std::max(kLeast, (n + kMostParts - 1) / kMostParts);
  std::vector<HistogramPart> parts(static_cast<size_t>(std::max<int64_t>(1, (n + size - 1) / size)));
  ctx.ParallelFor((n + size - 1) / size, 10.0 * static_cast<double>(size), [&](int64_t begin, int64_t end) {
    double tile[kConvertTile];
    for (int64_t part = begin; part < end; ++part) {
      const int64_t stop = std::min(n, (part + 1) * size);
      for (int64_t i = part * size; i < stop; i += kConvertTile) {
        const int64_t count = std::min(kConvertTile, stop - i);
        widen.Run(static_cast<const char*>(values.raw()) + i * widen.size[0], tile, count);
        parts[static_cast<size_t>(part)].Count(tile, count);
      }
    }
  });
  Histogram histogram;
  for (const HistogramPart& part : parts) {
    if (part.bad != nullptr) return InvalidArgument(part.bad, " in summary histogram for ", tag);
    histogram.MergeCounts(part.counts);
  }
  // In order, as TensorFlow adds them, to the last bit.
  double tile[kConvertTile];
  for (int64_t i = 0; i < n; i += kConvertTile) {
    const int64_t count = std::min(kConvertTile, n - i);
    widen.Run(static_cast<const char*>(values.raw()) + i * widen.size[0], tile, count);
    for (int64_t k = 0; k < count; ++k) histogram.AddToSums(tile[k]);
  }
  wire::Summary summary;
  wire::SummaryValue& v = summary.value.emplace_back();
  v.tag = std::string(tag);
  v.kind = wire::SummaryValue::Kind::kHisto;
  v.histo.Ensure() = histogram.ToProto();
  return summary;
}

namespace {

Status ScalarSummary(KernelContext& ctx) {
  const Tensor& tags = ctx.input(0);
  if (tags.shape() != ctx.input(1).shape()) {
    const bool is_one = tags.num_elements() == 1;
    return InvalidArgument(
        "tags and values not the same shape: ", tags.shape().ToString(), " != ", ctx.input(1).shape().ToString(),
        is_one ? absl::StrCat(" (tag '", tags.data<TString>()[0].view(), "')") : "");
  }
  const ConvertRoute narrow = FindConvert(ctx.input(1).dtype(), DType::kFloat);
  if (!narrow.found) return InvalidArgument("no numbers: ", DTypeName(ctx.input(1).dtype()));
  std::vector<float> values(static_cast<size_t>(tags.num_elements()));
  narrow.Run(ctx.input(1).raw(), values.data(), tags.num_elements());
  wire::Summary summary;
  for (size_t i = 0; i < values.size(); ++i) {
    wire::SummaryValue& v = summary.value.emplace_back();
    v.tag = tags.data<TString>()[i].str();
    v.kind = wire::SummaryValue::Kind::kSimpleValue;
    v.simple_value = values[i];
  }
  return EmitSummary(ctx, summary);
}

Status HistogramSummary(KernelContext& ctx) {
  if (!ctx.input(0).shape().IsScalar()) {
    return InvalidArgument("tag must be a scalar, got shape ", ctx.input(0).shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(
      const wire::Summary summary, HistogramSummaryOf(ctx, ctx.input(0).data<TString>()->view(), ctx.input(1)));
  return EmitSummary(ctx, summary);
}

Status MergeSummary(KernelContext& ctx) {
  wire::Summary merged;
  std::set<std::string> tags;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    for (const TString& bytes : ctx.input(i).flat<TString>()) {
      wire::Summary summary;
      if (const Status s = wire::Decode(bytes, &summary); !s.ok()) {
        return InvalidArgument("input ", i, " is no summary: ", s.message());
      }
      for (wire::SummaryValue& v : summary.value) {
        if (!v.tag.empty() && !tags.insert(v.tag).second) return InvalidArgument("tag ", v.tag, " occurs twice");
        merged.value.push_back(std::move(v));
      }
    }
  }
  return EmitSummary(ctx, merged);
}

}  // namespace

void RegisterSummaryKernels(KernelRegistry& registry) {
  const std::vector<DType> real = Types("REAL");
  registry.AddFn({.op = "ScalarSummary", .types = {{"T", real}}}, ScalarSummary);
  registry.AddFn({.op = "HistogramSummary", .types = {{"T", real}}}, HistogramSummary);
  registry.AddFn({.op = "MergeSummary"}, MergeSummary);
  RegisterImageSummaryKernels(registry);
  RegisterTensorSummaryKernels(registry);
  RegisterSummaryWriterKernels(registry);
  RegisterMessageKernels(registry);
}

}  // namespace millrace
