// SPDX-License-Identifier: Apache-2.0
// Complex tiles whose numbers are worth vector code: quotient, square root, exponential, logarithm and the like, in
// double, of the real and the imaginary parts side by side. Blocks in which a number is too large, too small or none go
// through the C library.
#include <algorithm>
#include <cmath>
#include <complex>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_tiles_complex_functions.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_functions-inl.h"
#include "kernels/cpu/elementwise/elementwise_twofold.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kComplexBlock = 128;

struct Parts {
  double re[kComplexBlock], im[kComplexBlock];
};

template <typename R>
inline void Split(const R* in, int64_t n, Parts* out) {
  for (int64_t i = 0; i < n; ++i) {
    out->re[i] = static_cast<double>(in[2 * i]);
    out->im[i] = static_cast<double>(in[2 * i + 1]);
  }
}
template <typename R>
inline void Join(const Parts& in, int64_t n, R* out) {
  for (int64_t i = 0; i < n; ++i) {
    out[2 * i] = static_cast<R>(in.re[i]);
    out[2 * i + 1] = static_cast<R>(in.im[i]);
  }
}
inline void Repeat(double re, double im, int64_t n, Parts* out) {
  std::fill_n(out->re, n, re);
  std::fill_n(out->im, n, im);
}

// Whether products of squares of v are normal numbers; those of any float that is a number are.
template <typename R>
inline bool IsTame(double v) {
  const double a = std::abs(v);
  if constexpr (sizeof(R) == 4) return a < std::numeric_limits<double>::infinity();
  return (a > 1e-70 && a < 1e70) | (a == 0.0);
}

struct Quotient {
  template <typename R>
  static bool Serves(const Parts& a, const Parts& b, int64_t n) {
    uint64_t bad = 0;  // as wide as the numbers
    for (int64_t i = 0; i < n; ++i) {
      const double divisor = std::abs(b.re[i]) + std::abs(b.im[i]);
      if constexpr (sizeof(R) == 4) {
        bad |= IsTame<R>(std::abs(a.re[i]) + std::abs(a.im[i]) + divisor) & (divisor != 0.0) ? 0u : 1u;
      } else {
        const bool tame = IsTame<R>(a.re[i]) & IsTame<R>(a.im[i]) & IsTame<R>(b.re[i]) & IsTame<R>(b.im[i]);
        bad |= tame & (divisor != 0.0) ? 0u : 1u;
      }
    }
    return bad == 0;
  }
  template <typename R>
  static void Run(const Parts& a, const Parts& b, int64_t n, Parts* out) {
    for (int64_t i = 0; i < n; ++i) {
      const double norm = b.re[i] * b.re[i] + b.im[i] * b.im[i];
      const double re = a.re[i] * b.re[i] + a.im[i] * b.im[i], im = a.im[i] * b.re[i] - a.re[i] * b.im[i];
      if constexpr (sizeof(R) == 4) {  // what that loses is far below a float
        const double inverse = 1.0 / norm;
        out->re[i] = re * inverse;
        out->im[i] = im * inverse;
      } else {
        out->re[i] = re / norm;
        out->im[i] = im / norm;
      }
    }
  }
  template <typename C>
  static C One(C a, C b) {
    return a / b;
  }
};

struct SquareRoot {
  template <typename R>
  static bool Serves(const Parts& a, int64_t n) {
    unsigned bad = 0;
    for (int64_t i = 0; i < n; ++i) {
      bad |= !(IsTame<R>(a.re[i]) & IsTame<R>(a.im[i]));
      bad |= (a.re[i] == 0.0) & (a.im[i] == 0.0);
    }
    return bad == 0;
  }
  // The larger part from |re| + |a|, where nothing cancels; the other as im / 2 over it.
  template <typename R>
  static void Run(const Parts& a, int64_t n, Parts* out) {
    for (int64_t i = 0; i < n; ++i) {
      const double re = a.re[i], im = a.im[i];
      const double large = std::sqrt(0.5 * (std::abs(re) + std::sqrt(re * re + im * im))), small = 0.5 * im / large;
      out->re[i] = re < 0.0 ? std::abs(small) : large;
      out->im[i] = re < 0.0 ? std::copysign(large, im) : small;
    }
  }
  template <typename C>
  static C One(C a) {
    return std::sqrt(a);
  }
};

