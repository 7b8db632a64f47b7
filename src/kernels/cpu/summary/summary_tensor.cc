// SPDX-License-Identifier: Apache-2.0
// CPU kernels: summaries of sounds and of whole tensors.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "io/wav.h"
#include "kernels/cpu/summary/summary.h"
#include "tensor/tensor_proto.h"

namespace millrace {
namespace {

class AudioSummaryKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(max_outputs_, init.Attr<int64_t>("max_outputs"));
    if (init.HasAttr("sample_rate")) {
      MR_ASSIGN_OR_RETURN(rate_, init.Attr<float>("sample_rate"));
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).rank() != 0)
      return InvalidArgument("tag must be a scalar, got shape ", ctx.input(0).shape().ToString());
    float rate = rate_;
    if (ctx.num_inputs() > 2) {
      if (ctx.input(2).num_elements() != 1) {
        return InvalidArgument("sample_rate must be a scalar, got shape ", ctx.input(2).shape().ToString());
      }
      rate = *ctx.input(2).data<float>();
    }
    MR_ASSIGN_OR_RETURN(const wire::Summary summary,
                        AudioSummaryOf(ctx.input(0).data<TString>()->view(), ctx.input(1), rate, max_outputs_));
    return EmitSummary(ctx, summary);
  }

 private:
  int64_t max_outputs_ = 3;
  float rate_ = 0;
};

StatusOr<wire::SummaryValue> TensorValue(const Tensor& tensor) {
  wire::SummaryValue v;
  v.kind = wire::SummaryValue::Kind::kTensor;
  MR_ASSIGN_OR_RETURN(v.tensor.Ensure(), TensorToProto(tensor));
  return v;
}

Status TensorSummary(KernelContext& ctx) {
  wire::Summary summary;
  MR_ASSIGN_OR_RETURN(wire::SummaryValue v, TensorValue(ctx.input(0)));
  v.node_name = ctx.node_name();
  summary.value.push_back(std::move(v));
  return EmitSummary(ctx, summary);
}

Status TensorSummaryV2(KernelContext& ctx) {
  if (ctx.input(0).rank() != 0)
    return InvalidArgument("tag must be a scalar, got shape ", ctx.input(0).shape().ToString());
  if (ctx.input(2).num_elements() != 1) {
    return InvalidArgument("serialized_summary_metadata must be a scalar, got shape ", ctx.input(2).shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(
      const wire::Summary summary,
      TensorSummaryOf(ctx.input(0).data<TString>()->view(), ctx.input(1), ctx.input(2).data<TString>()->view()));
  return EmitSummary(ctx, summary);
}

}  // namespace

StatusOr<wire::Summary> AudioSummaryOf(absl::string_view tag, const Tensor& sounds, float sample_rate,
                                       int64_t max_outputs) {
  if (sounds.rank() != 2 && sounds.rank() != 3) {
    return InvalidArgument(
        "the samples must be [n, frames] or [n, frames, channels], got shape ", sounds.shape().ToString());
  }
  if (!(sample_rate > 0) || sample_rate > 4e9f)
    return InvalidArgument("sample_rate is ", sample_rate, ", want a number of hertz");
  const int64_t frames = sounds.dim(1), channels = sounds.rank() == 3 ? sounds.dim(2) : 1, size = frames * channels;
  if (channels < 1 || channels > 65535) return InvalidArgument("there are ", channels, " channels, want 1 to 65535");
  if (size > int64_t{1} << 30) return InvalidArgument("a recording of ", size, " samples is too long for a WAV file");
  wire::Summary summary;
  for (int64_t i = 0; i < std::min(max_outputs, sounds.dim(0)); ++i) {
    wire::SummaryValue& v = summary.value.emplace_back();
    v.tag = max_outputs > 1 ? absl::StrCat(tag, "/audio/", i) : absl::StrCat(tag, "/audio");
    v.kind = wire::SummaryValue::Kind::kAudio;
    wire::SummaryAudio& audio = v.audio.Ensure();
    audio.sample_rate = sample_rate;
    audio.num_channels = channels;
    audio.length_frames = frames;
    audio.encoded_audio_string = EncodeWav(
        sounds.flat<float>().subspan(static_cast<size_t>(i * size), static_cast<size_t>(size)),
        static_cast<uint64_t>(channels), SaturatingCast<uint32_t>(std::nearbyint(static_cast<double>(sample_rate))));
    audio.content_type = "audio/wav";
  }
  return summary;
}

StatusOr<wire::Summary> TensorSummaryOf(absl::string_view tag, const Tensor& tensor, absl::string_view metadata) {
  wire::Summary summary;
  MR_ASSIGN_OR_RETURN(wire::SummaryValue v, TensorValue(tensor));
  v.tag = std::string(tag);
  if (const Status s = wire::Decode(metadata, &v.metadata.Ensure()); !s.ok()) {
    return InvalidArgument("serialized_summary_metadata is no SummaryMetadata: ", s.message());
  }
  summary.value.push_back(std::move(v));
  return summary;
}

void RegisterTensorSummaryKernels(KernelRegistry& registry) {
  registry.Add<AudioSummaryKernel>({.op = "AudioSummary"});
  registry.Add<AudioSummaryKernel>({.op = "AudioSummaryV2"});
  registry.AddFn({.op = "TensorSummary"}, TensorSummary);
  registry.AddFn({.op = "TensorSummaryV2"}, TensorSummaryV2);
}

}  // namespace millrace
