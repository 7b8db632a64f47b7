// SPDX-License-Identifier: Apache-2.0
// Inner loops of the direct convolution, for T = float, double, int32_t. One step multiplies rows of images by the
// weights of one tap; a padding cell is a pointer to zeros. Compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

inline constexpr size_t kTilePixels = 4;

// One tap of a convolution at kTilePixels neighbouring places: where to read, and the tap's weights.
template <typename T>
struct ConvTap {
  const T* src[kTilePixels];
  const T* weights;  // depth rows of `width` (leading dimension `stride`)
};

// out[p][m] = sum over taps and k < depth of src[p][k] * weights[k * stride + m], for m < width.
template <typename T>
void ConvTile(const ConvTap<T>* taps, size_t num_taps, size_t depth, size_t width, size_t stride, T* const* out);

// The channel-by-channel case: out[c] = sum over taps of src[0][c] * weights[c].
template <typename T>
void DepthwiseTile(const ConvTap<T>* taps, size_t num_taps, size_t channels, T* out);

// dw[i * stride + m] += sum over n < count of x[n * x_step + i] * dy[n * dy_step + m], for i < rows <= 4, m < width.
template <typename T>
void FilterTile(size_t count, const T* x, size_t x_step, size_t rows, const T* dy, size_t dy_step, size_t width, T* dw,
                size_t stride);

// dw[c] += sum over n < count of x[n * x_step + c] * dy[n * dy_step + c].
template <typename T>
void DepthwiseFilterTile(size_t count, const T* x, size_t x_step, const T* dy, size_t dy_step, size_t channels, T* dw);

}  // namespace millrace
