// SPDX-License-Identifier: Apache-2.0
// Vector loops on images of float32, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

// What one place of a resampled axis takes from the other axis.
struct Tap {
  int64_t at;
  float weight;
};

// to[k] = sum over taps of weight * lines[tap][k]; lines[i] belongs to taps[i].
void MixLines(const float* const* lines, const Tap* taps, size_t num_taps, size_t n, float* to);

// Pixel x of `to` is the sum over taps[first[x], first[x + 1]) of weight * pixel `at` of `line`. Where there are at
// most four channels, up to kPixelSlack values behind `line` are read. With `streams` whole vectors may go past the
// caches: FinishStreams (engine/strided_block.h) before another thread reads them.
inline constexpr size_t kPixelSlack = 3;
void MixPixels(const float* line, const Tap* taps, const size_t* first, size_t pixels, size_t channels, bool streams,
               float* to);

// Where a pixel of a crop lies along one axis of the image.
struct Place {
  bool inside = false;
  int64_t below = 0, above = 0, nearest = 0;
  float part = 0;  // of the way from below to above
};
// Pixels between those of two rows of an image, `part` of the way from `top` to `bottom`; `outside` where a place is.
void BlendPixels(const float* top, const float* bottom, float part, const Place* places, size_t pixels, size_t channels,
                 float outside, float* to);
// Adds what `pixels` of a crop give to one row of an image, each to its two neighbours or to the nearest.
void SpreadPixels(const float* from, float weight, const Place* places, size_t pixels, size_t channels, bool bilinear,
                  float* row);

// Colours of three values each, from `from` to `to`, which may be the same.
void HsvToRgb(const float* from, size_t colours, float* to);
// The hue moved by `turn` of a whole turn, and the saturation scaled and held to [0, 1].
void ShiftHue(const float* from, size_t colours, float turn, float* to);
void ScaleSaturation(const float* from, size_t colours, float scale, float* to);
void RgbToHsv(const float* from, size_t colours, float* to);
void HsvToRgb(const double* from, size_t colours, double* to);
void RgbToHsv(const double* from, size_t colours, double* to);

inline constexpr int64_t kMostChannels = 16;  // of the next two
// Sums of each of `channels` interleaved channels, in lanes; and y = (x - mean) * factor + mean, channel by channel.
void SumChannels(const float* from, size_t pixels, size_t channels, double* sums);
void ScaleAround(const float* from, size_t pixels, size_t channels, const float* mean, float factor, float* to);

}  // namespace millrace
