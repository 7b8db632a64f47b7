// SPDX-License-Identifier: Apache-2.0
// Pooling. Every op brings its operands channels-last (and half and bfloat16 to float32), walks the windows, and brings
// the result back.
#include "kernels/cpu/nn/nn_pool.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/engine/strided_copy.h"
#include "kernels/cpu/nn/nn_pool_planes_simd.h"
#include "kernels/cpu/nn/nn_pool_walk.h"

namespace millrace {
namespace {

using namespace pooling;  // NOLINT

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

template <typename T>
void MaxForward(Loop loop, const PoolGeometry& g, const T* x, T* y) {
  if (g.by_lines()) return ForwardByLines(loop, g, x, y, MaxRun<T>);
  Forward(loop, g, [&](const WindowRun& run, int64_t cell, int64_t out) { MaxRun<T>(run, x + cell, y + out); });
}
template <typename T>
void MeanForward(Loop loop, const PoolGeometry& g, const T* x, T* y) {
  if (g.by_lines()) return ForwardByLines(loop, g, x, y, MeanOfWindows<T>);
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
  if (g.by_lines()) return BackwardByLines(loop, g, dx, dy, SpreadToWindows<T>);
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

enum class PoolOp : uint8_t { kMax, kMean, kMaxGrad, kMaxGradGrad, kMeanGrad };

class PoolKernel : public Kernel {
 public:
  explicit PoolKernel(PoolOp op, int sizes_input = -1, const char* format = "NHWC")
      : op_(op), sizes_input_(sizes_input), format_(format) {}

  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(attrs_, ReadWindowAttrs(init, format_, /*spatial_only=*/false));
    return sizes_input_ >= 0 ? absl::OkStatus() : CheckPoolAttrs(attrs_);
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

}  // namespace

void RegisterPoolKernels(KernelRegistry& r) {
  const auto add =
      [&r](const char* op, const char* types, PoolOp what, int sizes_input = -1, const char* format = "NHWC") {
        r.AddFactory({.op = op, .types = {{"T", Types(types)}}, .cost = WindowCost}, [what, sizes_input, format] {
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
  RegisterArgmaxPoolKernels(r);
}

}  // namespace millrace
