// SPDX-License-Identifier: Apache-2.0
// Pooling. Every op brings its operands channels-last (and half and bfloat16 to
// float32), walks the windows, and brings the result back. A window never is
// empty: SAME pads by less than a window.
#include "kernels/cpu/nn/nn_pool.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "base/checked.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/strided_copy.h"
#include "kernels/cpu/nn/nn_layout.h"
#include "kernels/cpu/nn/nn_pool_planes_simd.h"
#include "kernels/cpu/nn/nn_pool_simd.h"

namespace millrace {
namespace {

size_t Sz(int64_t v) { return static_cast<size_t>(v); }

// Channels-last, spatial windows only: planes, rows and columns. Images have
// one plane.
struct PoolGeometry {
  int64_t batch = 0, channels = 0;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
  int64_t cells() const { return in[0] * in[1] * in[2]; }
  int64_t image() const { return cells() * channels; }
  int64_t window_cells() const {
    return std::min(kernel[0], in[0]) * std::min(kernel[1], in[1]) * std::min(kernel[2], in[2]);
  }
  int64_t rows() const { return out[0] * out[1]; }  // of results, in all planes
};

// ---- other element types than float and double: plain loops ----

template <typename T>
constexpr bool kVector = std::is_same_v<T, float> || std::is_same_v<T, double>;

// Calls fn(cell offset, result offset) for every channel of every window of the
// run.
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

template <typename T>
void MaxRun(const WindowRun& run, const T* image, T* out) {
  if constexpr (kVector<T>) {
    MaxOfWindows<T>(run, image, out);
  } else {
    ForEachResult(run, [&](int64_t at, size_t to) { out[to] = image[FirstLargest(run, image, at)]; });
  }
}
template <typename T>
void ScatterRun(const WindowRun& run, const T* image, T* into, const T* g) {
  if constexpr (kVector<T>) {
    ScatterToMax<T>(run, image, into, g);
  } else {
    using U = std::make_unsigned_t<T>;
    ForEachResult(run, [&](int64_t at, size_t to) {
      T& cell = into[FirstLargest(run, image, at)];
      cell = static_cast<T>(static_cast<U>(cell) + static_cast<U>(g[to]));
    });
  }
}
template <typename T>
void GatherRun(const WindowRun& run, const T* image, const T* from, const T* y, T* out) {
  if constexpr (kVector<T>) {
    GatherFromMax<T>(run, image, from, y, out);
  } else {
    ForEachResult(run, [&](int64_t at, size_t to) {
      size_t i = 0;
      while (i < run.cells && image[at + run.offsets[i]] != y[to]) ++i;
      out[to] = i < run.cells ? from[at + run.offsets[i]] : T(0);
    });
  }
}

// ---- the walk ----

// The real cells of a window along one axis.
struct Span {
  int64_t begin, end;
};
Span WindowSpan(const PoolGeometry& g, int axis, int64_t o) {
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
      const WindowRun run{offsets_.data(), n, Sz(count), g_.stride[2] * g_.channels, channels, Sz(g_.channels)};
      fn(run, Cell(planes.begin, rows.begin, cols.begin), x);
      x += count;
    }
  }

 private:
  int64_t Cell(int64_t plane, int64_t row, int64_t column) const {
    return ((plane * g_.in[1] + row) * g_.in[2] + column) * g_.channels;
  }

  const PoolGeometry& g_;
  std::vector<int64_t> offsets_;
  int64_t first_ = 0, last_ = 0;
};

double RowCost(const PoolGeometry& g) {
  return 0.1 * static_cast<double>(g.out[2]) * static_cast<double>(g.channels) * static_cast<double>(g.window_cells()) +
         20;
}

// Who runs the units of a walk: the threads of a kernel (OnThreads), or one.
using Units = absl::FunctionRef<void(int64_t begin, int64_t end)>;
using Loop = absl::FunctionRef<void(int64_t n, double cost_per_unit, Units run)>;
void OnThisThread(int64_t n, double, Units run) { run(0, n); }
auto OnThreads(const KernelContext& ctx) {
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

// Ops that add into overlapping cells: whole images, or blocks of their
// channels when images are few. The cells are zeroed, then each sees its
// windows in the same order always. fn as above.
constexpr int64_t kChannelBlock = 64;
template <typename T, typename Fn>
void Backward(Loop loop, const PoolGeometry& g, T* dx, Fn fn) {
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
        walker.Row(y, Sz(count), [&](const WindowRun& run, int64_t cell, int64_t x) {
          fn(run, image + cell, ((n * g.rows() + y) * g.out[2] + x) * g.channels + first);
        });
      }
    }
  });
}

