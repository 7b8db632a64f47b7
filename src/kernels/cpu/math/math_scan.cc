// SPDX-License-Identifier: Apache-2.0
// Kernels of Cumsum and Cumprod.
//
// The tensor is outer x axis x inner. Where inner is 1, rows are scanned one by one, long ones by blocks; else whole
// inner runs are added to an accumulator, tile by tile. Floats accumulate in double.
#include <algorithm>
#include <complex>
#include <type_traits>
#include <vector>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/math/math.h"
#include "kernels/cpu/math/math_convert.h"

namespace millrace {
namespace {

struct ScanShape {
  int64_t outer = 1, axis = 1, inner = 1;
  bool exclusive = false, reverse = false;
};

template <typename T>
struct ScanAccumulator {
  using type = T;
};
template <>
struct ScanAccumulator<float> {
  using type = double;
};
template <>
struct ScanAccumulator<complex64> {
  using type = complex128;
};

template <typename T, bool kProduct>
class Scan {
  using A = typename ScanAccumulator<T>::type;

 public:
  static void Run(const KernelContext& ctx, const ScanShape& s, const void* in_raw, void* out_raw) {
    const T* in = static_cast<const T*>(in_raw);
    T* out = static_cast<T*>(out_raw);
    if (kByBlocks && s.inner == 1 && s.axis >= 4 * kGroup) {
      for (int64_t o = 0; o < s.outer; ++o) LongRow(ctx, s, in + o * s.axis, out + o * s.axis);
      return;
    }
    if (s.inner == 1) {
      ctx.ParallelFor(s.outer, 1.5 * static_cast<double>(s.axis), [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) Row(s, in + o * s.axis, out + o * s.axis, 0, Identity());
      });
      return;
    }
    const int64_t tiles = (s.inner + kTile - 1) / kTile;
    const double cost = static_cast<double>(s.axis * std::min(s.inner, kTile));
    ctx.ParallelFor(s.outer * tiles, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i % tiles * kTile, start = i / tiles * s.axis * s.inner + column;
        Columns(s, in + start, out + start, std::min(kTile, s.inner - column));
      }
    });
  }

 private:
  static constexpr int64_t kTile = 512;
  static A Identity() { return kProduct ? A(1) : A(0); }
  static A Combine(A a, A b) {
    if constexpr (kProduct && std::is_integral_v<A>) {
      return static_cast<A>(std::common_type_t<A, uint32_t>(a) * b);
    } else if constexpr (kProduct) {
      return a * b;
    } else {
      return static_cast<A>(a + b);
    }
  }

  // Long rows go by blocks, after a pass for the sums of these, a group of blocks side by side, whose sums do not wait
  // for each other. Not so products of floats: that of a block may overflow where the row's does not.
  static constexpr int64_t kBlock = 4096, kAbreast = 4, kGroup = kBlock * kAbreast;
  static constexpr bool kByBlocks = !kProduct || std::is_integral_v<A>;

  static int64_t Place(const ScanShape& s, int64_t i) { return s.reverse ? s.axis - 1 - i : i; }

  static A Total(const ScanShape& s, const T* in, int64_t block) {
    const T* const x = in + (s.reverse ? s.axis - (block + 1) * kBlock : block * kBlock);
    A lanes[8];
    std::fill(lanes, lanes + 8, Identity());
    for (int64_t i = 0; i < kBlock; i += 8) {
#pragma GCC unroll 8
      for (int l = 0; l < 8; ++l) lanes[l] = Combine(lanes[l], A(x[i + l]));
    }
    for (int l = 1; l < 8; ++l) lanes[0] = Combine(lanes[0], lanes[l]);
    return lanes[0];
  }

  static void Group(const ScanShape& s, const T* in, T* out, int64_t first, const A* before) {
    A acc[kAbreast];
    std::copy(before, before + kAbreast, acc);
    for (int64_t i = 0; i < kBlock; ++i) {
#pragma GCC unroll 4
      for (int64_t b = 0; b < kAbreast; ++b) {
        const int64_t at = Place(s, first + b * kBlock + i);
        const A next = Combine(acc[b], A(in[at]));
        out[at] = static_cast<T>(s.exclusive ? acc[b] : next);
        acc[b] = next;
      }
    }
  }

  static void LongRow(const KernelContext& ctx, const ScanShape& s, const T* in, T* out) {
    const int64_t groups = s.axis / kGroup, blocks = groups * kAbreast;
    std::vector<A> before(static_cast<size_t>(blocks + 1), Identity());
    ctx.ParallelFor(blocks, 0.3 * kBlock, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) before[static_cast<size_t>(k + 1)] = Total(s, in, k);
    });
    for (size_t k = 1; k < before.size(); ++k) before[k] = Combine(before[k - 1], before[k]);
    // Infinities may have come from a block alone.
    if (before.back() - before.back() != A(0)) return Row(s, in, out, 0, Identity());
    ctx.ParallelFor(groups + 1, 0.6 * kGroup, [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        const A* const at = before.data() + g * kAbreast;
        if (g == groups) {
          Row(s, in, out, g * kGroup, *at);
        } else {
          Group(s, in, out, g * kGroup, at);
        }
      }
    });
  }

  // From place `begin` on. In place is fine: each element is read before it is written.
  static void Row(const ScanShape& s, const T* in, T* out, int64_t begin, A acc) {
    StopNowAndThen pause;
    for (int64_t i = begin; i < s.axis; ++i) {
      pause();
      const int64_t at = Place(s, i);
      const A next = Combine(acc, A(in[at]));
      out[at] = static_cast<T>(s.exclusive ? acc : next);
      acc = next;
    }
  }

  static void Columns(const ScanShape& s, const T* in, T* out, int64_t n) {
    A acc[kTile];
    std::fill(acc, acc + n, Identity());
    StopNowAndThen pause;
    for (int64_t i = 0; i < s.axis; ++i) {
      pause();
      const int64_t at = (s.reverse ? s.axis - 1 - i : i) * s.inner;
      const T* x = in + at;
      T* y = out + at;
      if (s.exclusive) {
        for (int64_t j = 0; j < n; ++j) {
          const A next = Combine(acc[j], A(x[j]));
          y[j] = static_cast<T>(acc[j]);
          acc[j] = next;
        }
      } else {
        for (int64_t j = 0; j < n; ++j) {
          acc[j] = Combine(acc[j], A(x[j]));
          y[j] = static_cast<T>(acc[j]);
        }
      }
    }
  }
};

