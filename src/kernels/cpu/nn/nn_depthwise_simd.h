// SPDX-License-Identifier: Apache-2.0
// Rows of depthwise convolutions by steps of 1.
#pragma once

#include <cstdint>

namespace millrace {

// Numbers of a row of the result are those of its pixels, one channel after the other; so are the operand's, whose
// rows have all the cells that the taps of the row want. Tap (y, x) reads the operand tap_row * y + tap_step * x
// further. Its weights follow each other: those of the channels, again and again, `tap_weights` for each tap.
template <typename T>
struct DepthwiseRow {
  const T* read;
  int64_t taps_y, taps_x, tap_row, tap_step;
  const T* weights;
  int64_t channels, tap_weights;
  int64_t n;  // numbers of the result
  T* result;
};
// How many more weights than there are channels a tap has: loads may begin at any of them.
inline constexpr int64_t kDepthwiseSlack = 64;

void RunDepthwiseRow(const DepthwiseRow<float>& row);
void RunDepthwiseRow(const DepthwiseRow<double>& row);

}  // namespace millrace
