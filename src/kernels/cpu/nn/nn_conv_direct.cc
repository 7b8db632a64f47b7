// SPDX-License-Identifier: Apache-2.0
// Direct convolution. Forward and backward-input are the same walk: for kTilePixels neighbouring places of the result,
// list the taps that touch real cells, then let ConvTile sum over them. Backward-filter gives each (tap, group, rows of
// the filter) to one thread, which walks all pixels in order, so nothing is summed across threads.
#include <algorithm>
#include <vector>

#include "kernels/cpu/nn/nn_conv.h"
#include "kernels/cpu/nn/nn_conv_tiles.h"

namespace millrace {
namespace {

size_t Sz(int64_t v) { return static_cast<size_t>(v); }

// How one axis of the result maps to the operand that is read.
struct Axis {
  int64_t result = 1, operand = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
  bool backward = false;
  // The operand cell that tap k reads for result cell i, or -1.
  int64_t Source(int64_t i, int64_t k) const {
    if (!backward) {
      const int64_t at = i * stride - pad + k * dilation;
      return at >= 0 && at < operand ? at : -1;
    }
    const int64_t at = i + pad - k * dilation;
    if (at < 0 || at % stride != 0) return -1;
    return at / stride < operand ? at / stride : -1;
  }
};

// The walk of forward and backward-input over a result of `width` channels per group, read `depth` channels at a time.
template <typename T>
struct Walk {
  std::array<Axis, 3> axis;
  int64_t groups = 1, depth = 1, width = 1;
  int64_t read_channels = 1, result_channels = 1;
  int64_t tap_stride = 0;     // elements from one tap's weights to the next
  int64_t group_stride = 0;   // elements from one group's weights to the next
  int64_t weight_stride = 0;  // leading dimension
  bool depthwise = false;
  const T* read = nullptr;
  const T* weights = nullptr;
  T* result = nullptr;
};

template <typename T>
class RowWalker {
 public:
  explicit RowWalker(const Walk<T>& w)
      : w_(w), zeros_(Sz(w.read_channels), T(0)), sink_(Sz(w.result_channels)), taps_(Sz(Taps())) {}

  // Row (image n, plane z, row y) of the result.
  void Row(int64_t n, int64_t z, int64_t y) {
    const Axis& ax = w_.axis[2];
    const int64_t places = w_.depthwise ? 1 : static_cast<int64_t>(kTilePixels);
    T* row = w_.result + ((n * w_.axis[0].result + z) * w_.axis[1].result + y) * ax.result * w_.result_channels;
    for (int64_t x = 0; x < ax.result; x += places) {
      const size_t found = Collect(n, z, y, x, std::min(places, ax.result - x));
      if (w_.depthwise) {
        DepthwiseTile<T>(taps_.data(), found, Sz(w_.result_channels), row + x * w_.result_channels);
        continue;
      }
      T* out[kTilePixels];
      for (size_t p = 0; p < kTilePixels; ++p) {
        const int64_t at = x + static_cast<int64_t>(p);
        out[p] = at < ax.result ? row + at * w_.result_channels : sink_.data();
      }
      for (int64_t group = 0; group < w_.groups; ++group) Group(found, group, out);
    }
  }

 private:
  int64_t Taps() const { return w_.axis[0].kernel * w_.axis[1].kernel * w_.axis[2].kernel; }

  // Taps that reach a real cell for at least one of the places.
  size_t Collect(int64_t n, int64_t z, int64_t y, int64_t x, int64_t places) {
    size_t found = 0;
    for (int64_t kz = 0; kz < w_.axis[0].kernel; ++kz) {
      const int64_t sz = w_.axis[0].Source(z, kz);
      if (sz < 0) continue;
      for (int64_t ky = 0; ky < w_.axis[1].kernel; ++ky) {
        const int64_t sy = w_.axis[1].Source(y, ky);
        if (sy < 0) continue;
        const T* line =
            w_.read + ((n * w_.axis[0].operand + sz) * w_.axis[1].operand + sy) * w_.axis[2].operand * w_.read_channels;
        for (int64_t kx = 0; kx < w_.axis[2].kernel; ++kx) {
          ConvTap<T>& tap = taps_[found];
          bool any = false;
          for (size_t p = 0; p < kTilePixels; ++p) {
            const int64_t i = static_cast<int64_t>(p);
            const int64_t sx = i < places ? w_.axis[2].Source(x + i, kx) : -1;
            tap.src[p] = sx >= 0 ? line + sx * w_.read_channels : zeros_.data();
            any = any || sx >= 0;
          }
          if (!any) continue;
          tap.weights = w_.weights + ((kz * w_.axis[1].kernel + ky) * w_.axis[2].kernel + kx) * w_.tap_stride;
          ++found;
        }
      }
    }
    return found;
  }

