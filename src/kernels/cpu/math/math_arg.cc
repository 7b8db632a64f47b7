// SPDX-License-Identifier: Apache-2.0
// Kernels of ArgMax and ArgMin. The tensor is outer x axis x inner.
#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/math/math.h"
#include "kernels/cpu/math/math_convert.h"
#include "kernels/cpu/math/math_ranking.h"

namespace millrace {
namespace {

struct ArgShape {
  int64_t outer = 1, axis = 1, inner = 1;
};

// The extreme of each of n <= kRankingTile columns, and the first row that has it; Worst and 0 where there is none.
template <typename T, bool kMax>
void BestOfColumns(const T* x, int64_t axis, int64_t stride, int64_t n, T* best, int64_t* index) {
  std::fill(best, best + n, Extreme<T, kMax>::Worst());
  std::fill(index, index + n, int64_t{0});
  for (int64_t i = 0; i < axis; ++i, x += stride) {
    for (int64_t j = 0; j < n; ++j) {
      const bool better = Extreme<T, kMax>::Better(x[j], best[j]);
      best[j] = better ? x[j] : best[j];
      index[j] = better ? i : index[j];
    }
  }
}

constexpr int64_t kFewColumns = 32, kGrouped = 128;

// Rows of few numbers: a group of them is one row, in which each column has some of the rows of its own.
template <typename T, bool kMax>
void ArgOfFewColumns(const T* x, int64_t axis, int64_t n, int64_t* index) {
  using E = Extreme<T, kMax>;
  const int64_t group = kGrouped / n, groups = axis / group;
  T best[kGrouped];
  int64_t places[kGrouped];
  BestOfColumns<T, kMax>(x, groups, group * n, group * n, best, places);
  for (int64_t j = 0; j < n; ++j) {
    T top = E::Worst();
    index[j] = 0;
    for (int64_t r = 0; r < group; ++r) {
      const T v = best[r * n + j];
      const int64_t place = places[r * n + j] * group + r;
      if (E::Better(v, top) || (v == top && E::Better(v, E::Worst()) && place < index[j])) {
        top = v;
        index[j] = place;
      }
    }
    for (int64_t i = groups * group; i < axis; ++i) {
      if (!E::Better(x[i * n + j], top)) continue;
      top = x[i * n + j];
      index[j] = i;
    }
  }
}

template <typename T, bool kMax>
void ArgOfColumns(const T* x, int64_t axis, int64_t stride, int64_t n, int64_t* index) {
  if (n == stride && n <= kFewColumns && axis >= kGrouped) return ArgOfFewColumns<T, kMax>(x, axis, n, index);
  T best[kRankingTile];
  BestOfColumns<T, kMax>(x, axis, stride, n, best, index);
}

using StoreFn = void (*)(const int64_t* in, int64_t n, void* out, int64_t at);
template <typename I>
void Store(const int64_t* in, int64_t n, void* out, int64_t at) {
  for (int64_t i = 0; i < n; ++i) static_cast<I*>(out)[at + i] = static_cast<I>(in[i]);
}

template <typename T, bool kMax>
void RunArg(const KernelContext& ctx, const ArgShape& s, const void* in_raw, StoreFn store, void* out) {
  const T* in = static_cast<const T*>(in_raw);
  const int64_t width = std::min(s.inner, kRankingTile), tiles = (s.inner + kRankingTile - 1) / kRankingTile;
  const double cost = 5 + 0.5 * static_cast<double>(s.axis * width);
  ctx.ParallelFor(s.outer * tiles, cost, [&](int64_t begin, int64_t end) {
    int64_t index[kRankingTile];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t o = i / tiles, column = i % tiles * kRankingTile, n = std::min(kRankingTile, s.inner - column);
      const T* x = in + o * s.axis * s.inner + column;
      if (s.inner == 1) {
        index[0] = ArgOfRow<T, kMax>(x, s.axis);
      } else {
        ArgOfColumns<T, kMax>(x, s.axis, s.inner, n, index);
      }
      store(index, n, out, o * s.inner + column);
    }
  });
}

template <bool kMax>
Status Dispatch(const KernelContext& ctx, DType dtype, const ArgShape& s, const void* in, StoreFn store, void* out) {
  switch (dtype) {
    case DType::kFloat: RunArg<float, kMax>(ctx, s, in, store, out); break;
    case DType::kDouble: RunArg<double, kMax>(ctx, s, in, store, out); break;
    case DType::kInt8: RunArg<int8_t, kMax>(ctx, s, in, store, out); break;
    case DType::kInt16: RunArg<int16_t, kMax>(ctx, s, in, store, out); break;
    case DType::kInt32: RunArg<int32_t, kMax>(ctx, s, in, store, out); break;
    case DType::kInt64: RunArg<int64_t, kMax>(ctx, s, in, store, out); break;
    case DType::kBool:
    case DType::kUInt8: RunArg<uint8_t, kMax>(ctx, s, in, store, out); break;
    case DType::kUInt16: RunArg<uint16_t, kMax>(ctx, s, in, store, out); break;
    case DType::kUInt32: RunArg<uint32_t, kMax>(ctx, s, in, store, out); break;
    case DType::kUInt64: RunArg<uint64_t, kMax>(ctx, s, in, store, out); break;
    default: return Unimplemented("no order of ", DTypeName(dtype));
  }
  return absl::OkStatus();
}

StoreFn StoreFor(DType dtype) {
  switch (dtype) {
    case DType::kInt16: return &Store<int16_t>;
    case DType::kUInt16: return &Store<uint16_t>;
    case DType::kInt32: return &Store<int32_t>;
    case DType::kInt64: return &Store<int64_t>;
    default: return nullptr;
  }
}

template <bool kMax>
class ArgKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    store_ = StoreFor(init.output_type(0));
    return store_ ? absl::OkStatus() : Unimplemented("no indices of type ", DTypeName(init.output_type(0)));
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (ctx.input(1).rank() != 0) {
      return InvalidArgument("dim must be a scalar, but received tensor of shape: ", ctx.input(1).shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const int64_t dimension, ctx.input(1).IntScalar());
    int64_t axis = 0;
    if (!NormalizeIndex(dimension, in.rank(), &axis)) {
      return InvalidArgument(
          "Expected dimension in the range [", -in.rank(), ", ", in.rank(), "), but got ", dimension);
    }
    if (in.dim(static_cast<int>(axis)) == 0) {
      return InvalidArgument("Reduction axis ", dimension, " is empty in shape ", in.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape().WithoutDim(static_cast<int>(axis))));
    if (in.num_elements() == 0) return absl::OkStatus();
    if (in.dim(static_cast<int>(axis)) == 1) {
      ZeroElements(out->dtype(), out->mutable_raw(), 0, out->num_elements());
      return absl::OkStatus();
    }
    ArgShape s;
    for (int i = 0; i < in.rank(); ++i) (i < axis ? s.outer : i == axis ? s.axis : s.inner) *= in.dim(i);
    const DType dtype = in.dtype();
    if (dtype != DType::kHalf && dtype != DType::kBFloat16) {
      return Dispatch<kMax>(ctx, dtype, s, in.raw(), store_, out->mutable_raw());
    }
    MR_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(DType::kFloat, in.shape()));
    ConvertElements(ctx, dtype, DType::kFloat, in.raw(), wide.mutable_raw(), in.num_elements());
    return Dispatch<kMax>(ctx, DType::kFloat, s, wide.raw(), store_, out->mutable_raw());
  }

 private:
  StoreFn store_ = nullptr;
};

}  // namespace

void RegisterArgKernels(KernelRegistry& registry) {
  const std::vector<DType> types = Types("REAL|bool");
  registry.Add<ArgKernel<true>>({.op = "ArgMax", .types = {{"T", types}}});
  registry.Add<ArgKernel<false>>({.op = "ArgMin", .types = {{"T", types}}});
}

}  // namespace millrace