template <typename T>
void MaxForward(Loop loop, const PoolGeometry& g, const T* x, T* y) {
  Forward(loop, g, [&](const WindowRun& run, int64_t cell, int64_t out) { MaxRun<T>(run, x + cell, y + out); });
}
template <typename T>
void MeanForward(Loop loop, const PoolGeometry& g, const T* x, T* y) {
  Forward(loop, g, [&](const WindowRun& run, int64_t cell, int64_t out) { MeanOfWindows<T>(run, x + cell, y + out); });
}
template <typename T>
void MaxBackward(Loop loop, const PoolGeometry& g, const T* x, const T* dy, T* dx) {
  Backward<T>(loop, g, dx, [&](const WindowRun& run, int64_t cell, int64_t out) {
    ScatterRun<T>(run, x + cell, dx + cell, dy + out);
  });
}
template <typename T>
void MaxSecond(Loop loop, const PoolGeometry& g, const T* x, const T* y, const T* grad, T* to) {
  Forward(loop, g, [&](const WindowRun& run, int64_t cell, int64_t out) {
    GatherRun<T>(run, x + cell, grad + cell, y + out, to + out);
  });
}
template <typename T>
void MeanBackward(Loop loop, const PoolGeometry& g, const T* dy, T* dx) {
  Backward<T>(loop, g, dx, [&](const WindowRun& run, int64_t cell, int64_t out) {
    SpreadToWindows<T>(run, dx + cell, dy + out);
  });
}
// The largest of every `k` neighbouring channels.
template <typename T>
void MaxOverChannels(KernelContext& ctx, int64_t n, int64_t k, const T* x, T* y) {
  ctx.ParallelFor(n, static_cast<double>(k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      y[i] = x[i * k];
      for (int64_t c = 1; c < k; ++c) y[i] = Combine<RowOp::kMax>(y[i], x[i * k + c]);
    }
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

// ---- kernels ----

enum class PoolOp : uint8_t { kMax, kMean, kMaxGrad, kMaxGradGrad, kMeanGrad };

class PoolKernel : public Kernel {
 public:
  explicit PoolKernel(PoolOp op, int sizes_input = -1, const char* format = "NHWC")
      : op_(op), sizes_input_(sizes_input), format_(format) {}

  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(attrs_, ReadWindowAttrs(init, format_, /*spatial_only=*/false));
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    WindowAttrs attrs = attrs_;
    if (sizes_input_ >= 0) MR_RETURN_IF_ERROR(ReadSizes(ctx, &attrs));
    MR_ASSIGN_OR_RETURN(const Shape input, InputShape(ctx));
    PoolGeometry g;
    Shape pooled;
    MR_RETURN_IF_ERROR(MakePoolGeometry(attrs, input, op_ == PoolOp::kMax, &g, &pooled));
    const bool backward = op_ == PoolOp::kMaxGrad || op_ == PoolOp::kMeanGrad;
    MR_RETURN_IF_ERROR(CheckShapes(ctx, input, pooled));
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, backward ? input : pooled));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (pooled.num_elements() == 0) {
      std::memset(out->mutable_raw(), 0, out->TotalBytes());
      return absl::OkStatus();
    }
    return Run(ctx, attrs, g, out);
  }

  // Geometry and the op's output shape. `depth`: pooling over channels alone is
  // allowed.
  static Status MakePoolGeometry(const WindowAttrs& attrs, const Shape& input, bool depth, PoolGeometry* g,
                                 Shape* pooled) {
    const ImageLayout& layout = attrs.layout;
    if (input.rank() != layout.rank) {
      return InvalidArgument("pooling wants a tensor of rank ", layout.rank, ", got shape ", input.ToString());
    }
    const size_t channel = Sz(layout.channel);
    if (attrs.ksize[0] != 1 || attrs.strides[0] != 1) return Unimplemented("pooling over the batch is not supported");
    std::vector<int64_t> out(input.dims().begin(), input.dims().end());
    g->batch = input.dim(0);
    g->channels = input.dim(layout.channel);
    const int first = layout.first_spatial;
    if (attrs.ksize[channel] != 1 || attrs.strides[channel] != 1) {
      const int64_t k = attrs.ksize[channel];
      if (!depth || layout.rank != 4 || attrs.ksize[Sz(first)] != 1 || attrs.ksize[Sz(first + 1)] != 1 ||
          attrs.strides[Sz(first)] != 1 || attrs.strides[Sz(first + 1)] != 1) {
        return Unimplemented(
            "pooling works over rows and columns, or "
            "(MaxPool) over channels alone");
      }
      if (attrs.strides[channel] != k || g->channels % k != 0) {
        return Unimplemented(
            "pooling over channels wants a window that is its "
            "own stride and divides the ",
            g->channels, " channels");
      }
      out[channel] = g->channels / k;
    }
    for (int i = 0; i < layout.num_spatial(); ++i) {
      const int axis = 3 - layout.num_spatial() + i;
      g->in[axis] = input.dim(first + i);
      g->kernel[axis] = attrs.ksize[Sz(first + i)];
      g->stride[axis] = attrs.stride(i);
      MR_ASSIGN_OR_RETURN(const WindowExtent w, attrs.Spatial(i, g->in[axis], g->kernel[axis]));
      g->out[axis] = w.output;
      g->pad[axis] = w.pad_before;
      out[Sz(first + i)] = w.output;
    }
    MR_ASSIGN_OR_RETURN(*pooled, Shape::Make(absl::MakeConstSpan(out)));
    return absl::OkStatus();
  }

 private:
  Status ReadSizes(KernelContext& ctx, WindowAttrs* attrs) const {
    for (int i = 0; i < 2; ++i) {
      const Tensor& t = ctx.input(sizes_input_ + i);
      if (t.rank() != 1 || t.num_elements() != 4) {
        return InvalidArgument(i == 0 ? "ksize" : "strides", " must have 4 elements, got shape ", t.shape().ToString());
      }
      std::vector<int64_t>& list = i == 0 ? attrs->ksize : attrs->strides;
      MR_ASSIGN_OR_RETURN(list, t.IntValues());
    }
    return CheckWindowAttrs(attrs, /*spatial_only=*/false);
  }

  StatusOr<Shape> InputShape(KernelContext& ctx) const {
    if (op_ != PoolOp::kMeanGrad) return ctx.input(0).shape();
    const Tensor& sizes = ctx.input(0);
    const int rank = attrs_.layout.rank;
    if (sizes.rank() != 1 || sizes.num_elements() != rank) {
      return InvalidArgument("orig_input_shape must have ", rank, " elements, got shape ", sizes.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, sizes.IntValues());
    return Shape::Make(absl::MakeConstSpan(dims));
  }

  Status CheckShapes(KernelContext& ctx, const Shape& input, const Shape& pooled) const {
    const auto same = [&ctx](int i, const Shape& want, absl::string_view name) -> Status {
      if (ctx.input(i).shape() == want) return absl::OkStatus();
      return InvalidArgument(name, " must have shape ", want.ToString(), ", got ", ctx.input(i).shape().ToString());
    };
    switch (op_) {
      case PoolOp::kMeanGrad: return same(1, pooled, "grad");
      case PoolOp::kMaxGrad: MR_RETURN_IF_ERROR(same(1, pooled, "orig_output")); return same(2, pooled, "grad");
      case PoolOp::kMaxGradGrad: MR_RETURN_IF_ERROR(same(1, pooled, "orig_output")); return same(2, input, "grad");
      default: return absl::OkStatus();
    }
  }

  Status Run(KernelContext& ctx, const WindowAttrs& attrs, const PoolGeometry& g, Tensor* out) const {
    const bool narrow = IsNarrowFloat(out->dtype());
    if (attrs.layout.channels_first() && !narrow && attrs.ksize[Sz(attrs.layout.channel)] == 1) {
      return WithRealType(out->dtype(), [&](auto zero) -> Status {
        using T = decltype(zero);
        if constexpr (kVector<T>) {
          if (g.in[0] == 1 && op_ == PoolOp::kMax) return RunInPlace<T>(ctx, g, MaxOfPlane<T>, out);
          if (g.in[0] == 1 && op_ == PoolOp::kMean) return RunInPlace<T>(ctx, g, MeanOfPlane<T>, out);
        }
        return RunPlanes<T>(ctx, g, out);
      });
    }
    Tensor operand[3];
    for (int i = op_ == PoolOp::kMeanGrad ? 1 : 0; i < std::min(ctx.num_inputs(), 3); ++i) {
      if (op_ == PoolOp::kMax || op_ == PoolOp::kMean ? i > 0 : false) break;
      MR_ASSIGN_OR_RETURN(operand[i], ToChannelsLast(ctx, ctx.input(i), attrs.layout));
      MR_ASSIGN_OR_RETURN(operand[i], Widened(ctx, operand[i]));
    }
    Tensor result = *out;
    if (narrow || attrs.layout.channels_first()) {
      MR_ASSIGN_OR_RETURN(const Shape shape, ChannelsLastShape(out->shape(), attrs.layout));
      MR_ASSIGN_OR_RETURN(result, ctx.AllocateTemp(narrow ? DType::kFloat : out->dtype(), shape));
    }
    MR_RETURN_IF_ERROR(WithRealType(result.dtype(), [&](auto zero) -> Status {
      using T = decltype(zero);
      return RunTyped<T>(ctx, attrs, g, operand, &result);
    }));
    if (narrow) {
      if (!attrs.layout.channels_first()) {
        NarrowInto(ctx, result, out);
        return absl::OkStatus();
      }
      MR_ASSIGN_OR_RETURN(Tensor small, ctx.AllocateTemp(out->dtype(), result.shape()));
      NarrowInto(ctx, result, &small);
      result = std::move(small);
    }
    if (attrs.layout.channels_first()) FromChannelsLast(ctx, result, attrs.layout, out);
    return absl::OkStatus();
  }

  template <typename T>
  Status RunTyped(KernelContext& ctx, const WindowAttrs& attrs, const PoolGeometry& g, const Tensor* in,
                  Tensor* out) const {
    T* to = out->mutable_data<T>();
    const int64_t depth = attrs.ksize[Sz(attrs.layout.channel)];
    if (depth > 1) {
      MaxOverChannels<T>(ctx, out->num_elements(), depth, in[0].data<T>(), to);
      return absl::OkStatus();
    }
    const T* const from[3] = {in[0].data<T>(), in[1].data<T>(), in[2].data<T>()};
    return Walk<T>(OnThreads(ctx), g, from, to);
  }

  template <typename T>
  Status Walk(Loop loop, const PoolGeometry& g, const T* const* in, T* to) const {
    switch (op_) {
      case PoolOp::kMax: MaxForward<T>(loop, g, in[0], to); return absl::OkStatus();
      case PoolOp::kMaxGrad: MaxBackward<T>(loop, g, in[0], in[2], to); return absl::OkStatus();
      case PoolOp::kMaxGradGrad: MaxSecond<T>(loop, g, in[0], in[1], in[2], to); return absl::OkStatus();
      default: break;
    }
    if constexpr (kVector<T>) {
      if (op_ == PoolOp::kMean) {
        MeanForward<T>(loop, g, in[0], to);
      } else {
        MeanBackward<T>(loop, g, in[1], to);
      }
      return absl::OkStatus();
    }
    return Unimplemented("average pooling of integers");
  }

  // The elements of one channel of input i, 0 when the op does not read it, or
  // (3) of the output.
  int64_t PlaneOf(const PoolGeometry& g, int i) const {
    const int64_t cells = g.cells(), results = g.rows() * g.out[2];
    switch (op_) {
      case PoolOp::kMax:
      case PoolOp::kMean: return i == 0 ? cells : i == 3 ? results : 0;
      case PoolOp::kMaxGrad: return i == 2 ? results : i == 1 ? 0 : cells;
      case PoolOp::kMaxGradGrad: return i == 1 || i == 3 ? results : cells;
      default: return i == 1 ? results : i == 3 ? cells : 0;
    }
  }

  // Channels first, forward: planes are pooled where they lie.
  template <typename T>
  static Status RunInPlace(KernelContext& ctx, const PoolGeometry& g,
                           void (*pool)(const PlaneAxis&, const PlaneAxis&, const T*, T*, T*), Tensor* out) {
    const auto axis = [&g](int i) { return PlaneAxis{g.in[i], g.out[i], g.kernel[i], g.stride[i], g.pad[i]}; };
    const PlaneAxis rows = axis(1), columns = axis(2);
    const T* const from = ctx.input(0).data<T>();
    T* const to = out->mutable_data<T>();
    const int64_t results = rows.out * columns.out;
    const double cost = 20 + 0.15 * static_cast<double>(g.cells()) + 0.1 * static_cast<double>(results * g.kernel[2]);
    ctx.ParallelFor(g.batch * g.channels, cost, [&](int64_t begin, int64_t end) {
      std::vector<T> line(Sz(columns.in));
      for (int64_t i = begin; i < end; ++i) pool(rows, columns, from + i * g.cells(), line.data(), to + i * results);
    });
    return absl::OkStatus();
  }

  // Channels first: a block of channels of one image is turned around, pooled
  // and turned back while it is in cache.
  template <typename T>
  Status RunPlanes(KernelContext& ctx, const PoolGeometry& g, Tensor* out) const {
    constexpr int64_t kBlock = 16;
    constexpr DType kType = DTypeOf<T>::value;
    const int64_t blocks = (g.channels + kBlock - 1) / kBlock;
    int64_t scratch = 0;
    for (int i = 0; i < 4; ++i) scratch += PlaneOf(g, i) * kBlock;
    MR_ASSIGN_OR_RETURN(const Shape scratch_shape, Shape::Make({scratch}));
    absl::Mutex mu;
    Status status;
    const auto fail = [&](const Status& s) {
      const absl::MutexLock lock(&mu);
      if (status.ok()) status = s;
    };
    const double cost =
        RowCost(g) * static_cast<double>(g.rows()) / static_cast<double>(blocks) + static_cast<double>(scratch) * 0.3;
    ctx.ParallelFor(g.batch * blocks, cost, [&](int64_t begin, int64_t end) {
      StatusOr<Tensor> memory = ctx.AllocateTemp(kType, scratch_shape);
      if (!memory.ok()) return fail(memory.status());
      for (int64_t u = begin; u < end; ++u) {
        const int64_t n = u / blocks, first = u % blocks * kBlock;
        PoolGeometry part = g;
        part.batch = 1;
        part.channels = std::min(kBlock, g.channels - first);
        T* at = memory->mutable_data<T>();
        const T* in[3] = {};
        for (int i = 0; i < 3; ++i) {
          const int64_t plane = PlaneOf(g, i);
          if (plane == 0) continue;
          const T* const from = ctx.input(i).data<T>() + (n * g.channels + first) * plane;
          Turn(from, part.channels, plane, at);
          in[i] = at;
          at += plane * kBlock;
        }
        const Status s = Walk<T>(OnThisThread, part, in, at);
        if (!s.ok()) return fail(s);
        const int64_t plane = PlaneOf(g, 3);
        Turn<T>(at, plane, part.channels, out->mutable_data<T>() + (n * g.channels + first) * plane);
      }
    });
    return status;
  }

  // From [rows][columns] to [columns][rows], on this thread.
  template <typename T>
  static void Turn(const T* from, int64_t rows, int64_t columns, T* to) {
    const CopyDim dims[] = {{columns, rows, 1}, {rows, 1, columns}};
    StridedCopy(nullptr, DTypeOf<T>::value, to, from, dims);
  }

  const PoolOp op_;
  const int sizes_input_;
  const char* const format_;
  WindowAttrs attrs_;
};