  void Group(size_t found, int64_t group, T* const* out) {
    if (group == 0) {
      ConvTile<T>(taps_.data(), found, Sz(w_.depth), Sz(w_.width), Sz(w_.weight_stride), out);
      return;
    }
    // Group by group the taps move on by the group's channels.
    moved_ = taps_;
    for (size_t t = 0; t < found; ++t) {
      for (size_t p = 0; p < kTilePixels; ++p) moved_[t].src[p] += group * w_.depth;
      moved_[t].weights += group * w_.group_stride;
    }
    T* to[kTilePixels];
    for (size_t p = 0; p < kTilePixels; ++p) to[p] = out[p] + group * w_.width;
    ConvTile<T>(moved_.data(), found, Sz(w_.depth), Sz(w_.width), Sz(w_.weight_stride), to);
  }

  const Walk<T>& w_;
  std::vector<T> zeros_, sink_;
  std::vector<ConvTap<T>> taps_, moved_;
};

template <typename T>
void RunWalk(KernelContext& ctx, const ConvGeometry& g, const Walk<T>& w) {
  const int64_t rows = g.batch * w.axis[0].result * w.axis[1].result;
  const double cost = g.flops() / 4.0 / static_cast<double>(rows);
  ctx.ParallelFor(rows, cost, [&](int64_t begin, int64_t end) {
    RowWalker<T> walker(w);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t y = r % w.axis[1].result;
      const int64_t image_plane = r / w.axis[1].result;
      walker.Row(image_plane / w.axis[0].result, image_plane % w.axis[0].result, y);
    }
  });
}

template <typename T>
Walk<T> MakeWalk(const ConvGeometry& g, bool backward) {
  Walk<T> w;
  for (size_t i = 0; i < 3; ++i) {
    w.axis[i] = {
        backward ? g.in[i] : g.out[i],
        backward ? g.out[i] : g.in[i],
        g.kernel[i],
        g.stride[i],
        g.dilation[i],
        g.pad_before[i],
        backward};
  }
  w.groups = g.groups;
  w.depthwise = g.depthwise();
  w.depth = backward ? g.group_out() : g.group_in();
  w.width = backward ? g.group_in() : g.group_out();
  w.read_channels = backward ? g.out_channels : g.in_channels;
  w.result_channels = backward ? g.in_channels : g.out_channels;
  w.tap_stride = g.group_in() * g.out_channels;
  return w;
}

// [taps][in / groups][groups][out / groups] -> [taps][groups][out / groups][in / groups].
template <typename T>
void TransposeFilter(const ConvGeometry& g, const T* from, T* to) {
  const int64_t in = g.group_in();
  for (int64_t t = 0; t < g.taps(); ++t) {
    const T* a = from + t * in * g.out_channels;
    T* b = to + t * in * g.out_channels;
    for (int64_t o = 0; o < g.out_channels; ++o) {
      for (int64_t i = 0; i < in; ++i) b[o * in + i] = a[i * g.out_channels + o];
    }
  }
}

template <typename T>
Status Forward(KernelContext& ctx, const ConvGeometry& g, const ConvOperands& v) {
  Walk<T> w = MakeWalk<T>(g, false);
  w.group_stride = g.group_out();
  w.weight_stride = g.out_channels;
  w.read = static_cast<const T*>(v.input);
  w.weights = static_cast<const T*>(v.filter);
  w.result = static_cast<T*>(v.output);
  RunWalk(ctx, g, w);
  return absl::OkStatus();
}

template <typename T>
Status BackwardInput(KernelContext& ctx, const ConvGeometry& g, const ConvOperands& v) {
  Walk<T> w = MakeWalk<T>(g, true);
  Tensor transposed;
  if (w.depthwise) {
    w.weights = static_cast<const T*>(v.filter);
  } else {
    MR_ASSIGN_OR_RETURN(
        transposed, ctx.AllocateTemp(DTypeOf<T>::value, Shape::Vector(g.taps() * g.group_in() * g.out_channels)));
    TransposeFilter(g, static_cast<const T*>(v.filter), transposed.mutable_data<T>());
    w.weights = transposed.data<T>();
  }
  w.group_stride = g.group_out() * g.group_in();
  w.weight_stride = g.group_in();
  w.read = static_cast<const T*>(v.output);
  w.result = static_cast<T*>(v.input);
  RunWalk(ctx, g, w);
  return absl::OkStatus();
}

// First output cell whose tap k lies at or after the first input cell, and one past the last.
struct Range {
  int64_t begin, end;
};
Range ValidOutputs(const ConvGeometry& g, size_t axis, int64_t k) {
  const int64_t shift = g.pad_before[axis] - k * g.dilation[axis];  // input cell = o * stride - shift
  const int64_t s = g.stride[axis];
  const int64_t begin = shift > 0 ? (shift + s - 1) / s : 0;
  const int64_t last = g.in[axis] - 1 + shift;
  const int64_t end = last < 0 ? 0 : std::min(g.out[axis], last / s + 1);
  return {begin, std::max(begin, end)};
}

// Walks every row of pixels that tap (kz, ky, kx) pairs, calling fn(count, x, dy).
template <typename T, typename Fn>
void ForEachRow(const ConvGeometry& g, int64_t tap, const T* input, const T* output, Fn fn) {
  const int64_t k[3] = {tap / (g.kernel[1] * g.kernel[2]), tap / g.kernel[2] % g.kernel[1], tap % g.kernel[2]};
  const Range rz = ValidOutputs(g, 0, k[0]), ry = ValidOutputs(g, 1, k[1]), rx = ValidOutputs(g, 2, k[2]);
  if (rx.begin >= rx.end) return;
  const auto cell = [&](size_t axis, int64_t o) {
    return o * g.stride[axis] - g.pad_before[axis] + k[axis] * g.dilation[axis];
  };
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t z = rz.begin; z < rz.end; ++z) {
      for (int64_t y = ry.begin; y < ry.end; ++y) {
        const int64_t in = ((n * g.in[0] + cell(0, z)) * g.in[1] + cell(1, y)) * g.in[2] + cell(2, rx.begin);
        const int64_t out = ((n * g.out[0] + z) * g.out[1] + y) * g.out[2] + rx.begin;
        fn(Sz(rx.end - rx.begin), input + in * g.in_channels, output + out * g.out_channels);
      }
    }
  }
}

