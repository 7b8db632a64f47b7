// SPDX-License-Identifier: Apache-2.0
// Kernels of ArgMax and ArgMin. The tensor is outer x axis x inner.
#include <algorithm>

#include "base/checked.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/strided_copy.h"
#include "kernels/cpu/math/math.h"
#include "kernels/cpu/math/math_convert.h"
#include "kernels/cpu/math/math_ranking.h"
#include "kernels/cpu/math/math_ranking_simd.h"

namespace millrace {
namespace {

struct ArgShape {
  int64_t outer = 1, axis = 1, inner = 1;
};

using StoreFn = void (*)(const int64_t* in, int64_t n, void* out, int64_t at);
template <typename I>
void Store(const int64_t* in, int64_t n, void* out, int64_t at) {
  for (int64_t i = 0; i < n; ++i) static_cast<I*>(out)[at + i] = static_cast<I>(in[i]);
}

Status RunArg(const KernelContext& ctx, DType dtype, bool greatest, const ArgShape& s, const void* in, StoreFn store,
              void* out) {
  const ArgFns find = ArgFunctions(dtype, greatest);
  if (find.of_row == nullptr) return Unimplemented("no order of ", DTypeName(dtype));
  const int64_t width = std::min(s.inner, kRankingTile), tiles = (s.inner + kRankingTile - 1) / kRankingTile;
  const double cost = 5 + 0.5 * static_cast<double>(s.axis * width);
  ctx.ParallelFor(s.outer * tiles, cost, [&](int64_t begin, int64_t end) {
    int64_t index[kRankingTile];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t o = i / tiles, column = i % tiles * kRankingTile, n = std::min(kRankingTile, s.inner - column);
      const void* const x = ElementAt(in, dtype, o * s.axis * s.inner + column);
      if (s.inner == 1) {
        index[0] = find.of_row(x, s.axis);
      } else {
        find.of_columns(x, s.axis, s.inner, n, index);
      }
      store(index, n, out, o * s.inner + column);
    }
  });
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
      return RunArg(ctx, dtype, kMax, s, in.raw(), store_, out->mutable_raw());
    }
    MR_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(DType::kFloat, in.shape()));
    ConvertElements(ctx, dtype, DType::kFloat, in.raw(), wide.mutable_raw(), in.num_elements());
    return RunArg(ctx, DType::kFloat, kMax, s, wide.raw(), store_, out->mutable_raw());
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