// Wraps, whatever the sign; the products of 8- and 16-bit types are those of the low bits.
template <bool kProduct>
Status Dispatch(KernelContext& ctx, DType dtype, const ScanShape& s, const void* in, void* out) {
  switch (dtype) {
    case DType::kFloat: Scan<float, kProduct>::Run(ctx, s, in, out); break;
    case DType::kDouble: Scan<double, kProduct>::Run(ctx, s, in, out); break;
    case DType::kComplex64: Scan<complex64, kProduct>::Run(ctx, s, in, out); break;
    case DType::kComplex128: Scan<complex128, kProduct>::Run(ctx, s, in, out); break;
    case DType::kInt8:
    case DType::kUInt8: Scan<uint8_t, kProduct>::Run(ctx, s, in, out); break;
    case DType::kInt16:
    case DType::kUInt16: Scan<uint16_t, kProduct>::Run(ctx, s, in, out); break;
    case DType::kInt32:
    case DType::kUInt32: Scan<uint32_t, kProduct>::Run(ctx, s, in, out); break;
    case DType::kInt64:
    case DType::kUInt64: Scan<uint64_t, kProduct>::Run(ctx, s, in, out); break;
    default: return Unimplemented("no scan of ", DTypeName(dtype));
  }
  return absl::OkStatus();
}

template <bool kProduct>
class ScanKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(exclusive_, init.Attr<bool>("exclusive"));
    MR_ASSIGN_OR_RETURN(reverse_, init.Attr<bool>("reverse"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    ScanShape s;
    MR_RETURN_IF_ERROR(Arrange(shape, ctx.input(1), &s));
    const DType dtype = ctx.input_dtype(0);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const void* in = ctx.input(0).raw();
    if (dtype != DType::kHalf && dtype != DType::kBFloat16) {
      return Dispatch<kProduct>(ctx, dtype, s, in, out->mutable_raw());
    }
    MR_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(DType::kFloat, shape));
    ConvertElements(ctx, dtype, DType::kFloat, in, wide.mutable_raw(), shape.num_elements());
    Scan<float, kProduct>::Run(ctx, s, wide.raw(), wide.mutable_raw());
    ConvertElements(ctx, DType::kFloat, dtype, wide.raw(), out->mutable_raw(), shape.num_elements());
    return absl::OkStatus();
  }

 private:
  Status Arrange(const Shape& shape, const Tensor& axis_input, ScanShape* s) const {
    if (axis_input.rank() != 0) {
      return InvalidArgument("ScanOp: axis must be a scalar, not ", axis_input.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const int64_t axis, axis_input.IntScalar());
    int64_t at = 0;
    if (!NormalizeIndex(axis, shape.rank(), &at)) {
      return InvalidArgument(
          "ScanOp: Expected scan axis in the range [", -shape.rank(), ", ", shape.rank(), "), but got ", axis);
    }
    for (int i = 0; i < shape.rank(); ++i) {
      (i < at ? s->outer : i == at ? s->axis : s->inner) *= shape.dim(i);
    }
    s->exclusive = exclusive_;
    s->reverse = reverse_;
    return absl::OkStatus();
  }

  bool exclusive_ = false, reverse_ = false;
};

}  // namespace

void RegisterScanKernels(KernelRegistry& registry) {
  const std::vector<DType> types = Types("REAL|CPX");
  registry.Add<ScanKernel<false>>({.op = "Cumsum", .types = {{"T", types}}});
  registry.Add<ScanKernel<true>>({.op = "Cumprod", .types = {{"T", types}}});
}

}  // namespace millrace
