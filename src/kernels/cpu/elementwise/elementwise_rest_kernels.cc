// SPDX-License-Identifier: Apache-2.0
// AddN, AccumulateNV2, ClipByValue, Cross, LeakyRelu and its gradient, ApproximateEqual.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/engine/strided_block.h"

namespace millrace {
namespace {

// fn(begin, end) over blocks that fit the first-level cache several times.
template <typename F>
void ForSmallBlocks(KernelContext& ctx, int64_t n, double cost, const F& fn) {
  constexpr int64_t kBlock = 2048;
  if (n <= kBlock) return fn(0, n);
  ctx.ParallelFor((n + kBlock - 1) / kBlock, cost * kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) fn(b * kBlock, std::min(n, (b + 1) * kBlock));
  });
}

// Always ((x0 + x1) + x2) + ..., whichever input the output reuses.
class AddNKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    add_ = ResolveTile("Add", BaseType(init.input_type(0)));
    if (!add_) return Unimplemented(init.op.name, " of ", DTypeName(init.input_type(0)), " on CPU");
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const int count = ctx.num_inputs();
    const Tensor& first = ctx.input(0);
    for (int i = 1; i < count; ++i) {
      if (!(ctx.input(i).shape() == first.shape())) {
        return InvalidArgument(
            "Inputs to operation ", ctx.node_name(), " of type ", ctx.node().op->name,
            " must have the same size and shape. Input 0: ", first.shape().ToString(), " != input ", i, ": ",
            ctx.input(i).shape().ToString());
      }
    }
    if (count == 1) {
      ctx.set_output(0, first);
      return absl::OkStatus();
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0, 1}, 0, first.shape()));
    const int64_t size = add_.in_size, n = first.num_elements(), block = kBlockBytes / size;
    char* const o = out->mutable_data<char>();
    // Where caches would not keep the output, sums are made aside, and only they go to memory.
    const bool streams =
        n * size >= strided::kStreamBytes && !out->SharesBufferWith(first) && !out->SharesBufferWith(ctx.input(1));
    ctx.ParallelFor((n + block - 1) / block, 0.3 * count * static_cast<double>(block), [&](int64_t begin, int64_t end) {
      alignas(64) char aside[kBlockBytes];
      for (int64_t b = begin; b < end; ++b) {
        const int64_t items = std::min(block, n - b * block), at = b * block * size;
        char* const sum = streams ? aside : o + at;
        RunBinary(add_, BinaryForm::kVV, ctx.input(0).data<char>() + at, ctx.input(1).data<char>() + at, sum, items);
        for (int i = 2; i < count; ++i) {
          RunBinary(add_, BinaryForm::kVV, sum, ctx.input(i).data<char>() + at, sum, items);
        }
        if (streams) strided::StreamRun(o + at, aside, items * size);
      }
      if (streams) strided::FinishStreams();
    });
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 private:
  // Inputs are read by turns, in runs so short that the processor fetches all of them ahead.
  static constexpr int64_t kBlockBytes = 2048;
  TileOp add_;
};

class ClipByValueKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    const DType t = BaseType(init.input_type(0));
    min_ = ResolveTile("Minimum", t);
    max_ = ResolveTile("Maximum", t);
    clip_ = Tiles().Find("Clip", t);
    if (!min_ || !max_) return Unimplemented("ClipByValue of ", DTypeName(t), " on CPU");
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    for (int i = 1; i < 3; ++i) {
      const Shape& bound = ctx.input(i).shape();
      if (!bound.IsScalar() && !(bound == x.shape())) {
        return InvalidArgument(
            "ClipByValue: bounds must be scalars or of the shape ", x.shape().ToString(), ", got ", bound.ToString());
      }
    }
    const Tensor& low = ctx.input(1);
    const Tensor& high = ctx.input(2);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, x.shape()));
    const int64_t size = min_.in_size;
    const bool many = !x.shape().IsScalar();
    const int64_t low_step = many && low.shape().IsScalar() ? 0 : size;
    const int64_t high_step = many && high.shape().IsScalar() ? 0 : size;
    if (clip_ != nullptr && low_step == 0 && high_step == 0) {
      alignas(8) char bounds[16];
      std::memcpy(bounds, low.raw(), static_cast<size_t>(size));
      std::memcpy(bounds + size, high.raw(), static_cast<size_t>(size));
      ctx.ParallelFor(x.num_elements(), 0.2, [&](int64_t begin, int64_t end) {
        clip_->vs(x.data<char>() + begin * size, bounds, out->mutable_data<char>() + begin * size, end - begin);
      });
      return absl::OkStatus();
    }
    ForSmallBlocks(ctx, x.num_elements(), 1, [&](int64_t begin, int64_t end) {
      char* o = out->mutable_data<char>() + begin * size;
      RunBinary(min_, high_step != 0 ? BinaryForm::kVV : BinaryForm::kVS, x.data<char>() + begin * size,
                high.data<char>() + begin * high_step, o, end - begin);
      RunBinary(max_, low_step != 0 ? BinaryForm::kVV : BinaryForm::kVS, o, low.data<char>() + begin * low_step, o,
                end - begin);
    });
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 private:
  TileOp min_, max_;
  const TileFn* clip_ = nullptr;  // between two numbers at once
};

// Real and imaginary parts between those of the bounds.
template <typename R>
Status ClipComplex(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  for (int i = 1; i < 3; ++i) {
    const Shape& bound = ctx.input(i).shape();
    if (!bound.IsScalar() && !(bound == x.shape())) {
      return InvalidArgument(
          "ClipByValue: bounds must be scalars or of the shape ", x.shape().ToString(), ", got ", bound.ToString());
    }
  }
  const R *low = ctx.input(1).data<R>(), *high = ctx.input(2).data<R>(), *in = x.data<R>();
  const int64_t low_step = ctx.input(1).shape().IsScalar() ? 0 : 2, high_step = ctx.input(2).shape().IsScalar() ? 0 : 2;
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, x.shape()));
  R* y = out->mutable_data<R>();
  ForSmallBlocks(ctx, x.num_elements(), 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t part = 0; part < 2; ++part) {
        const R v = std::min(in[2 * i + part], high[i * high_step + part]);
        y[2 * i + part] = std::max(v, low[i * low_step + part]);
      }
    }
  });
  return absl::OkStatus();
}

// Runs a function on f32 or f64 tiles over tensors of any float type: converts on both sides where needed.
class ConvertedTiles {
 public:
  Status Init(const KernelInit& init, DType type) {
    type_ = type;
    compute_ = type == DType::kHalf || type == DType::kBFloat16 ? DType::kFloat : type;
    widen_ = FindConvert(type_, compute_);
    narrow_ = FindConvert(compute_, type_);
    if (!widen_.found || !narrow_.found) return Unimplemented(init.op.name, " of ", DTypeName(type), " on CPU");
    return absl::OkStatus();
  }
  DType compute_type() const { return compute_; }

  // fn(a, b, out, n) on tiles of compute_type().
  template <typename F>
  void Run(const void* a_in, const void* b_in, void* out_in, int64_t begin, int64_t end, const F& fn) const {
    const int64_t size = widen_.size[0];
    const char* a = static_cast<const char*>(a_in) + begin * size;
    const char* b = static_cast<const char*>(b_in) + begin * size;
    char* out = static_cast<char*>(out_in) + begin * size;
    if (widen_.steps == 0) return fn(a, b, out, end - begin);
    alignas(64) char x[kConvertTile * 8];
    alignas(64) char y[kConvertTile * 8];
    for (int64_t i = begin; i < end; i += kConvertTile) {
      const int64_t k = std::min(kConvertTile, end - i);
      widen_.Run(a, x, k);
      widen_.Run(b, y, k);
      fn(x, y, x, k);
      narrow_.Run(x, out, k);
      a += k * size, b += k * size, out += k * size;
    }
  }