// ---- with the places of the maxima ----

template <typename T>
void MaxAndPlace(KernelContext& ctx, const PoolGeometry& g, bool with_batch, const T* x, T* y, int64_t* place) {
  Forward(OnThreads(ctx), g, [&](const WindowRun& run, int64_t cell, int64_t out) {
    const int64_t base = with_batch ? cell : cell % g.image();
    ForEachResult(run, [&](int64_t at, size_t to) {
      const int64_t best = FirstLargest(run, x + cell, at);
      y[out + static_cast<int64_t>(to)] = x[cell + best];
      place[out + static_cast<int64_t>(to)] = base + best;
    });
  });
}

class MaxPoolWithArgmaxKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(attrs_, ReadWindowAttrs(init, "NHWC", /*spatial_only=*/false));
    MR_ASSIGN_OR_RETURN(with_batch_, init.Attr<bool>("include_batch_in_index"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    PoolGeometry g;
    Shape pooled;
    MR_RETURN_IF_ERROR(PoolKernel::MakePoolGeometry(attrs_, ctx.input(0).shape(), false, &g, &pooled));
    if (ctx.input(0).num_elements() == 0) {
      return InvalidArgument("there is no place of a maximum in an empty input, got ", ctx.input(0).shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, pooled));
    MR_ASSIGN_OR_RETURN(Tensor* const argmax, ctx.AllocateOutput(1, pooled));
    if (out->num_elements() == 0) return absl::OkStatus();
    const bool narrow_index = argmax->dtype() == DType::kInt32;
    if (narrow_index && ctx.input(0).num_elements() > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("int32 cannot index an input of ", ctx.input(0).num_elements(), " elements");
    }
    MR_ASSIGN_OR_RETURN(const Tensor x, Widened(ctx, ctx.input(0)));
    Tensor y = *out, place = *argmax;
    if (IsNarrowFloat(out->dtype())) {
      MR_ASSIGN_OR_RETURN(y, ctx.AllocateTemp(DType::kFloat, pooled));
    }
    if (narrow_index) {
      MR_ASSIGN_OR_RETURN(place, ctx.AllocateTemp(DType::kInt64, pooled));
    }
    MR_RETURN_IF_ERROR(WithRealType(x.dtype(), [&](auto zero) -> Status {
      using T = decltype(zero);
      MaxAndPlace<T>(ctx, g, with_batch_, x.data<T>(), y.mutable_data<T>(), place.mutable_data<int64_t>());
      return absl::OkStatus();
    }));
    if (IsNarrowFloat(out->dtype())) NarrowInto(ctx, y, out);
    if (narrow_index) {
      std::transform(place.data<int64_t>(), place.data<int64_t>() + place.num_elements(),
                     argmax->mutable_data<int32_t>(), [](int64_t v) { return static_cast<int32_t>(v); });
    }
    return absl::OkStatus();
  }

 private:
  WindowAttrs attrs_;
  bool with_batch_ = false;
};

class MaxPoolGradWithArgmaxKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(attrs_, ReadWindowAttrs(init, "NHWC", /*spatial_only=*/false));
    MR_ASSIGN_OR_RETURN(with_batch_, init.Attr<bool>("include_batch_in_index"));
    second_ = init.op.name == "MaxPoolGradGradWithArgmax";
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Shape& shape = ctx.input(0).shape();
    PoolGeometry g;
    Shape pooled;
    MR_RETURN_IF_ERROR(PoolKernel::MakePoolGeometry(attrs_, shape, false, &g, &pooled));
    if (second_) return Gather(ctx, g, pooled);
    for (int i = 1; i < 3; ++i) {
      if (!(ctx.input(i).shape() == pooled)) {
        return InvalidArgument(i == 1 ? "grad" : "argmax", " must have shape ", pooled.ToString(), ", got ",
                               ctx.input(i).shape().ToString());
      }
    }
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, shape));
    MR_ASSIGN_OR_RETURN(const Tensor grad, Widened(ctx, ctx.input(1)));
    Tensor sum = *out;
    if (IsNarrowFloat(out->dtype())) {
      MR_ASSIGN_OR_RETURN(sum, ctx.AllocateTemp(DType::kFloat, shape));
    }
    if (sum.num_elements() > 0) std::memset(sum.mutable_raw(), 0, sum.TotalBytes());
    MR_RETURN_IF_ERROR(WithRealType(sum.dtype(), [&](auto zero) -> Status {
      using T = decltype(zero);
      if (ctx.input_dtype(2) == DType::kInt32) return Scatter<T, int32_t>(g, grad, ctx.input(2), &sum);
      return Scatter<T, int64_t>(g, grad, ctx.input(2), &sum);
    }));
    if (IsNarrowFloat(out->dtype())) NarrowInto(ctx, sum, out);
    return absl::OkStatus();
  }

 private:
  template <typename T, typename Index>
  Status Scatter(const PoolGeometry& g, const Tensor& grad, const Tensor& argmax, Tensor* sum) const {
    const int64_t per_image = g.rows() * g.out[2] * g.channels;
    const int64_t limit = with_batch_ ? sum->num_elements() : g.image();
    for (int64_t i = 0; i < grad.num_elements(); ++i) {
      const int64_t at = argmax.data<Index>()[i];
      if (!InRange(at, limit)) return InvalidArgument("argmax[", i, "] = ", at, " is outside [0, ", limit, ")");
      T& cell = sum->mutable_data<T>()[at + (with_batch_ ? 0 : i / per_image * g.image())];
      if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        cell = static_cast<T>(static_cast<U>(cell) + static_cast<U>(grad.data<T>()[i]));
      } else {
        cell += grad.data<T>()[i];
      }
    }
    return absl::OkStatus();
  }

  // The second derivative takes from where the first one puts.
  Status Gather(KernelContext& ctx, const PoolGeometry& g, const Shape& pooled) const {
    const Tensor &grad = ctx.input(1), &argmax = ctx.input(2);
    if (grad.shape() != ctx.input(0).shape() || argmax.shape() != pooled) {
      return InvalidArgument("grad must have the input's shape ", ctx.input(0).shape().ToString(), " and argmax ",
                             pooled.ToString(), ", got ", grad.shape().ToString(), " and ", argmax.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, pooled));
    if (out->num_elements() == 0) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> places, argmax.IntValues());
    const int64_t per_image = g.rows() * g.out[2] * g.channels, limit = with_batch_ ? grad.num_elements() : g.image();
    const size_t size = DTypeSize(grad.dtype());
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      const int64_t at = places[Sz(i)];
      if (!InRange(at, limit)) return InvalidArgument("argmax[", i, "] = ", at, " is outside [0, ", limit, ")");
      const int64_t from = at + (with_batch_ ? 0 : i / per_image * g.image());
      std::memcpy(static_cast<char*>(out->mutable_raw()) + Sz(i) * size,
                  static_cast<const char*>(grad.raw()) + Sz(from) * size, size);
    }
    return absl::OkStatus();
  }

  WindowAttrs attrs_;
  bool with_batch_ = false, second_ = false;
};

}  // namespace

