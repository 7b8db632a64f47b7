// SPDX-License-Identifier: Apache-2.0
// Inner loops of pooling, channels-last: a run of neighbouring windows of the same form at once, all their channels.
// For T = float and double; compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

// `windows` windows; window w covers the `cells` >= 1 cells at elements w * step + offsets[i] of an image, each with
// `channels` values. What belongs to the windows' results follows without gaps after `channels_stride` elements each.
struct WindowRun {
  const int64_t* offsets = nullptr;
  size_t cells = 0;
  size_t windows = 0;
  int64_t step = 0;
  size_t channels = 0;
  size_t channels_stride = 0;
  size_t divisor = 0;  // of means: the cells of the windows, some of which other runs may cover
};

// out[w][c] = the largest of the cells; NaN is larger than any number
template <typename T>
void MaxOfWindows(const WindowRun& run, const T* image, T* out);
// out[w][c] = the sum of the cells / divisor
template <typename T>
void MeanOfWindows(const WindowRun& run, const T* image, T* out);
// into[first cell that holds the largest value of image, or NaN] += g[w][c]
template <typename T>
void ScatterToMax(const WindowRun& run, const T* image, T* into, const T* g);
// out[w][c] = from[first cell where image equals y[w][c], or is NaN as it is], or 0
template <typename T>
void GatherFromMax(const WindowRun& run, const T* image, const T* from, const T* y, T* out);
// into[every cell] += g[w][c] / divisor
template <typename T>
void SpreadToWindows(const WindowRun& run, T* into, const T* g);

}  // namespace millrace
