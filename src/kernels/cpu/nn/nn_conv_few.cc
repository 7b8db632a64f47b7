// SPDX-License-Identifier: Apache-2.0
// Convolutions of few pixels by panels of output channels, each one for one thread.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/engine/epilogue.h"
#include "kernels/cpu/nn/nn_conv.h"
#include "kernels/cpu/nn/nn_conv_panels.h"
#include "tensor/prepared.h"

namespace millrace {
namespace {

constexpr int64_t kChunk = 32, kChunksTogether = 4;  // pixels of a part; parts that one thread takes at once

int64_t Pixels(const ConvGeometry& g) { return g.batch * g.out_pixels(); }
int64_t Chunks(const ConvGeometry& g) { return (Pixels(g) + kChunk - 1) / kChunk; }
int64_t Panels(const ConvGeometry& g) { return (g.out_channels + kPanelColumns - 1) / kPanelColumns; }
int64_t ColumnsOf(const ConvGeometry& g, int64_t panel) {
  return std::min(kPanelColumns, g.out_channels - panel * kPanelColumns);
}

// The results that a tap reaches from inside of the input, in order.
struct Reach {
  std::vector<const float*> from;
  std::vector<int32_t> results;
};

// Of those the ones in [begin, end).
PanelTap PartOf(const Reach& reach, int64_t begin, int64_t end) {
  const auto place = [&](int64_t result) {
    return std::lower_bound(reach.results.begin(), reach.results.end(), static_cast<int32_t>(result)) -
           reach.results.begin();
  };
  const auto first = place(begin);
  return {reach.from.data() + first, reach.results.data() + first, static_cast<size_t>(place(end) - first)};
}

// Of the taps in the filter's order.
std::vector<Reach> ReachOfTaps(const ConvGeometry& g, const float* input) {
  std::vector<Reach> taps;
  for (int64_t kz = 0; kz < g.kernel[0]; ++kz) {
    for (int64_t ky = 0; ky < g.kernel[1]; ++ky) {
      for (int64_t kx = 0; kx < g.kernel[2]; ++kx) {
        Reach& tap = taps.emplace_back();
        int32_t result = 0;
        for (int64_t n = 0; n < g.batch; ++n) {
          for (int64_t oz = 0; oz < g.out[0]; ++oz) {
            const int64_t z = oz * g.stride[0] - g.pad_before[0] + kz * g.dilation[0];
            for (int64_t oy = 0; oy < g.out[1]; ++oy) {
              const int64_t y = oy * g.stride[1] - g.pad_before[1] + ky * g.dilation[1];
              for (int64_t ox = 0; ox < g.out[2]; ++ox, ++result) {
                const int64_t x = ox * g.stride[2] - g.pad_before[2] + kx * g.dilation[2];
                if (z < 0 || z >= g.in[0] || y < 0 || y >= g.in[1] || x < 0 || x >= g.in[2]) continue;
                tap.from.push_back(input + (((n * g.in[0] + z) * g.in[1] + y) * g.in[2] + x) * g.in_channels);
                tap.results.push_back(result);
              }
            }
          }
        }
      }
    }
  }
  return taps;
}

}  // namespace

bool HasFewPixels(const ConvGeometry& g) {
  constexpr int64_t kMostPixels = 1024, kLeastChannels = 64;
  return g.taps() > 1 && g.groups == 1 && Pixels(g) <= kMostPixels &&
         std::min(g.in_channels, g.out_channels) >= kLeastChannels && g.out_channels % kPanelUnit == 0;
}

std::vector<double> FewPixelsParts(const ConvGeometry& g) {
  std::vector<double> parts;
  for (int64_t p = 0; p < Panels(g); ++p) {
    for (int64_t c = 0; c < Chunks(g); ++c) {
      const int64_t pixels = std::min(kChunk, Pixels(g) - c * kChunk);
      parts.push_back(
          g.flops() / static_cast<double>(Pixels(g) * g.out_channels) * static_cast<double>(pixels * ColumnsOf(g, p)));
    }
  }
  return parts;
}

Status FewPixelsConv(KernelContext& ctx, const ConvGeometry& g, const ConvOperands& v) {
  const auto* const filter = static_cast<const float*>(v.filter);
  const int64_t rows = g.taps() * g.in_channels;
  // Where the filter stays the same, its panels one behind the other are kept.
  RefPtr<Buffer> kept;
  if (v.filter_value != nullptr) {
    const auto pack = [&](void* to_raw) {
      auto* to = static_cast<float*>(to_raw);
      for (int64_t p = 0; p < Panels(g); ++p) {
        for (int64_t r = 0; r < rows; ++r) {
          to = std::copy_n(filter + r * g.out_channels + p * kPanelColumns, ColumnsOf(g, p), to);
        }
      }
      return absl::OkStatus();
    };
    kept = PreparedForms::Of(
        *v.filter_value, absl::StrCat("panels of ", rows, " by ", g.out_channels),
        static_cast<size_t>(rows * g.out_channels) * sizeof(float), ctx.device().allocator(), pack);
  }
  float* out = static_cast<float*>(v.output);
  Tensor beside;  // the residual may be where the result goes
  if (v.epilogue != nullptr && v.epilogue->residual != nullptr) {
    MR_ASSIGN_OR_RETURN(beside, ctx.AllocateTemp(DType::kFloat, Shape::Vector(Pixels(g) * g.out_channels)));
    out = beside.mutable_data<float>();
  }
  const std::vector<Reach> reach = ReachOfTaps(g, static_cast<const float*>(v.input));
  const int64_t parts = Panels(g) * Chunks(g);
  ctx.ParallelFor(parts, g.flops() / 60 / static_cast<double>(parts), [&](int64_t begin, int64_t end) {
    std::vector<PanelTap> taps(reach.size());
    for (int64_t part = begin, count = 0; part < end; part += count) {
      const int64_t p = part / Chunks(g), first = p * kPanelColumns, columns = ColumnsOf(g, p), c = part % Chunks(g);
      count = std::min({kChunksTogether, Chunks(g) - c, end - part});
      const int64_t first_pixel = c * kChunk, end_pixel = std::min(Pixels(g), (c + count) * kChunk);
      for (size_t t = 0; t < taps.size(); ++t) taps[t] = PartOf(reach[t], first_pixel, end_pixel);
      float* const to = out + first;
      for (int64_t i = first_pixel; i < end_pixel; ++i) std::fill_n(to + i * g.out_channels, columns, 0.0f);
      PanelWeights weights{filter + first, g.in_channels, g.out_channels};
      if (kept) weights = {static_cast<const float*>(kept->data()) + first * rows, g.in_channels, columns};
      AddPanel(taps, weights, columns, g.out_channels, to);
      if (v.epilogue == nullptr) continue;
      ApplyEpilogue(
          *v.epilogue,
          {to + first_pixel * g.out_channels, g.out_channels, first_pixel, end_pixel - first_pixel, first, columns},
          static_cast<float*>(v.output));
    }
  });
  return absl::OkStatus();
}

}  // namespace millrace