void RegisterPoolKernels(KernelRegistry& r) {
  const auto add =
      [&r](const char* op, const char* types, PoolOp what, int sizes_input = -1, const char* format = "NHWC") {
        r.AddFactory({.op = op, .types = {{"T", Types(types)}}}, [what, sizes_input, format] {
          return std::make_unique<PoolKernel>(what, sizes_input, format);
        });
      };
  add("MaxPool3D", "REAL", PoolOp::kMax, -1, "NDHWC");
  add("MaxPool3DGrad", "REAL", PoolOp::kMaxGrad, -1, "NDHWC");
  add("MaxPool3DGradGrad", "REAL", PoolOp::kMaxGradGrad, -1, "NDHWC");
  add("AvgPool3D", "FLT", PoolOp::kMean, -1, "NDHWC");
  add("AvgPool3DGrad", "FLT", PoolOp::kMeanGrad, -1, "NDHWC");
  add("MaxPool", "REAL", PoolOp::kMax);
  add("MaxPoolV2", "REAL", PoolOp::kMax, 1);
  add("MaxPoolGrad", "REAL", PoolOp::kMaxGrad);
  add("MaxPoolGradV2", "REAL", PoolOp::kMaxGrad, 3);
  add("MaxPoolGradGrad", "REAL", PoolOp::kMaxGradGrad);
  add("MaxPoolGradGradV2", "REAL", PoolOp::kMaxGradGrad, 3);
  add("AvgPool", "FLT", PoolOp::kMean);
  add("AvgPoolGrad", "FLT", PoolOp::kMeanGrad);
  r.Add<MaxPoolWithArgmaxKernel>({.op = "MaxPoolWithArgmax", .types = {{"T", Types("REAL")}}});
  r.Add<MaxPoolGradWithArgmaxKernel>({.op = "MaxPoolGradWithArgmax", .types = {{"T", Types("REAL")}}});
  r.Add<MaxPoolGradWithArgmaxKernel>({.op = "MaxPoolGradGradWithArgmax", .types = {{"T", Types("REAL")}}});
}

}  // namespace millrace
