// SPDX-License-Identifier: Apache-2.0
// BiasAdd and its gradient, for every numeric type: float and the narrow floats through the vector loops, the others
// through plain ones (integers by their size, since sums wrap).
#include <algorithm>
#include <complex>
#include <memory>
#include <type_traits>

#include "kernels/cpu/engine/math_reduce.h"
#include "kernels/cpu/nn/nn_channels.h"
#include "kernels/cpu/nn/nn_norm.h"
#include "kernels/cpu/nn/nn_simd.h"

namespace millrace {
namespace {

// A value seen as [outer][channels][inner]; inner is 1 where channels come last.
struct BiasShape {
  int64_t outer = 1, channels = 0, inner = 1;
};

StatusOr<BiasShape> ShapeOfValue(const Tensor& value, bool channels_first) {
  const int rank = value.rank();
  if (rank < 2) return InvalidArgument("a bias needs a value of rank 2 or more, got shape ", value.shape().ToString());
  BiasShape s;
  const int channel = channels_first ? 1 : rank - 1;
  s.channels = value.dim(channel);
  for (int d = 0; d < rank; ++d) {
    if (d != channel) (d < channel ? s.outer : s.inner) *= value.dim(d);
  }
  return s;
}

bool IsFloat32Like(DType t) { return t == DType::kFloat || IsNarrowFloat(t); }

// Calls fn(T()) with the type that plain loops use.
template <typename Fn>
Status WithPlainType(DType type, Fn fn) {
  if (type == DType::kDouble) return fn(double());
  if (type == DType::kComplex64) return fn(std::complex<float>());
  if (type == DType::kComplex128) return fn(std::complex<double>());
  if (!IsInteger(type)) return Unimplemented("bias of ", DTypeName(type));
  switch (DTypeSize(type)) {
    case 1: return fn(uint8_t());
    case 2: return fn(uint16_t());
    case 4: return fn(uint32_t());
    default: return fn(uint64_t());
  }
}

template <typename T>
T Sum(T a, T b) {
  return static_cast<T>(a + b);
}

Status ReadChannelsFirst(const KernelInit& init, bool* channels_first) {
  *channels_first = false;
  if (!init.HasAttr("data_format")) return absl::OkStatus();
  const StatusOr<std::string> format = init.Attr<std::string>("data_format");
  if (!format.ok()) return format.status();
  *channels_first = *format == "NCHW";
  return absl::OkStatus();
}

class BiasAddKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return ReadChannelsFirst(init, &channels_first_); }
  Status Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(0);
    const Tensor& bias = ctx.input(1);
    MR_ASSIGN_OR_RETURN(const BiasShape s, ShapeOfValue(value, channels_first_));
    if (bias.rank() != 1 || bias.num_elements() != s.channels) {
      return InvalidArgument("bias must have shape [", s.channels, "] for a value of shape ", value.shape().ToString(),
                             ", got ", bias.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.ForwardOrAllocate({0}, 0, value.shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (IsFloat32Like(value.dtype())) return AddFloat(ctx, s, value, bias, out);
    return WithPlainType(value.dtype(), [&](auto zero) -> Status {
      using T = decltype(zero);
      AddPlain<T>(ctx, s, value.data<T>(), bias.data<T>(), out->mutable_data<T>());
      return absl::OkStatus();
    });
  }

 private:
  static Status AddFloat(KernelContext& ctx, const BiasShape& s, const Tensor& value, const Tensor& bias, Tensor* out) {
    MR_ASSIGN_OR_RETURN(const Tensor wide, Widened(ctx, bias));
    const float* b = wide.data<float>();
    const ChannelView view(s.outer, s.channels, s.inner);
    const std::vector<float> repeated = view.Widen(b);
    view.ForBlocks(ctx, 0.2, [&](const ChannelBlock& block) {
      const float* from = ReadBlock(value, block.offset, block.size(), 0);
      float* to = WriteBuffer(out, block.offset, block.size(), 1);
      ShiftRows(from, block.rows, block.cols, &repeated[static_cast<size_t>(block.at)], to);
      FinishWrite(out, block.offset, block.size(), to);
    });
    return absl::OkStatus();
  }

  template <typename T>
  static void AddPlain(KernelContext& ctx, const BiasShape& s, const T* value, const T* bias, T* out) {
    if (s.inner == 1) {
      // Some rows of few channels are one.
      constexpr int64_t kLong = 256;
      const int64_t rows = std::clamp<int64_t>(kLong / s.channels, 1, s.outer), unit = rows * s.channels;
      std::vector<T> repeated(static_cast<size_t>(unit));
      for (int64_t i = 0; i < unit; ++i) repeated[static_cast<size_t>(i)] = bias[i % s.channels];
      const int64_t n = s.outer * s.channels;
      ctx.ParallelFor((n + unit - 1) / unit, static_cast<double>(unit), [&](int64_t begin, int64_t end) {
        for (int64_t at = begin * unit; at < std::min(end * unit, n); at += unit) {
          AddRun(value + at, repeated.data(), std::min(unit, n - at), out + at);
        }
      });
      return;
    }
    ctx.ParallelFor(s.outer * s.channels, static_cast<double>(s.inner), [&](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; ++u) {
        const T* from = value + u * s.inner;
        T* to = out + u * s.inner;
        const T shift = bias[u % s.channels];
        for (int64_t i = 0; i < s.inner; ++i) to[i] = Sum(from[i], shift);
      }
    });
  }
  template <typename T>
  static void AddRun(const T* a, const T* b, int64_t n, T* out) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = Sum(a[i], b[i]);
  }

  bool channels_first_ = false;
};

// The sum over all axes but the channels'.
class BiasAddGradKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    sum_ = FindReducer(ReduceKind::kSum, init.input_type(0));
    if (!sum_) return Unimplemented("no sum of ", DTypeName(init.input_type(0)));
    return ReadChannelsFirst(init, &channels_first_);
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(0);
    MR_ASSIGN_OR_RETURN(const BiasShape s, ShapeOfValue(value, channels_first_));
    MR_ASSIGN_OR_RETURN(Tensor* const out, ctx.AllocateOutput(0, Shape::Vector(s.channels)));
    MR_ASSIGN_OR_RETURN(const Shape seen, Shape::Make({s.outer, s.channels, s.inner}));
    const int32_t axes[] = {0, 2};
    ReducePlan plan;
    MR_RETURN_IF_ERROR(PlanReduction(seen, Tensor::Vector<int32_t>(axes), /*keep_dims=*/false, &plan));
    return Reduce(ctx, *sum_, plan, value, out);
  }

 private:
  std::shared_ptr<const Reducer> sum_;
  bool channels_first_ = false;
};

}  // namespace

void RegisterBiasKernels(KernelRegistry& r) {
  const auto types = Types("FC|i8|i16|i32|i64|u8|u16|u32|u64");
  r.Add<BiasAddKernel>({.op = "BiasAdd", .types = {{"T", types}}});
  r.Add<BiasAddKernel>({.op = "BiasAddV1", .types = {{"T", types}}});
  r.Add<BiasAddGradKernel>({.op = "BiasAddGrad", .types = {{"T", types}}});
}

}  // namespace millrace
