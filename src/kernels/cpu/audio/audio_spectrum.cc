// SPDX-License-Identifier: Apache-2.0
// CPU kernels: how loud each frequency of a sound is, and the cepstrum on the mel scale (Davis and Mermelstein, 1980).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/cpu/audio/audio.h"
#include "kernels/cpu/engine/fourier.h"
#include "kernels/cpu/engine/index_rows.h"

namespace millrace {
namespace {

class SpectrogramKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(window_, init.Attr<int64_t>("window_size"));
    MR_ASSIGN_OR_RETURN(stride_, init.Attr<int64_t>("stride"));
    MR_ASSIGN_OR_RETURN(squared_, init.Attr<bool>("magnitude_squared"));
    constexpr int64_t kMaxWindow = 1 << 24;
    if (window_ < 2 || window_ > kMaxWindow || stride_ < 1) {
      return InvalidArgument("Spectrogram initialization failed for window size ", window_, " and stride ", stride_,
                             ": want 2 to ", kMaxWindow, ", and at least 1");
    }
    while (size_ < window_) size_ *= 2;
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.rank() != 2) return InvalidArgument("input must be 2-dimensional, got shape ", in.shape().ToString());
    const int64_t samples = in.dim(0), channels = in.dim(1), bins = 1 + size_ / 2;
    const int64_t frames = samples < window_ ? 0 : 1 + (samples - window_) / stride_;
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({channels, frames, bins}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    const RealFourierPlan<double> fourier(size_);
    const std::vector<double> window = Hann();
    ctx.ParallelFor(channels * frames, 20.0 * static_cast<double>(size_), [&](int64_t begin, int64_t end) {
      FourierScratch<double> scratch;
      const SplitNumbers<double> x = scratch.Numbers(fourier.scratch_size());
      for (int64_t i = begin; i < end; ++i) {
        const float* from = in.data<float>() + (i % frames) * stride_ * channels + i / frames;
        std::fill(x.re, x.re + size_ / 2, 0.0);
        std::fill(x.im, x.im + size_ / 2, 0.0);
        for (int64_t k = 0; k < window_; ++k) {
          (k % 2 == 0 ? x.re : x.im)[k / 2] = static_cast<double>(from[k * channels]) * window[static_cast<size_t>(k)];
        }
        const SplitNumbers<double> spectrum = fourier.Forward(x, 1, scratch);
        float* to = out->mutable_data<float>() + i * bins;
        for (int64_t k = 0; k < bins; ++k) {
          const double power = spectrum.re[k] * spectrum.re[k] + spectrum.im[k] * spectrum.im[k];
          to[k] = static_cast<float>(squared_ ? power : std::sqrt(power));
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  std::vector<double> Hann() const {
    std::vector<double> window(static_cast<size_t>(window_));
    for (size_t i = 0; i < window.size(); ++i) {
      window[i] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(window_));
    }
    return window;
  }

  int64_t window_ = 0;
  int64_t stride_ = 0;
  int64_t size_ = 1;  // of the transform
  bool squared_ = false;
};

double Mel(double frequency) { return 1127.0 * std::log1p(frequency / 700.0); }

// Triangular bands, evenly spaced on the mel scale; each ends at the middle of the next.
class MelBands {
 public:
  static StatusOr<MelBands> Make(int64_t bins, double rate, int64_t bands, double low, double high) {
    if (bins < 2) return InvalidArgument("Input length must be greater than 1, got ", bins);
    if (!(rate > 0)) return InvalidArgument("Sample rate must be positive, got ", rate);
    if (!(low >= 0) || !(high > low) || !std::isfinite(high)) {
      return InvalidArgument("frequency limits must be 0 or more and ascending, got ", low, " and ", high);
    }
    MelBands b;
    b.bands_ = bands;
    const double spacing = (Mel(high) - Mel(low)) / static_cast<double>(bands + 1);
    const double hertz = 0.5 * rate / static_cast<double>(bins - 1);
    b.begin_ = static_cast<int64_t>(std::min(1.5 + low / hertz, static_cast<double>(bins)));
    b.end_ = static_cast<int64_t>(std::min(high / hertz, static_cast<double>(bins - 1)));
    for (int64_t i = b.begin_; i <= b.end_; ++i) {
      const double place = (Mel(static_cast<double>(i) * hertz) - Mel(low)) / spacing;
      const auto band = static_cast<int64_t>(std::clamp(std::ceil(place) - 1, 0.0, static_cast<double>(bands)));
      b.parts_.push_back({band - 1, static_cast<double>(band + 1) - place});
    }
    return b;
  }

  void Compute(const float* powers, double* bands) const {
    std::fill(bands, bands + bands_, 0.0);
    for (size_t i = 0; i < parts_.size(); ++i) {
      const double loudness = std::sqrt(static_cast<double>(powers[begin_ + static_cast<int64_t>(i)]));
      const double weighted = loudness * parts_[i].weight;
      const int64_t band = parts_[i].band;
      if (band >= 0) bands[band] += weighted;
      if (band + 1 < bands_) bands[band + 1] += loudness - weighted;
    }
  }

 private:
  struct Part {
    int64_t band;   // that ends here; the rest belongs to the next
    double weight;  // its share
  };
  int64_t bands_ = 0, begin_ = 0, end_ = 0;
  std::vector<Part> parts_;  // of bins begin_ to end_
};

class MfccKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(high_, init.Attr<float>("upper_frequency_limit"));
    MR_ASSIGN_OR_RETURN(low_, init.Attr<float>("lower_frequency_limit"));
    MR_ASSIGN_OR_RETURN(bands_, init.Attr<int64_t>("filterbank_channel_count"));
    MR_ASSIGN_OR_RETURN(coefficients_, init.Attr<int64_t>("dct_coefficient_count"));
    constexpr int64_t kMost = 1 << 14;
    if (bands_ < 1 || bands_ > kMost || coefficients_ < 1 || coefficients_ > bands_) {
      return InvalidArgument("filterbank_channel_count must be in [1, ", kMost,
                             "], dct_coefficient_count at most that; got ", bands_, " and ", coefficients_);
    }
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.rank() != 3) return InvalidArgument("spectrogram must be 3-dimensional, got shape ", in.shape().ToString());
    MR_RETURN_IF_ERROR(RequireScalar("sample_rate", ctx.input(1)));
    const double rate = *ctx.input(1).data<int32_t>();
    MR_ASSIGN_OR_RETURN(const MelBands mel,
                        MelBands::Make(in.dim(2), rate, bands_, static_cast<double>(low_), static_cast<double>(high_)));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({in.dim(0), in.dim(1), coefficients_}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const std::vector<double> cosines = Cosines();
    const double cost = static_cast<double>(in.dim(2) * 5 + bands_ * coefficients_);
    ctx.ParallelFor(in.dim(0) * in.dim(1), cost, [&](int64_t begin, int64_t end) {
      std::vector<double> bands(static_cast<size_t>(bands_));
      for (int64_t i = begin; i < end; ++i) {
        mel.Compute(in.data<float>() + i * in.dim(2), bands.data());
        for (double& b : bands) b = std::log(std::max(b, 1e-12));
        float* to = out->mutable_data<float>() + i * coefficients_;
        for (int64_t k = 0; k < coefficients_; ++k) {
          double sum = 0;
          for (int64_t j = 0; j < bands_; ++j) {
            sum += cosines[static_cast<size_t>(k * bands_ + j)] * bands[static_cast<size_t>(j)];
          }
          to[k] = static_cast<float>(sum);
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  std::vector<double> Cosines() const {
    std::vector<double> cosines(static_cast<size_t>(coefficients_ * bands_));
    const auto n = static_cast<double>(bands_);
    for (int64_t k = 0; k < coefficients_; ++k) {
      for (int64_t j = 0; j < bands_; ++j) {
        cosines[static_cast<size_t>(k * bands_ + j)] =
            std::sqrt(2 / n) * std::cos(static_cast<double>(k) * std::numbers::pi / n * (static_cast<double>(j) + 0.5));
      }
    }
    return cosines;
  }

  float high_ = 0, low_ = 0;
  int64_t bands_ = 0, coefficients_ = 0;
};

}  // namespace

void RegisterSpectrumKernels(KernelRegistry& r) {
  r.Add<SpectrogramKernel>({.op = "AudioSpectrogram"});
  r.Add<MfccKernel>({.op = "Mfcc"});
}

}  // namespace millrace
