// SPDX-License-Identifier: Apache-2.0
// The transcendental ops of elementwise tiles, for float and double alike. Included once per instruction set.
// clang-format off
#if defined(MILLRACE_ELEMENTWISE_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MILLRACE_ELEMENTWISE_FUNCTIONS_INL_H_
#undef MILLRACE_ELEMENTWISE_FUNCTIONS_INL_H_
#else
#define MILLRACE_ELEMENTWISE_FUNCTIONS_INL_H_
#endif
// clang-format on

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/elementwise/elementwise_math-inl.h"
#include "kernels/cpu/elementwise/elementwise_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

#define MR_UNARY_OP(Name, expr)   \
  struct Name {                   \
    template <typename T>         \
    static HWY_INLINE T Do(T a) { \
      return expr;                \
    }                             \
  };
MR_UNARY_OP(ExpOp, Exp(a))
MR_UNARY_OP(Expm1Op, Expm1(a))
MR_UNARY_OP(LogOp, Log(a))
MR_UNARY_OP(Log1pOp, Log1p(a))
MR_UNARY_OP(TanhOp, Tanh(a))
MR_UNARY_OP(SigmoidOp, Sigmoid(a))
MR_UNARY_OP(SoftplusOp, Softplus(a))
MR_UNARY_OP(EluOp, a < T{0} ? Expm1(a) : a)
MR_UNARY_OP(SeluOp,
            a < T{0} ? T(1.7580993408473768599402175208123) * Expm1(a) : T(1.0507009873554804934193349852946) * a)
#undef MR_UNARY_OP

struct SoftplusGradOp {
  template <typename T>
  static inline T Do(T g, T x) {
    return g / (Exp(-x) + T{1});
  }
};
struct XlogyOp {
  template <typename T>
  static inline T Do(T a, T b) {
    return a == T{0} ? T{0} : a * Log(b);
  }
};

// Blocks whose elements pass a cheap test go through vector code, the others through the C library.
constexpr int64_t kBlock = 256;

template <typename T>
constexpr int kAngleTerms = sizeof(T) == 8 ? 19 : 13;  // in the series of the reduced angle
struct SinFn {
  template <typename T>
  static inline T Fast(T x) {
    return static_cast<T>(SinReduced<kAngleTerms<T>>(x));
  }
  template <typename T>
  static inline T Slow(T x) {
    return std::sin(x);
  }
};
struct CosFn {
  template <typename T>
  static inline T Fast(T x) {
    return static_cast<T>(CosReduced<kAngleTerms<T>>(x));
  }
  template <typename T>
  static inline T Slow(T x) {
    return std::cos(x);
  }
};

template <class Fn, typename T>
void Trigonometric(const void* a_in, void* out_in, int64_t n) {
  const T* a = static_cast<const T*>(a_in);
  T* out = static_cast<T*>(out_in);
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t k = std::min(kBlock, n - i);
    typename FloatTraits<T>::Bits bad = 0;
    for (int64_t j = 0; j < k; ++j) bad |= std::abs(a[i + j]) <= static_cast<T>(kMaxAngle) ? 0u : 1u;
    if (bad == 0) {
#pragma GCC ivdep
      for (int64_t j = 0; j < k; ++j) out[i + j] = Fn::Fast(a[i + j]);
    } else {
      for (int64_t j = 0; j < k; ++j) out[i + j] = Fn::Slow(a[i + j]);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#endif  // once per instruction set