struct Exponential {
  template <typename R>
  static bool Serves(const Parts& a, int64_t n) {
    unsigned bad = 0;
    for (int64_t i = 0; i < n; ++i) bad |= !((std::abs(a.re[i]) < 700.0) & (std::abs(a.im[i]) <= kMaxAngle));
    return bad == 0;
  }
  template <typename R>
  static void Run(const Parts& a, int64_t n, Parts* out) {
    constexpr int kTerms = sizeof(R) == 4 ? kFloatExpTerms : FloatTraits<double>::kExpTerms;
    for (int64_t i = 0; i < n; ++i) {
      const double e = Exp<double, kTerms>(a.re[i]);
      out->re[i] = e * CosReduced<kAngleTerms<R>>(a.im[i]);
      out->im[i] = e * SinReduced<kAngleTerms<R>>(a.im[i]);
    }
  }
  template <typename C>
  static C One(C a) {
    return std::exp(a);
  }
};

// Of numbers that are not 0.
struct NotZero {
  template <typename R>
  static bool Serves(const Parts& a, int64_t n) {
    return SquareRoot::Serves<R>(a, n);
  }
};

struct Inverse : NotZero {
  template <typename R>
  static void Run(const Parts& a, int64_t n, Parts* out) {
    for (int64_t i = 0; i < n; ++i) {
      const double norm = a.re[i] * a.re[i] + a.im[i] * a.im[i];
      out->re[i] = a.re[i] / norm;
      out->im[i] = -a.im[i] / norm;
    }
  }
  template <typename C>
  static C One(C a) {
    return C(1) / a;
  }
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2  // what has sizes and angles as vector code

struct Direction : NotZero {
  template <typename R>
  static void Run(const Parts& a, int64_t n, Parts* out) {
    double size[kComplexBlock];
    Sizes(a.re, a.im, n, size);
    for (int64_t i = 0; i < n; ++i) {
      out->re[i] = a.re[i] / size[i];
      out->im[i] = a.im[i] / size[i];
    }
  }
  template <typename C>
  static C One(C a) {
    return a == C(0) ? C(0) : a / std::abs(a);
  }
};

// The square root's conjugate over the size.
struct InverseRoot : NotZero {
  template <typename R>
  static void Run(const Parts& a, int64_t n, Parts* out) {
    double size[kComplexBlock];
    Sizes(a.re, a.im, n, size);
    for (int64_t i = 0; i < n; ++i) {
      const double re = a.re[i], im = a.im[i];
      const double large = std::sqrt(0.5 * (std::abs(re) + size[i])), small = 0.5 * im / large;
      out->re[i] = (re < 0.0 ? std::abs(small) : large) / size[i];
      out->im[i] = -(re < 0.0 ? std::copysign(large, im) : small) / size[i];
    }
  }
  template <typename C>
  static C One(C a) {
    return C(1) / std::sqrt(a);
  }
};

struct Logarithm : NotZero {
  template <typename R>
  static void Run(const Parts& a, int64_t n, Parts* out) {
    static const BinaryTile angle = Tiles().Find("Atan2", DType::kDouble)->vv;
    constexpr int kTerms = sizeof(R) == 4 ? kFloatLogTerms : FloatTraits<double>::kLogTerms;
    double u[kComplexBlock], c[kComplexBlock];
    LogParts(a.re, a.im, n, u, c);
    for (int64_t i = 0; i < n; ++i) out->re[i] = 0.5 * (LogNormal<double, kTerms>(u[i]) + c[i]);
    angle(a.im, a.re, out->im, n);
  }
  template <typename C>
  static C One(C a) {
    return std::log(a);
  }
};

struct TimesLogarithm {
  template <typename R>
  static bool Serves(const Parts& a, const Parts& b, int64_t n) {
    return NotZero::Serves<R>(a, n) && NotZero::Serves<R>(b, n);
  }
  template <typename R>
  static void Run(const Parts& a, const Parts& b, int64_t n, Parts* out) {
    Parts log;
    Logarithm::Run<R>(b, n, &log);
    for (int64_t i = 0; i < n; ++i) {
      out->re[i] = a.re[i] * log.re[i] - a.im[i] * log.im[i];
      out->im[i] = a.re[i] * log.im[i] + a.im[i] * log.re[i];
    }
  }
  template <typename C>
  static C One(C a, C b) {
    if (a == C(0)) return C(0);
    const C log = std::log(b);
    return C(a.real() * log.real() - a.imag() * log.imag(), a.real() * log.imag() + a.imag() * log.real());
  }
};

#endif

template <class Op, typename R>
void ComplexUnary(const void* a_raw, void* out_raw, int64_t n) {
  const R* a = static_cast<const R*>(a_raw);
  R* out = static_cast<R*>(out_raw);
  Parts x, y;
  for (int64_t i = 0; i < n; i += kComplexBlock, a += 2 * kComplexBlock, out += 2 * kComplexBlock) {
    const int64_t k = std::min(kComplexBlock, n - i);
    Split(a, k, &x);
    if (Op::template Serves<R>(x, k)) {
      Op::template Run<R>(x, k, &y);
      Join(y, k, out);
      continue;
    }
    for (int64_t j = 0; j < k; ++j) {
      const std::complex<R> one = Op::One(std::complex<R>(a[2 * j], a[2 * j + 1]));
      out[2 * j] = one.real(), out[2 * j + 1] = one.imag();
    }
  }
}

// Steps are 1, or 0 for an operand that is one element.
template <class Op, typename R, int AStep, int BStep>
void ComplexBinary(const void* a_raw, const void* b_raw, void* out_raw, int64_t n) {
  const R* a = static_cast<const R*>(a_raw);
  const R* b = static_cast<const R*>(b_raw);
  R* out = static_cast<R*>(out_raw);
  if (n == 0) return;
  Parts x, y, z;
  if (AStep == 0) Repeat(static_cast<double>(a[0]), static_cast<double>(a[1]), kComplexBlock, &x);
  if (BStep == 0) Repeat(static_cast<double>(b[0]), static_cast<double>(b[1]), kComplexBlock, &y);
  for (int64_t i = 0; i < n; i += kComplexBlock, out += 2 * kComplexBlock) {
    const int64_t k = std::min(kComplexBlock, n - i);
    if (AStep != 0) Split(a + 2 * i, k, &x);
    if (BStep != 0) Split(b + 2 * i, k, &y);
    if (Op::template Serves<R>(x, y, k)) {
      Op::template Run<R>(x, y, k, &z);
      Join(z, k, out);
      continue;
    }
    for (int64_t j = 0; j < k; ++j) {
      const std::complex<R> one =
          Op::One(std::complex<R>(static_cast<R>(x.re[j]), static_cast<R>(x.im[j])),
                  std::complex<R>(static_cast<R>(y.re[j]), static_cast<R>(y.im[j])));
      out[2 * j] = one.real(), out[2 * j + 1] = one.imag();
    }
  }
}

template <typename R>
void AddFor(TileTable& t) {
  TileFn f;
  f.in = f.out = DTypeOf<std::complex<R>>::value;
  f.cost = 2;
  f.vv = &ComplexBinary<Quotient, R, 1, 1>;
  f.vs = &ComplexBinary<Quotient, R, 1, 0>;
  f.sv = &ComplexBinary<Quotient, R, 0, 1>;
  t.Add("RealDiv", f);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  f.cost = 8;
  f.vv = &ComplexBinary<TimesLogarithm, R, 1, 1>;
  f.vs = &ComplexBinary<TimesLogarithm, R, 1, 0>;
  f.sv = &ComplexBinary<TimesLogarithm, R, 0, 1>;
  t.Add("Xlogy", f);
#endif
  f.vv = f.vs = f.sv = nullptr;
  f.cost = 4;
  f.unary = &ComplexUnary<SquareRoot, R>;
  t.Add("Sqrt", f);
  f.cost = 6;
  f.unary = &ComplexUnary<Exponential, R>;
  t.Add("Exp", f);
  f.cost = 2;
  f.unary = &ComplexUnary<Inverse, R>;
  t.Add("Reciprocal", f);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  f.unary = &ComplexUnary<Direction, R>;
  t.Add("Sign", f);
  f.cost = 5;
  f.unary = &ComplexUnary<InverseRoot, R>;
  t.Add("Rsqrt", f);
  f.cost = 8;
  f.unary = &ComplexUnary<Logarithm, R>;
  t.Add("Log", f);
#endif
}

void AddTiles(TileTable& t) {
  AddFor<float>(t);
  AddFor<double>(t);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {
HWY_EXPORT(AddTiles);
}  // namespace
void AddComplexFunctionTiles(TileTable& t) { HWY_DYNAMIC_DISPATCH(AddTiles)(t); }
}  // namespace millrace
#endif  // HWY_ONCE
