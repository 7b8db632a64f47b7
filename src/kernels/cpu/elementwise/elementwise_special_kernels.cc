// SPDX-License-Identifier: Apache-2.0
// Betainc, CompareAndBitpack, Conj of variants.
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/elementwise/elementwise_special.h"
#include "kernels/cpu/engine/index_arithmetic.h"

namespace millrace {
namespace {

// Scalars go with operands of one shape.
template <typename T>
Status BetaincOf(KernelContext& ctx) {
  const char* names[] = {"a", "b", "x"};
  int shaped = 0;
  for (int i = 0; i < 3; ++i) {
    const Shape& s = ctx.input(i).shape();
    if (s.IsScalar()) continue;
    const Shape& other = ctx.input(shaped).shape();
    if (!other.IsScalar() && !(other == s)) {
      return InvalidArgument("Shapes of ", names[shaped], " and ", names[i], " are inconsistent: ", other.ToString(),
                             " vs. ", s.ToString());
    }
    shaped = i;
  }
  const Shape shape = ctx.input(shaped).shape();
  const T* p[3];
  int64_t step[3];
  for (int i = 0; i < 3; ++i) {
    p[i] = ctx.input(i).data<T>();
    step[i] = ctx.input(i).shape().IsScalar() ? 0 : 1;
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  T* y = out->mutable_data<T>();
  constexpr bool kFloat = std::is_same_v<T, float>;
  ctx.ParallelFor(shape.num_elements(), kFloat ? 100 : 400, [&](int64_t begin, int64_t end) {
    if constexpr (kFloat) {
      const float* const from[3] = {p[0] + begin * step[0], p[1] + begin * step[1], p[2] + begin * step[2]};
      IncompleteBetas(from, step, y + begin, end - begin);
    } else {
      for (int64_t i = begin; i < end; ++i) {
        y[i] = IncompleteBeta(p[0][i * step[0]], p[1][i * step[1]], p[2][i * step[2]]);
      }
    }
  });
  return absl::OkStatus();
}

Status Betainc(KernelContext& ctx) {
  return ctx.input_dtype(0) == DType::kFloat ? BetaincOf<float>(ctx) : BetaincOf<double>(ctx);
}

// Eight comparisons a byte, the first in the highest bit.
template <typename T>
void Pack(KernelContext& ctx, const T* in, const T threshold, uint8_t* out, int64_t n) {
  ctx.ParallelFor(n, 3, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* x = in + i * 8;
      unsigned bits = 0;
      for (int k = 0; k < 8; ++k) {
        bool set;
        if constexpr (std::is_same_v<T, bool>) {
          set = x[k];
        } else if constexpr (kIsHalf<T>) {
          set = static_cast<float>(x[k]) > static_cast<float>(threshold);
        } else {
          set = x[k] > threshold;
        }
        bits |= static_cast<unsigned>(set) << (7 - k);
      }
      out[i] = static_cast<uint8_t>(bits);
    }
  });
}

Status CompareAndBitpack(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  const Tensor& threshold = ctx.input(1);
  if (threshold.rank() != 0) {
    return InvalidArgument("Compare must be a scalar, but saw shape: ", threshold.shape().ToString());
  }
  if (in.rank() < 1) return InvalidArgument("Input should be at least a vector, but saw a scalar.");
  const int last = in.rank() - 1;
  if (in.dim(last) % 8 != 0) {
    return InvalidArgument("Inner dimension of input should be divisible by 8, but saw shape: ", in.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(const Shape shape, in.shape().WithDim(last, in.dim(last) / 8));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  VisitTypes<Half, float, double, bool, int8_t, int16_t, int32_t, int64_t>(in.dtype(), [&]<typename T>() {
    Pack<T>(ctx, in.data<T>(), *threshold.data<T>(), out->mutable_data<uint8_t>(), shape.num_elements());
  });
  return absl::OkStatus();
}

// No type of variant that graphs make has a conjugate.
Status ConjOfVariant(KernelContext& ctx) {
  for (const Variant& v : ctx.input(0).flat<Variant>()) {
    return Internal("No unary variant unary_op function found for op CONJ Variant type_name: ",
                    v.empty() ? "" : v.get()->TypeName());
  }
  ctx.Forward(0, 0);
  return absl::OkStatus();
}

}  // namespace

void RegisterSpecialKernels(KernelRegistry& r) {
  r.AddFn({.op = "Betainc", .types = {{"T", Types("FD")}}}, Betainc);
  r.AddFn({.op = "CompareAndBitpack", .types = {{"T", Types("HFD|IDX|i8|i16|bool")}}}, CompareAndBitpack);
  r.AddFn({.op = "Conj", .types = {{"T", Types("var")}}}, ConjOfVariant);
}

}  // namespace millrace
