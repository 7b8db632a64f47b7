// SPDX-License-Identifier: Apache-2.0
// How pooling kernels go over the windows of images, channels last. A window never is empty: SAME pads by less than a
// window.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/nn/nn_layout.h"
#include "kernels/cpu/nn/nn_pool_simd.h"

namespace millrace::pooling {

inline size_t Sz(int64_t v) { return static_cast<size_t>(v); }

// Channels-last, spatial windows only: planes, rows and columns. Images have one plane.
struct PoolGeometry {
  int64_t batch = 0, channels = 0;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
  int64_t cells() const { return in[0] * in[1] * in[2]; }
  int64_t image() const { return cells() * channels; }
  int64_t window_cells() const { return window_rows() * std::min(kernel[2], in[2]); }
  int64_t rows() const { return out[0] * out[1]; }  // of results, in all planes
  // Of the windows, in all planes.
  int64_t window_rows() const { return std::min(kernel[0], in[0]) * std::min(kernel[1], in[1]); }
  // What a row of results takes, in cells: all cells of each window, or, by lines, the rows of the windows at all
  // columns and then the columns of that line.
  int64_t work_of_windows() const { return out[2] * window_cells(); }
  int64_t work_by_lines() const { return in[2] * (window_rows() + 2) + out[2] * std::min(kernel[2], in[2]); }
  bool by_lines() const { return 3 * work_by_lines() < 2 * work_of_windows(); }
};

// Unimplemented for windows and strides over the batch.
Status CheckPoolAttrs(const WindowAttrs& attrs);
// Geometry and the op's output shape. `depth`: pooling over channels alone is allowed.
Status MakePoolGeometry(const WindowAttrs& attrs, const Shape& input, bool depth, PoolGeometry* g, Shape* pooled);

// ---- other element types than float and double: plain loops ----

template <typename T>
inline constexpr bool kVector = std::is_same_v<T, float> || std::is_same_v<T, double>;

// Calls fn(cell offset, result offset) for every channel of every window of the run.
template <typename Fn>
void ForEachResult(const WindowRun& run, Fn fn) {
  for (size_t w = 0; w < run.windows; ++w) {
    for (size_t c = 0; c < run.channels; ++c) {
      fn(static_cast<int64_t>(w) * run.step + static_cast<int64_t>(c), w * run.channels_stride + c);
    }
  }
}
// The first offset, from cell `at`, whose value is the largest.
template <typename T>
int64_t FirstLargest(const WindowRun& run, const T* image, int64_t at) {
  int64_t best = at + run.offsets[0];
  for (size_t i = 1; i < run.cells; ++i) {
    if (IsAbove(image[at + run.offsets[i]], image[best])) best = at + run.offsets[i];
  }
  return best;
}

// ---- the walk ----

// The real cells of a window along one axis.
struct Span {
  int64_t begin, end;
};
inline Span WindowSpan(const PoolGeometry& g, int axis, int64_t o) {
  const int64_t at = o * g.stride[axis] - g.pad[axis];
  return {std::max<int64_t>(at, 0), std::min(at + g.kernel[axis], g.in[axis])};
}

// Windows of one output row, run by run: those that padding or the border cuts
// alone, the others together.
class RowWalker {
 public:
  explicit RowWalker(const PoolGeometry& g) : g_(g), offsets_(Sz(g.window_cells())) {
    // Columns of windows that lie wholly inside.
    first_ = (g.pad[2] + g.stride[2] - 1) / g.stride[2];
    const int64_t room = g.in[2] + g.pad[2] - g.kernel[2];
    last_ = room < 0 ? 0 : std::min(g.out[2], room / g.stride[2] + 1);
    first_ = std::min(first_, g.out[2]);
    last_ = std::max(last_, first_);
  }
  // Calls fn(run, first cell, column): offsets of the run start at `first
  // cell`, an element of the image.
  template <typename Fn>
  void Row(int64_t row, size_t channels, Fn fn) {
    const Span planes = WindowSpan(g_, 0, row / g_.out[1]), rows = WindowSpan(g_, 1, row % g_.out[1]);
    for (int64_t x = 0; x < g_.out[2];) {
      const int64_t count = x == first_ && last_ > first_ ? last_ - first_ : 1;
      const Span cols = WindowSpan(g_, 2, x);
      size_t n = 0;
      for (int64_t p = 0; p < planes.end - planes.begin; ++p) {
        for (int64_t r = 0; r < rows.end - rows.begin; ++r) {
          for (int64_t c = 0; c < cols.end - cols.begin; ++c) offsets_[n++] = Cell(p, r, c);
        }
      }
      const WindowRun run{offsets_.data(), n, Sz(count), g_.stride[2] * g_.channels, channels, Sz(g_.channels), n};
      fn(run, Cell(planes.begin, rows.begin, cols.begin), x);
      x += count;
    }
  }
  // Calls fn(run, first cell) with the windows' rows at every column of the image, whose results are a line of
  // `channels` each.
  template <typename Fn>
  void Line(int64_t row, size_t channels, Fn fn) {
    const Span planes = WindowSpan(g_, 0, row / g_.out[1]), rows = WindowSpan(g_, 1, row % g_.out[1]);
    size_t n = 0;
    for (int64_t p = 0; p < planes.end - planes.begin; ++p) {
      for (int64_t r = 0; r < rows.end - rows.begin; ++r) offsets_[n++] = Cell(p, r, 0);
    }
    WindowRun run{offsets_.data(), n, Sz(g_.in[2]), g_.channels, channels, channels, 1};
    if (channels == Sz(g_.channels)) {
      run.channels = run.channels_stride = run.windows * channels;
      run.windows = 1;
    }
    fn(run, Cell(planes.begin, rows.begin, 0));
  }

