// SPDX-License-Identifier: Apache-2.0
// CPU kernels: summaries of numbers, and their union.
#include "kernels/cpu/summary/summary.h"

#include <cmath>
#include <set>
#include <utility>

#include "io/histogram.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {

Status EmitSummary(KernelContext& ctx, const wire::Summary& summary) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<TString>() = wire::Encode(summary);
  return absl::OkStatus();
}

namespace {

template <typename To, typename From>
void Append(const Tensor& t, std::vector<To>* out) {
  for (const From& v : t.flat<From>()) {
    if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
      out->push_back(static_cast<To>(static_cast<float>(v)));
    } else {
      out->push_back(static_cast<To>(v));
    }
  }
}

template <typename To>
StatusOr<std::vector<To>> NumbersOf(const Tensor& t) {
  std::vector<To> out;
  out.reserve(static_cast<size_t>(t.num_elements()));
  switch (t.dtype()) {
    case DType::kFloat: Append<To, float>(t, &out); break;
    case DType::kDouble: Append<To, double>(t, &out); break;
    case DType::kHalf: Append<To, Half>(t, &out); break;
    case DType::kBFloat16: Append<To, BFloat16>(t, &out); break;
    case DType::kInt8: Append<To, int8_t>(t, &out); break;
    case DType::kInt16: Append<To, int16_t>(t, &out); break;
    case DType::kInt32: Append<To, int32_t>(t, &out); break;
    case DType::kInt64: Append<To, int64_t>(t, &out); break;
    case DType::kUInt8: Append<To, uint8_t>(t, &out); break;
    case DType::kUInt16: Append<To, uint16_t>(t, &out); break;
    case DType::kUInt32: Append<To, uint32_t>(t, &out); break;
    case DType::kUInt64: Append<To, uint64_t>(t, &out); break;
    default: return InvalidArgument("no numbers: ", DTypeName(t.dtype()));
  }
  return out;
}

Status ScalarSummary(KernelContext& ctx) {
  const Tensor& tags = ctx.input(0);
  if (tags.shape() != ctx.input(1).shape()) {
    return InvalidArgument(
        "tags and values need one shape, got ", tags.shape().ToString(), " and ", ctx.input(1).shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(const std::vector<float> values, NumbersOf<float>(ctx.input(1)));
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
  const std::string tag = ctx.input(0).data<TString>()->str();
  MR_ASSIGN_OR_RETURN(const std::vector<double> values, NumbersOf<double>(ctx.input(1)));
  Histogram histogram;
  for (double v : values) {
    if (std::isnan(v)) return InvalidArgument("NaN in summary histogram for ", tag);
    if (std::isinf(v)) return InvalidArgument("infinity in summary histogram for ", tag);
    histogram.Add(v);
  }
  wire::Summary summary;
  wire::SummaryValue& v = summary.value.emplace_back();
  v.tag = tag;
  v.kind = wire::SummaryValue::Kind::kHisto;
  v.histo.Ensure() = histogram.ToProto();
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
  RegisterMessageKernels(registry);
}

}  // namespace millrace
