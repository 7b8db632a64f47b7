// SPDX-License-Identifier: Apache-2.0
// CPU kernels: sounds in WAV files.
#include <algorithm>

#include "io/wav.h"
#include "kernels/cpu/audio/audio.h"
#include "kernels/cpu/engine/index_rows.h"

namespace millrace {
namespace {

class DecodeWavKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(channels_, init.Attr<int64_t>("desired_channels"));
    MR_ASSIGN_OR_RETURN(frames_, init.Attr<int64_t>("desired_samples"));
    if (channels_ < -1 || frames_ < -1) {
      return InvalidArgument(
          "desired_channels and desired_samples must be -1 or more, got ", channels_, " and ", frames_);
    }
    return absl::OkStatus();
  }
  // Channels that the file lacks are like its last one, frames that it lacks are silent.
  Status Compute(KernelContext& ctx) override {
    MR_RETURN_IF_ERROR(RequireScalar("contents", ctx.input(0)));
    MR_ASSIGN_OR_RETURN(const WavSound sound, ReadWav(ctx.input(0).data<TString>()->view()));
    const int64_t frames = frames_ == -1 ? sound.frames : frames_;
    const int64_t channels = channels_ == -1 ? sound.channels : channels_;
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({frames, channels}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    float* to = out->mutable_data<float>();
    for (int64_t i = 0; i < frames; ++i) {
      for (int64_t c = 0; c < channels; ++c) {
        *to++ = i < sound.frames ? WavSample(sound, i, std::min(c, sound.channels - 1)) : 0.0F;
      }
    }
    MR_ASSIGN_OR_RETURN(Tensor * rate, ctx.AllocateOutput(1, Shape()));
    *rate->mutable_data<int32_t>() = sound.rate;
    return absl::OkStatus();
  }

 private:
  int64_t channels_ = -1;
  int64_t frames_ = -1;
};

Status EncodeWavFile(KernelContext& ctx) {
  const Tensor& audio = ctx.input(0);
  if (audio.rank() != 2) return InvalidArgument("audio must be 2-dimensional, got shape ", audio.shape().ToString());
  MR_RETURN_IF_ERROR(RequireScalar("sample_rate", ctx.input(1)));
  const int32_t rate = *ctx.input(1).data<int32_t>();
  const int64_t channels = audio.dim(1);
  if (rate <= 0) return InvalidArgument("sample_rate must be positive, got ", rate);
  if (channels < 1 || channels > 65535) return InvalidArgument("there are ", channels, " channels, want 1 to 65535");
  if (audio.num_elements() > int64_t{1} << 30) {
    return InvalidArgument("a recording of ", audio.num_elements(), " samples is too long for a WAV file");
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<TString>() =
      EncodeWav(audio.flat<float>(), static_cast<uint64_t>(channels), static_cast<uint64_t>(rate));
  return absl::OkStatus();
}

}  // namespace

void RegisterAudioKernels(KernelRegistry& r) {
  r.Add<DecodeWavKernel>({.op = "DecodeWav"});
  r.AddFn({.op = "EncodeWav"}, EncodeWavFile);
  RegisterSpectrumKernels(r);
}

}  // namespace millrace