 private:
  int64_t Cell(int64_t plane, int64_t row, int64_t column) const {
    return ((plane * g_.in[1] + row) * g_.in[2] + column) * g_.channels;
  }

  const PoolGeometry& g_;
  std::vector<int64_t> offsets_;
  int64_t first_ = 0, last_ = 0;
};

inline double RowCost(const PoolGeometry& g) {
  const int64_t work = g.by_lines() ? g.work_by_lines() : g.work_of_windows();
  return 0.1 * static_cast<double>(g.channels) * static_cast<double>(work) + 20;
}

// Who runs the units of a walk: the threads of a kernel (OnThreads), or one.
using Units = absl::FunctionRef<void(int64_t begin, int64_t end)>;
using Loop = absl::FunctionRef<void(int64_t n, double cost_per_unit, Units run)>;
inline void OnThisThread(int64_t n, double, Units run) { run(0, n); }
inline auto OnThreads(const KernelContext& ctx) {
  return [&ctx](int64_t n, double cost, Units run) { ctx.ParallelFor(n, cost, run); };
}

// Ops whose results are disjoint by window: any rows in parallel. fn(run, first
// cell, first result), both as elements of the whole tensors.
template <typename Fn>
void Forward(Loop loop, const PoolGeometry& g, Fn fn) {
  loop(g.batch * g.rows(), RowCost(g), [&](int64_t begin, int64_t end) {
    RowWalker walker(g);
    for (int64_t row = begin; row < end; ++row) {
      walker.Row(row % g.rows(), Sz(g.channels), [&](const WindowRun& run, int64_t cell, int64_t x) {
        fn(run, row / g.rows() * g.image() + cell, (row * g.out[2] + x) * g.channels);
      });
    }
  });
}

// A line of an image as an image of its own, with `channels` of its channels.
inline PoolGeometry LineOf(const PoolGeometry& g, int64_t channels) {
  PoolGeometry line;
  line.batch = 1;
  line.channels = channels;
  line.in[2] = g.in[2];
  line.out[2] = g.out[2];
  line.kernel[2] = g.kernel[2];
  line.stride[2] = g.stride[2];
  line.pad[2] = g.pad[2];
  return line;
}

// The same by lines: fn(run, first cell, first result) is called for lines of all rows of the windows, and for windows
// of these lines.
template <typename T, typename Fn>
void ForwardByLines(Loop loop, const PoolGeometry& g, const T* in, T* out, Fn fn) {
  const PoolGeometry line_of = LineOf(g, g.channels);
  loop(g.batch * g.rows(), RowCost(g), [&](int64_t begin, int64_t end) {
    RowWalker down(g), across(line_of);
    std::vector<T> line(Sz(line_of.image()));
    for (int64_t row = begin; row < end; ++row) {
      down.Line(row % g.rows(), Sz(g.channels), [&](const WindowRun& rows, int64_t cell) {
        fn(rows, in + row / g.rows() * g.image() + cell, line.data());
        across.Row(0, Sz(g.channels), [&](WindowRun run, int64_t from, int64_t x) {
          run.divisor *= rows.cells;
          fn(run, line.data() + from, out + (row * g.out[2] + x) * g.channels);
        });
      });
    }
  });
}

// Ops that add into overlapping cells: whole images, or blocks of their channels when images are few. The cells are
// zeroed, then each sees its windows in the same order always. fn(walker, row, channels, first cell, first result) is
// called for the rows of an image in order.
inline constexpr int64_t kChannelBlock = 64;
template <typename T, typename Fn>
void BackwardRows(Loop loop, const PoolGeometry& g, T* dx, Fn fn) {
  const int64_t block = g.batch >= 8 ? g.channels : std::min(g.channels, kChannelBlock);
  const int64_t blocks = (g.channels + block - 1) / block;
  const double cost = RowCost(g) * static_cast<double>(g.rows()) * 2 / static_cast<double>(blocks);
  loop(g.batch * blocks, cost, [&](int64_t begin, int64_t end) {
    RowWalker walker(g);
    for (int64_t u = begin; u < end; ++u) {
      const int64_t n = u / blocks, first = u % blocks * block;
      const int64_t count = std::min(block, g.channels - first);
      const int64_t image = n * g.image() + first;
      if (blocks == 1) {
        std::fill_n(dx + image, g.image(), T(0));
      } else {
        for (int64_t p = 0; p < g.cells(); ++p) std::fill_n(dx + image + p * g.channels, count, T(0));
      }
      for (int64_t y = 0; y < g.rows(); ++y) {
        fn(walker, y, count, image, (n * g.rows() + y) * g.out[2] * g.channels + first);
      }
    }
  });
}

// fn as that of Forward.
template <typename T, typename Fn>
void Backward(Loop loop, const PoolGeometry& g, T* dx, Fn fn) {
  BackwardRows<T>(loop, g, dx, [&](RowWalker& walker, int64_t y, int64_t channels, int64_t image, int64_t result) {
    walker.Row(y, Sz(channels), [&](const WindowRun& run, int64_t cell, int64_t x) {
      fn(run, image + cell, result + x * g.channels);
    });
  });
}

// By lines: fn(run, to, from) is called for windows of a line of zeros, and for lines of all rows of the windows.
template <typename T, typename Fn>
void BackwardByLines(Loop loop, const PoolGeometry& g, T* dx, const T* dy, Fn fn) {
  BackwardRows<T>(loop, g, dx, [&](RowWalker& down, int64_t y, int64_t channels, int64_t image, int64_t result) {
    const PoolGeometry line_of = LineOf(g, channels);
    std::vector<T> line(Sz(line_of.image()));
    down.Line(y, Sz(channels), [&](const WindowRun& rows, int64_t cell) {
      RowWalker(line_of).Row(0, Sz(channels), [&](WindowRun run, int64_t to, int64_t x) {
        run.divisor *= rows.cells;
        run.channels_stride = Sz(g.channels);
        fn(run, line.data() + to, dy + result + x * g.channels);
      });
      fn(rows, dx + image + cell, line.data());
    });
  });
}

// ---- element types ----

// Calls fn(T()) for the element type; half and bfloat16 have become float32
// before.
template <typename Fn>
Status WithRealType(DType type, Fn fn) {
  switch (type) {
    case DType::kFloat: return fn(float());
    case DType::kDouble: return fn(double());
    case DType::kInt8: return fn(int8_t());
    case DType::kInt16: return fn(int16_t());
    case DType::kInt32: return fn(int32_t());
    case DType::kInt64: return fn(int64_t());
    case DType::kUInt8: return fn(uint8_t());
    case DType::kUInt16: return fn(uint16_t());
    case DType::kUInt32: return fn(uint32_t());
    case DType::kUInt64: return fn(uint64_t());
    default: return Unimplemented("pooling of ", DTypeName(type));
  }
}

}  // namespace millrace::pooling
