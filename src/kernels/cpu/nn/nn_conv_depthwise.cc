// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of images by steps of 1, and what they give back to their input: some rows of the operand at a
// time are copied with zeros around them, so that each tap reads a row without a look at where it ends.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/nn/nn_conv.h"
#include "kernels/cpu/nn/nn_depthwise_simd.h"

namespace millrace {
namespace {

// The walk over the operand that is read, as a forward pass.
struct Rows {
  int64_t channels, taps_y, taps_x, step_y, step_x;  // steps from tap to tap, in cells
  int64_t read_height, read_width, height, width;    // of the operand and the result
  int64_t above, left;                               // cells before the operand's first that tap 0 reads
};

Rows RowsOf(ConvPass pass, const ConvGeometry& g) {
  Rows r{};
  r.channels = g.in_channels;
  r.taps_y = g.kernel[1], r.taps_x = g.kernel[2];
  r.step_y = g.dilation[1], r.step_x = g.dilation[2];
  if (pass == ConvPass::kForward) {
    r.read_height = g.in[1], r.read_width = g.in[2], r.height = g.out[1], r.width = g.out[2];
    r.above = g.pad_before[1], r.left = g.pad_before[2];
  } else {  // by the filter turned around
    r.read_height = g.out[1], r.read_width = g.out[2], r.height = g.in[1], r.width = g.in[2];
    r.above = (r.taps_y - 1) * r.step_y - g.pad_before[1], r.left = (r.taps_x - 1) * r.step_x - g.pad_before[2];
  }
  return r;
}

template <typename T>
void CopyRow(const Rows& r, const T* read, int64_t y, int64_t row_size, T* to) {
  const int64_t left = r.left * r.channels, n = std::min(r.read_width * r.channels, row_size - left);
  if (y < 0 || y >= r.read_height) return (void)std::fill_n(to, row_size, T(0));
  std::fill_n(to, left, T(0));
  std::copy_n(read + y * r.read_width * r.channels, n, to + left);
  std::fill(to + left + n, to + row_size, T(0));
}

constexpr int64_t kRows = 16;  // of the result at a time
constexpr int64_t kMostBorder = 64, kMostCopied = 1 << 20;

}  // namespace

template <typename T>
bool DepthwiseByRows(ConvPass pass, const ConvGeometry& g, const ConvOperands& v) {
  if (!g.depthwise() || pass == ConvPass::kBackwardFilter || g.volumetric || v.epilogue != nullptr) return false;
  if (g.stride[1] != 1 || g.stride[2] != 1) return false;
  if (sizeof(T) == sizeof(float) && g.in_channels >= 16) return false;  // oneDNN is faster by whole vectors of channels
  const Rows r = RowsOf(pass, g);
  if (r.above < 0 || r.left < 0) return false;
  // Each thread copies some rows with the zeros beside them: wide borders, and very many channels, are not worth it.
  const int64_t below = (r.taps_y - 1) * r.step_y, beside = (r.taps_x - 1) * r.step_x;
  if (below > kMostBorder || beside > kMostBorder) return false;
  if ((kRows + below) * (r.width + beside) * r.channels > kMostCopied) return false;
  // A zero beside the image times such a weight would be no number.
  const T* const weights = static_cast<const T*>(v.filter);
  for (int64_t i = 0; i < g.taps() * g.in_channels; ++i) {
    if (!std::isfinite(weights[i])) return false;
  }
  return true;
}

template <typename T>
Status RunDepthwiseByRows(KernelContext& ctx, ConvPass pass, const ConvGeometry& g, const ConvOperands& v) {
  const Rows r = RowsOf(pass, g);
  const bool forward = pass == ConvPass::kForward;
  const int64_t c = r.channels, taps = g.taps(), tap_weights = c + kDepthwiseSlack;
  std::vector<T> weights(static_cast<size_t>(taps * tap_weights));
  for (int64_t t = 0; t < taps; ++t) {
    const T* const from = static_cast<const T*>(v.filter) + (forward ? t : taps - 1 - t) * c;
    for (int64_t i = 0; i < tap_weights; ++i) weights[static_cast<size_t>(t * tap_weights + i)] = from[i % c];
  }
  const T* const read = static_cast<const T*>(forward ? v.input : v.output);
  T* const result = static_cast<T*>(forward ? v.output : v.input);
  const int64_t parts = (r.height + kRows - 1) / kRows, row_size = (r.width + (r.taps_x - 1) * r.step_x) * c;
  const double cost = 0.15 * static_cast<double>(std::min(kRows, r.height) * r.width * c * (taps + 4));
  ctx.ParallelFor(g.batch * parts, cost, [&](int64_t begin, int64_t end) {
    const int64_t most = std::min(kRows, r.height) + (r.taps_y - 1) * r.step_y;
    std::vector<T> rows(static_cast<size_t>(most * row_size));
    for (int64_t part = begin; part < end; ++part) {
      const int64_t image = part / parts, first = part % parts * kRows, last = std::min(first + kRows, r.height);
      const T* const from = read + image * r.read_height * r.read_width * c;
      for (int64_t y = 0; y < last - first + (r.taps_y - 1) * r.step_y; ++y) {
        CopyRow(r, from, first + y - r.above, row_size, rows.data() + y * row_size);
      }
      for (int64_t y = first; y < last; ++y) {
        DepthwiseRow<T> row;
        row.read = rows.data() + (y - first) * row_size;
        row.taps_y = r.taps_y, row.taps_x = r.taps_x;
        row.tap_row = r.step_y * row_size, row.tap_step = r.step_x * c;
        row.weights = weights.data();
        row.channels = c, row.tap_weights = tap_weights;
        row.n = r.width * c;
        row.result = result + (image * r.height + y) * r.width * c;
        RunDepthwiseRow(row);
      }
    }
  });
  return absl::OkStatus();
}

template bool DepthwiseByRows<float>(ConvPass, const ConvGeometry&, const ConvOperands&);
template bool DepthwiseByRows<double>(ConvPass, const ConvGeometry&, const ConvOperands&);
template Status RunDepthwiseByRows<float>(KernelContext&, ConvPass, const ConvGeometry&, const ConvOperands&);
template Status RunDepthwiseByRows<double>(KernelContext&, ConvPass, const ConvGeometry&, const ConvOperands&);

}  // namespace millrace
