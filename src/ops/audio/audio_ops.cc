// SPDX-License-Identifier: Apache-2.0
// Ops: sounds, their files and their spectra.
#include "ops/audio/audio_ops.h"

#include "op/shape_context.h"

namespace millrace {
namespace {

Status DecodeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  MR_ASSIGN_OR_RETURN(const int64_t frames, c.Attr<int64_t>("desired_samples"));
  MR_ASSIGN_OR_RETURN(const int64_t channels, c.Attr<int64_t>("desired_channels"));
  if (frames < -1 || channels < -1) return InvalidArgument("desired_samples and desired_channels must be -1 or more");
  c.set_output(0, PartialShape::Of({frames, channels}));
  c.set_output(1, PartialShape::Scalar());
  return absl::OkStatus();
}

Status EncodeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 2).status());
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  return ScalarShape(c);
}

Status SpectrogramShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const int64_t window, c.Attr<int64_t>("window_size"));
  MR_ASSIGN_OR_RETURN(const int64_t stride, c.Attr<int64_t>("stride"));
  if (window < 2 || window > 1 << 24 || stride < 1) {
    return InvalidArgument("window_size ", window, " and stride ", stride, " make no spectrogram");
  }
  int64_t size = 1;
  while (size < window) size *= 2;
  const int64_t samples = in.dim(0);
  const int64_t frames = samples < 0 ? -1 : samples < window ? 0 : 1 + (samples - window) / stride;
  c.set_output(0, PartialShape::Of({in.dim(1), frames, 1 + size / 2}));
  return absl::OkStatus();
}

Status MfccShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 3));
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  MR_ASSIGN_OR_RETURN(const int64_t coefficients, c.Attr<int64_t>("dct_coefficient_count"));
  if (coefficients < 1) return InvalidArgument("dct_coefficient_count is ", coefficients);
  c.set_output(0, PartialShape::Of({in.dim(0), in.dim(1), coefficients}));
  return absl::OkStatus();
}

}  // namespace

void RegisterAudioOps(OpRegistry& r) {
  r.Add("DecodeWav(contents:str) -> (audio:f32, sample_rate:i32) | desired_channels:int=-1; desired_samples:int=-1")
      .Doc(
          "The samples of a WAV file of 16 bits, frames by channels, in [-1, 1). With desired_channels or "
          "desired_samples there are so many: the last channel is repeated, and silence follows.")
      .Shape(DecodeShape)
      .NotDifferentiable("strings have no gradient")
      .NoExample("it needs a file's bytes");
  r.Add("EncodeWav(audio:f32, sample_rate:i32) -> (contents:str)")
      .Doc("Samples in [-1, 1], frames by channels, as a WAV file of 16 bits; what is beyond is cut off.")
      .Shape(EncodeShape)
      .NotDifferentiable("strings have no gradient")
      .Example("f32[3,2]/, !i32[]{8000}");
  r.Add("AudioSpectrogram(input:f32) -> (spectrogram:f32) | window_size:int; stride:int; magnitude_squared:bool=false")
      .Doc(
          "For each channel, and each window of window_size samples that begins at a multiple of stride, how loud its "
          "frequencies are: the magnitude of the Fourier transform under Hann's window, or its square. The transform's "
          "length is the next power of two.")
      .Shape(SpectrogramShape)
      .NoGradient("it is not implemented, as in TensorFlow")
      .Example("f32[40,2]~ | window_size=12; stride=5");
  r.Add(
       "Mfcc(spectrogram:f32, sample_rate:i32) -> (output:f32) | upper_frequency_limit:float=4000; "
       "lower_frequency_limit:float=20; filterbank_channel_count:int=40; dct_coefficient_count:int=13")
      .Doc(
          "Mel-frequency cepstral coefficients of a spectrogram of squares: loudness in bands that are even on the mel "
          "scale, its logarithm, and the first coefficients of that's cosine transform.")
      .Shape(MfccShape)
      .NoGradient("it is not implemented, as in TensorFlow")
      .Example("f32[1,2,17]+, !i32[]{16000}");
}

}  // namespace millrace
