// SPDX-License-Identifier: Apache-2.0
// CPU kernels: sums, products and matrix products of quantized numbers, activations, bias. Zero is some integer of each
// operand; what it is follows from the operand's range.
#include "kernels/cpu/elementwise/elementwise_broadcast.h"
#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/engine/linalg_gemm.h"
#include "kernels/cpu/quantize/quantize_kernels.h"
#include "kernels/cpu/quantize/quantize_range.h"

namespace millrace {
namespace {

// out = fn(x, y) with broadcasting.
template <typename A, typename B, typename Fn>
Status Broadcast(KernelContext& ctx, const Fn& fn) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  MR_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(a.shape(), b.shape()));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const BroadcastPlan plan({&a.shape(), &b.shape()}, shape);
  const int64_t inner = plan.inner(), step_a = plan.Moves(0) ? 1 : 0, step_b = plan.Moves(1) ? 1 : 0;
  int32_t* y = out->mutable_data<int32_t>();
  ctx.ParallelFor(plan.rows(), 10 * static_cast<double>(inner), [&](int64_t begin, int64_t end) {
    BroadcastPlan::Cursor row(plan, begin);
    for (int64_t r = begin; r < end; ++r, row.Next()) {
      const A* pa = a.data<A>() + row.offset(0);
      const B* pb = b.data<B>() + row.offset(1);
      for (int64_t i = 0; i < inner; ++i) y[r * inner + i] = fn(pa[i * step_a], pb[i * step_b]);
    }
  });
  return absl::OkStatus();
}

Status CheckNotEmpty(FloatRange x, FloatRange y) {
  if (!(x.max > x.min)) return InvalidArgument("max_x must be larger than min_x.");
  if (!(y.max > y.min)) return InvalidArgument("max_y must be larger than min_y.");
  return absl::OkStatus();
}

// An operand's 8 bits in the range of a sum: a whole number of its steps for each of theirs, or exact for a single one.
class Stretched {
 public:
  Stretched(const Tensor& t, bool exact, FloatRange from, FloatRange to) {
    const ToFloat<uint8_t> value(from);
    if (exact) {
      first_ = Quantized<int32_t>(value(*t.data<uint8_t>()), to);
      return;
    }
    first_ = UnclampedQuantized<int32_t>(value(0), to);
    step_ = UnclampedQuantized<int32_t>(value(1), to) - first_;
  }
  int64_t operator()(uint8_t v) const {
    return std::clamp(first_ + step_ * v, kLowestOf<int32_t>, kHighestOf<int32_t>);
  }

 private:
  int64_t first_ = 0, step_ = 0;
};

Status Add(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const FloatRange x, ReadRange(ctx, 2));
  MR_ASSIGN_OR_RETURN(const FloatRange y, ReadRange(ctx, 4));
  MR_RETURN_IF_ERROR(CheckNotEmpty(x, y));
  const FloatRange range = SumRange(x, y, 14);
  const bool one_x = ctx.input(0).num_elements() == 1, one_y = ctx.input(1).num_elements() == 1;
  const Stretched of_x(ctx.input(0), one_x, x, range), of_y(ctx.input(1), one_y && !one_x, y, range);
  MR_RETURN_IF_ERROR((Broadcast<uint8_t, uint8_t>(ctx, [&](uint8_t a, uint8_t b) {
    return static_cast<int32_t>(std::clamp(of_x(a) + of_y(b), kLowestOf<int32_t>, kHighestOf<int32_t>));
  })));
  return OutputRange(ctx, 1, range);
}

int32_t ZeroOf(FloatRange r, bool is_signed) {
  const int64_t zero = is_signed ? UnclampedQuantized<int8_t>(0, r) : UnclampedQuantized<uint8_t>(0, r);
  return static_cast<int32_t>(std::clamp(zero, kLowestOf<int32_t>, kHighestOf<int32_t>));
}

// Wraps.
int32_t Product(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}
int32_t Difference(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}

Status Mul(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const FloatRange x, ReadRange(ctx, 2));
  MR_ASSIGN_OR_RETURN(const FloatRange y, ReadRange(ctx, 4));
  MR_RETURN_IF_ERROR(CheckNotEmpty(x, y));
  const int32_t zero_x = ZeroOf(x, false), zero_y = ZeroOf(y, false);
  MR_RETURN_IF_ERROR((Broadcast<uint8_t, uint8_t>(
      ctx, [=](uint8_t a, uint8_t b) { return Product(Difference(a, zero_x), Difference(b, zero_y)); })));
  return OutputRange(ctx, 1, ProductRange<uint8_t, uint8_t>(x, y));
}

class MatMulKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(transpose_a_, init.Attr<bool>("transpose_a"));
    MR_ASSIGN_OR_RETURN(transpose_b_, init.Attr<bool>("transpose_b"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    MR_ASSIGN_OR_RETURN(const FloatRange range_a, ReadRange(ctx, 2));
    MR_ASSIGN_OR_RETURN(const FloatRange range_b, ReadRange(ctx, 4));
    if (a.rank() != 2 || b.rank() != 2) {
      return InvalidArgument(
          "In[0] and In[1] must be matrices, got ", a.shape().ToString(), " and ", b.shape().ToString());
    }
    if (!(range_a.max > range_a.min)) return InvalidArgument("max_a must be larger than min_a.");
    if (!(range_b.max > range_b.min)) return InvalidArgument("max_b must be larger than min_b.");
    GemmArgs g;
    g.transpose_a = transpose_a_;
    g.transpose_b = transpose_b_;
    g.m = a.dim(transpose_a_ ? 1 : 0);
    g.k = a.dim(transpose_a_ ? 0 : 1);
    g.n = b.dim(transpose_b_ ? 0 : 1);
    if (b.dim(transpose_b_ ? 1 : 0) != g.k) {
      return InvalidArgument(
          "Matrix size-incompatible: In[0]: ", a.shape().ToString(), ", In[1]: ", b.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({g.m, g.n}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    MR_ASSIGN_OR_RETURN(const Tensor wide_a, Centred(ctx, a, range_a));
    MR_ASSIGN_OR_RETURN(const Tensor wide_b, Centred(ctx, b, range_b));
    g.a = wide_a.raw();
    g.lda = a.dim(1);
    g.b = wide_b.raw();
    g.ldb = b.dim(1);
    g.c = out->mutable_raw();
    g.ldc = g.n;
    if (g.k == 0) {
      std::fill_n(out->mutable_data<int32_t>(), out->num_elements(), 0);
    } else if (out->num_elements() > 0) {
      Gemm(&ctx, DType::kInt32, g);
    }
    return OutputRange(ctx, 1, ProductRange<uint8_t, uint8_t>(range_a, range_b));
  }

 private:
  // Distances from zero.
  static StatusOr<Tensor> Centred(KernelContext& ctx, const Tensor& t, FloatRange range) {
    MR_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(DType::kInt32, t.shape()));
    const int32_t zero = ZeroOf(range, false);
    const uint8_t* x = t.data<uint8_t>();
    int32_t* y = wide.mutable_data<int32_t>();
    ctx.ParallelFor(t.num_elements(), 0.5, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = Difference(x[i], zero);
    });
    return wide;
  }
  bool transpose_a_ = false, transpose_b_ = false;
};

template <typename A>
Status BiasAddOf(KernelContext& ctx) {
  const Tensor &in = ctx.input(0), &bias = ctx.input(1);
  MR_ASSIGN_OR_RETURN(const FloatRange range_in, ReadRange(ctx, 2));
  MR_ASSIGN_OR_RETURN(const FloatRange range_bias, ReadRange(ctx, 4));
  if (in.rank() < 2) return InvalidArgument("Input tensor must be at least 2D: ", in.shape().ToString());
  if (bias.rank() != 1) return InvalidArgument("Biases must be 1D: ", bias.shape().ToString());
  if (bias.dim(0) != in.dim(in.rank() - 1)) {
    return InvalidArgument(
        "Must provide as many biases as the last dimension of the input tensor: ", bias.shape().ToString(), " vs. ",
        in.shape().ToString());
  }
  const FloatRange range = SumRange(range_in, range_bias, 17);
  const StepsToFloat<A> of_in(range_in), of_bias(range_bias);
  const FloatToSteps<int32_t> steps(range);
  const int64_t zero = Quantized<int32_t>(0, range);  // not always the integer 0: the range's ends round
  MR_RETURN_IF_ERROR((Broadcast<A, A>(ctx, [&](A x, A y) {
    const int64_t sum = int64_t{steps(of_in(x))} + steps(of_bias(y)) + zero;  // as in TensorFlow, not less zero
    return static_cast<int32_t>(std::clamp(sum, kLowestOf<int32_t>, kHighestOf<int32_t>));
  })));
  return OutputRange(ctx, 1, range);
}

// The upper bound of Relu6 is 6, that of ReluX an input.
enum class Bound : uint8_t { kNone, kSix, kInput };

template <Bound kBound>
Status Relu(KernelContext& ctx) {
  const int first = kBound == Bound::kInput ? 2 : 1;
  MR_ASSIGN_OR_RETURN(const FloatRange range, ReadRange(ctx, first));
  float bound = 6;
  if (kBound == Bound::kInput) {
    MR_ASSIGN_OR_RETURN(bound, ScalarFloat(ctx, 1, "max_value"));
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(0).shape()));
  VisitQuantized(out->dtype(), [&]<typename T>() {
    const T low = Quantized<T>(0, range);
    const T high = kBound == Bound::kNone ? std::numeric_limits<T>::max() : Quantized<T>(bound, range);
    const T* x = ctx.input(0).data<T>();
    T* y = out->mutable_data<T>();
    ctx.ParallelFor(out->num_elements(), 0.3, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = std::min(std::max(x[i], low), high);
    });
  });
  return OutputRange(ctx, 1, range);
}

