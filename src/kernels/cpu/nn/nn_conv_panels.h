// SPDX-License-Identifier: Apache-2.0
// Convolutions of few pixels, from the filter as it lies in memory: packing it would take half as long as the
// arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace {

// One tap: which of the results it reaches, and from where.
struct PanelTap {
  const float* const* from = nullptr;  // `depth` numbers each
  const int32_t* results = nullptr;    // numbers of pixels
  size_t size = 0;                     // of both
};

// Columns, which are a multiple of kPanelUnit, are taken so many at a time, or what is left.
inline constexpr int64_t kPanelColumns = 64, kPanelUnit = 16;

// Of each tap `depth` rows of weights, `stride` apart, one tap behind the other.
struct PanelWeights {
  const float* first = nullptr;
  int64_t depth = 0, stride = 0;
};

// Adds to out[p * out_stride + m] the sum over taps that reach p and over k < depth of from[k] * weights[k * stride +
// m], for m < columns.
void AddPanel(const std::vector<PanelTap>& taps, const PanelWeights& weights, int64_t columns, int64_t out_stride,
              float* out);

}  // namespace millrace