 private:
  DType type_ = DType::kInvalid;
  DType compute_ = DType::kInvalid;
  ConvertRoute widen_, narrow_;
};

class LeakyReluKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    const DType t = BaseType(init.input_type(0));
    op_ = ResolveTile("LeakyRelu", t);
    if (!op_) return Unimplemented("LeakyRelu of ", DTypeName(t), " on CPU");
    MR_ASSIGN_OR_RETURN(const float alpha, init.Attr<float>("alpha"));
    FindConvert(DType::kFloat, t).Run(&alpha, alpha_, 1);
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, x.shape()));
    ParallelBinary(ctx, op_, BinaryForm::kVS, x.raw(), alpha_, out->mutable_raw(), x.num_elements());
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 private:
  TileOp op_;
  alignas(8) char alpha_[8] = {};
};

template <typename T>
void LeakyGrad(const void* g_in, const void* x_in, void* out_in, int64_t n, float alpha_in) {
  const T* g = static_cast<const T*>(g_in);
  const T* x = static_cast<const T*>(x_in);
  T* out = static_cast<T*>(out_in);
  const T alpha = static_cast<T>(alpha_in);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] > T(0) ? g[i] : g[i] * alpha;
}

class LeakyReluGradKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(alpha_, init.Attr<float>("alpha"));
    return tiles_.Init(init, BaseType(init.input_type(0)));
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& g = ctx.input(0);
    const Tensor& x = ctx.input(1);
    if (!(g.shape() == x.shape())) {
      return InvalidArgument(
          "LeakyReluGrad: inputs must have the same shape, got ", g.shape().ToString(), " and ", x.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0, 1}, 0, g.shape()));
    const auto fn = tiles_.compute_type() == DType::kDouble ? &LeakyGrad<double> : &LeakyGrad<float>;
    ForSmallBlocks(ctx, g.num_elements(), 1, [&](int64_t begin, int64_t end) {
      tiles_.Run(g.raw(), x.raw(), out->mutable_raw(), begin, end,
                 [&](const void* a, const void* b, void* o, int64_t n) { fn(a, b, o, n, alpha_); });
    });
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 private:
  ConvertedTiles tiles_;
  float alpha_ = 0;
};

class ApproximateEqualKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(tolerance_, init.Attr<float>("tolerance"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    const Tensor& y = ctx.input(1);
    if (!(x.shape() == y.shape())) {
      return InvalidArgument("ApproximateEqual: x and y must be of the same shape, got ", x.shape().ToString(), " and ",
                             y.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, x.shape()));
    const TileFn &subtract = *Tiles().Find("Sub", x.dtype()), &magnitude = *Tiles().Find("Abs", x.dtype()),
                 &compare = *Tiles().Find("LessEqual", x.dtype());
    const double wide = static_cast<double>(tolerance_);
    const void* const tolerance = x.dtype() == DType::kFloat ? static_cast<const void*>(&tolerance_) : &wide;
    const auto size = static_cast<int64_t>(DTypeSize(x.dtype()));
    ForSmallBlocks(ctx, x.num_elements(), 0.5, [&](int64_t begin, int64_t end) {
      alignas(64) char off[kConvertTile * sizeof(double)];
      for (int64_t i = begin; i < end; i += kConvertTile) {
        const int64_t n = std::min(kConvertTile, end - i);
        subtract.vv(x.data<char>() + i * size, y.data<char>() + i * size, off, n);
        magnitude.unary(off, off, n);
        compare.vs(off, tolerance, out->mutable_data<char>() + i, n);
      }
    });
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 private:
  float tolerance_ = 0;
};

template <typename T>
void CrossTriples(const void* a_in, const void* b_in, void* out_in, int64_t n) {
  using W = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  const T* a = static_cast<const T*>(a_in);
  const T* b = static_cast<const T*>(b_in);
  T* out = static_cast<T*>(out_in);
  for (int64_t i = 0; i + 2 < n; i += 3) {
    const W a0 = static_cast<W>(a[i]), a1 = static_cast<W>(a[i + 1]), a2 = static_cast<W>(a[i + 2]);
    const W b0 = static_cast<W>(b[i]), b1 = static_cast<W>(b[i + 1]), b2 = static_cast<W>(b[i + 2]);
    out[i] = static_cast<T>(a1 * b2 - a2 * b1);
    out[i + 1] = static_cast<T>(a2 * b0 - a0 * b2);
    out[i + 2] = static_cast<T>(a0 * b1 - a1 * b0);
  }
}

class CrossKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    const DType t = BaseType(init.input_type(0));
    const DType wide =
        t == DType::kHalf || t == DType::kBFloat16 ? DType::kFloat
        : t == DType::kUInt32                      ? DType::kInt64
        : IsInteger(t) && DTypeSize(t) < 4
            ? DType::kInt32
            : t;
    widen_ = FindConvert(t, wide);
    narrow_ = FindConvert(wide, t);
    fn_ = wide == DType::kFloat    ? &CrossTriples<float>
          : wide == DType::kDouble ? &CrossTriples<double>
          : wide == DType::kInt32  ? &CrossTriples<int32_t>
                                   : &CrossTriples<int64_t>;
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    if (!(a.shape() == b.shape())) {
      return InvalidArgument(
          "Both inputs must be of same shape: ", a.shape().ToString(), " vs. ", b.shape().ToString());
    }
    if (a.rank() < 1) return InvalidArgument("Input must be at least 1D, got a scalar");
    if (a.dim(a.rank() - 1) != 3) {
      return FailedPrecondition(
          "Cross-products are only defined for 3-element vectors, got shape ", a.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, a.shape()));
    constexpr int64_t kBlock = 510;  // elements: whole triples, one conversion tile
    static_assert(kBlock <= kConvertTile && kBlock % 3 == 0);
    const int64_t n = a.num_elements();
    ctx.ParallelFor((n + kBlock - 1) / kBlock, kBlock * 1.5, [&](int64_t begin, int64_t end) {
      alignas(64) char x[kBlock * 8], y[kBlock * 8], z[kBlock * 8];
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i * kBlock * widen_.size[0];
        const int64_t k = std::min(kBlock, n - i * kBlock);
        widen_.Run(a.data<char>() + at, x, k);
        widen_.Run(b.data<char>() + at, y, k);
        fn_(x, y, z, k);
        narrow_.Run(z, out->mutable_data<char>() + at, k);
      }
    });
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 private:
  ConvertRoute widen_, narrow_;
  BinaryTile fn_ = nullptr;
};

}  // namespace

void RegisterElementwiseRestKernels(KernelRegistry& r) {
  r.Add<AddNKernel>({.op = "AddN", .types = {{"T", Types("REAL|CPX")}}});
  r.Add<AddNKernel>({.op = "AccumulateNV2", .types = {{"T", Types("REAL|CPX")}}});
  r.Add<ClipByValueKernel>({.op = "ClipByValue", .types = {{"T", Types("REAL")}}});
  r.AddFn({.op = "ClipByValue", .types = {{"T", Types("c64")}}}, ClipComplex<float>);
  r.AddFn({.op = "ClipByValue", .types = {{"T", Types("c128")}}}, ClipComplex<double>);
  r.Add<LeakyReluKernel>({.op = "LeakyRelu", .types = {{"T", Types("FLT")}}});
  r.Add<LeakyReluGradKernel>({.op = "LeakyReluGrad", .types = {{"T", Types("FLT")}}});
  r.Add<ApproximateEqualKernel>({.op = "ApproximateEqual", .types = {{"T", Types("FD")}}});
  r.Add<CrossKernel>({.op = "Cross", .types = {{"T", Types("REAL")}}});
}

}  // namespace millrace