// Mean, variance, scale and shift per channel, in fixed point: 32 bits from -2^20 to 2^20.
class BatchNormKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(epsilon_, init.Attr<float>("variance_epsilon"));
    MR_ASSIGN_OR_RETURN(scale_, init.Attr<bool>("scale_after_normalization"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    static constexpr const char* kNames[] = {"input", "mean", "var", "beta", "gamma"};
    if (in.rank() != 4) return InvalidArgument("input must be 4-dimensional", in.shape().ToString());
    const int64_t depth = in.dim(3);
    FloatRange range[5];
    for (int i = 0; i < 5; ++i) {
      MR_ASSIGN_OR_RETURN(range[i], ReadRange(ctx, 3 * i + 1));
      const Shape& s = ctx.input(3 * i).shape();
      if (i == 0) continue;
      if (s.rank() != 1) return InvalidArgument(kNames[i], " must be 1-dimensional", s.ToString());
      if (s.dim(0) != depth) {
        return InvalidArgument(kNames[i], " must have ", depth, " elements, got shape ", s.ToString());
      }
    }
    constexpr FloatRange kOut = {-static_cast<float>(1 << 20), static_cast<float>(1 << 20)};
    const auto value = [&](int i, int64_t c) {
      return ToFloat<uint8_t>(range[i])(ctx.input(3 * i).data<uint8_t>()[c]);
    };
    std::vector<int64_t> scales, offsets;
    for (int64_t c = 0; c < depth; ++c) {
      float scale = 1.0F / std::sqrt(value(2, c) + epsilon_);
      if (scale_) scale *= value(4, c);
      scales.push_back(Quantized<int32_t>(scale, kOut));
      offsets.push_back(Quantized<int32_t>(-value(1, c) * scale + value(3, c), kOut));
    }
    const int64_t one = Quantized<int32_t>(1, kOut);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    const ToFloat<uint8_t> input_value(range[0]);
    const uint8_t* x = in.data<uint8_t>();
    int32_t* y = out->mutable_data<int32_t>();
    ctx.ParallelFor(
        depth == 0 ? 0 : in.num_elements() / depth, 15.0 * static_cast<double>(depth), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin * depth; i < end * depth; ++i) {
            const auto c = static_cast<size_t>(i % depth);
            const int64_t q = Quantized<int32_t>(input_value(x[i]), kOut);
            // As 32 bits hold it.
            const auto product = static_cast<int32_t>(static_cast<uint64_t>(q * scales[c]));
            y[i] = static_cast<int32_t>(static_cast<uint64_t>(product / one + offsets[c]));
          }
        });
    return OutputRange(ctx, 1, kOut);
  }

 private:
  float epsilon_ = 0;
  bool scale_ = false;
};

}  // namespace

void RegisterQuantizedArithmeticKernels(KernelRegistry& r) {
  const std::vector<DType> u8 = Types("qu8"), i8 = Types("qi8"), i32 = Types("qi32");
  r.AddFn({.op = "QuantizedAdd", .types = {{"T1", u8}, {"T2", u8}, {"Toutput", i32}}}, Add);
  r.AddFn({.op = "QuantizedMul", .types = {{"T1", u8}, {"T2", u8}, {"Toutput", i32}}}, Mul);
  r.Add<MatMulKernel>(
      {.op = "QuantizedMatMul", .types = {{"T1", u8}, {"T2", u8}, {"Toutput", i32}}, .cost = ProductCost});
  r.AddFn({.op = "QuantizedBiasAdd", .types = {{"T1", u8}, {"T2", u8}, {"out_type", i32}}}, BiasAddOf<uint8_t>);
  r.AddFn({.op = "QuantizedBiasAdd", .types = {{"T1", i8}, {"T2", i8}, {"out_type", i32}}}, BiasAddOf<int8_t>);
  for (const auto& t : {u8, i32}) {
    r.AddFn({.op = "QuantizedRelu", .types = {{"Tinput", t}, {"out_type", t}}}, Relu<Bound::kNone>);
    r.AddFn({.op = "QuantizedRelu6", .types = {{"Tinput", t}, {"out_type", t}}}, Relu<Bound::kSix>);
    r.AddFn({.op = "QuantizedReluX", .types = {{"Tinput", t}, {"out_type", t}}}, Relu<Bound::kInput>);
  }
  r.Add<BatchNormKernel>(
      {.op = "QuantizedBatchNormWithGlobalNormalization", .types = {{"Tinput", u8}, {"out_type", i32}}});
}

}  // namespace millrace