template <typename T>
Status BackwardFilter(KernelContext& ctx, const ConvGeometry& g, const ConvOperands& v) {
  const T* x = static_cast<const T*>(v.input);
  const T* dy = static_cast<const T*>(v.output);
  T* dw = static_cast<T*>(v.filter);
  std::fill(dw, dw + g.taps() * g.group_in() * g.out_channels, T(0));
  const size_t x_step = Sz(g.stride[2] * g.in_channels), dy_step = Sz(g.out_channels);
  if (g.depthwise()) {
    ctx.ParallelFor(g.taps(), g.flops() / 2.0 / static_cast<double>(g.taps()), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        ForEachRow<T>(g, t, x, dy, [&](size_t count, const T* a, const T* b) {
          DepthwiseFilterTile<T>(count, a, x_step, b, dy_step, Sz(g.in_channels), dw + t * g.out_channels);
        });
      }
    });
    return absl::OkStatus();
  }
  const int64_t blocks = (g.group_in() + 3) / 4;
  const int64_t units = g.taps() * g.groups * blocks;
  ctx.ParallelFor(units, g.flops() / 4.0 / static_cast<double>(units), [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t row = u % blocks * 4, group = u / blocks % g.groups, tap = u / blocks / g.groups;
      const size_t rows = Sz(std::min<int64_t>(4, g.group_in() - row));
      T* to = dw + (tap * g.group_in() + row) * g.out_channels + group * g.group_out();
      ForEachRow<T>(g, tap, x + group * g.group_in() + row, dy + group * g.group_out(),
                    [&](size_t count, const T* a, const T* b) {
                      FilterTile<T>(count, a, x_step, rows, b, dy_step, Sz(g.group_out()), to, Sz(g.out_channels));
                    });
    }
  });
  return absl::OkStatus();
}

}  // namespace

template <typename T>
Status DirectConv(KernelContext& ctx, ConvPass pass, const ConvGeometry& g, const ConvOperands& v) {
  switch (pass) {
    case ConvPass::kForward: return Forward<T>(ctx, g, v);
    case ConvPass::kBackwardInput: return BackwardInput<T>(ctx, g, v);
    case ConvPass::kBackwardFilter: return BackwardFilter<T>(ctx, g, v);
  }
  return Internal("unknown convolution pass");
}
template Status DirectConv<float>(KernelContext&, ConvPass, const ConvGeometry&, const ConvOperands&);
template Status DirectConv<double>(KernelContext&, ConvPass, const ConvGeometry&, const ConvOperands&);
template Status DirectConv<int32_t>(KernelContext&, ConvPass, const ConvGeometry&, const ConvOperands&);

}  // namespace millrace
