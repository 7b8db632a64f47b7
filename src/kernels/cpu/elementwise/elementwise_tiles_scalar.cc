// SPDX-License-Identifier: Apache-2.0
// Tiles that call the C library, or a series of our own, for each element.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/elementwise/elementwise_special.h"
#include "kernels/cpu/elementwise/elementwise_tiles-inl.h"

namespace millrace {
namespace HWY_NAMESPACE {
namespace {

#define MR_UNARY_OP(Name, expr) \
  struct Name {                 \
    template <typename T>       \
    static inline T Do(T a) {   \
      return expr;              \
    }                           \
  };
MR_UNARY_OP(AcosOp, std::acos(a))
MR_UNARY_OP(AcoshOp, std::acosh(a))
MR_UNARY_OP(AsinOp, std::asin(a))
MR_UNARY_OP(AsinhOp, std::asinh(a))
MR_UNARY_OP(AtanOp, std::atan(a))
MR_UNARY_OP(AtanhOp, std::atanh(a))
MR_UNARY_OP(CoshOp, std::cosh(a))
MR_UNARY_OP(SinhOp, std::sinh(a))
MR_UNARY_OP(TanOp, std::tan(a))
MR_UNARY_OP(ErfOp, std::erf(a))
MR_UNARY_OP(ErfcOp, std::erfc(a))
MR_UNARY_OP(LgammaOp, LogGamma(a))
MR_UNARY_OP(DigammaOp, Digamma(a))
#undef MR_UNARY_OP

#define MR_BINARY_OP(Name, expr)   \
  struct Name {                    \
    template <typename T>          \
    static inline T Do(T a, T b) { \
      return expr;                 \
    }                              \
  };
MR_BINARY_OP(Atan2Op, std::atan2(a, b))
MR_BINARY_OP(PowOp, std::pow(a, b))
MR_BINARY_OP(ModOp, std::fmod(a, b))
MR_BINARY_OP(ZetaOp, Zeta(a, b))
MR_BINARY_OP(PolygammaOp, Polygamma(a, b))
#undef MR_BINARY_OP
struct FloorModOp {
  template <typename T>
  static inline T Do(T a, T b) {
    const T m = std::fmod(a, b);
    return m != T(0) && (b < T(0)) != (m < T(0)) ? m + b : m;
  }
};

// On halves the quotient rounds to a half before it loses its fraction.
struct HalfFloorDivOp {
  template <typename H>
  static inline H Do(H a, H b) {
    return H(std::floor(static_cast<float>(H(static_cast<float>(a) / static_cast<float>(b)))));
  }
};
struct HalfTruncateDivOp {
  template <typename H>
  static inline H Do(H a, H b) {
    return H(std::trunc(static_cast<float>(H(static_cast<float>(a) / static_cast<float>(b)))));
  }
};

template <typename H>
void AddForHalf(TileTable& t) {
  AddBinary<HalfFloorDivOp, H>(t, "FloorDiv", 4);
  AddBinary<HalfTruncateDivOp, H>(t, "TruncateDiv", 4);
}

}  // namespace
}  // namespace HWY_NAMESPACE

void AddScalarFunctionTiles(TileTable& t) {
  using namespace HWY_NAMESPACE;  // NOLINT
  AddForHalf<Half>(t);
  AddForHalf<BFloat16>(t);
  // Those that float has as vector code, or computes in double.
  AddUnary<AcosOp, double>(t, "Acos", 8);
  AddUnary<AcoshOp, double>(t, "Acosh", 10);
  AddUnary<AsinOp, double>(t, "Asin", 8);
  AddUnary<AsinhOp, double>(t, "Asinh", 12);
  AddUnary<AtanOp, double>(t, "Atan", 8);
  AddUnary<AtanhOp, double>(t, "Atanh", 12);
  AddUnary<CoshOp, double>(t, "Cosh", 8);
  AddUnary<SinhOp, double>(t, "Sinh", 8);
  AddUnary<ErfcOp, double>(t, "Erfc", 12);
  AddBinary<Atan2Op, double>(t, "Atan2", 15);
  AddBinary<ModOp, double>(t, "Mod", 10);
  AddBinary<FloorModOp, double>(t, "FloorMod", 10);
  AddUnary<TanOp, double>(t, "Tan", 15);
  AddUnary<ErfOp, double>(t, "Erf", 12);
  AddUnary<LgammaOp, double>(t, "Lgamma", 20);
  AddUnary<DigammaOp, double>(t, "Digamma", 40);
  AddBinary<PowOp, double>(t, "Pow", 20);
  AddBinary<ZetaOp, double>(t, "Zeta", 300);
  AddBinary<PolygammaOp, double>(t, "Polygamma", 300);
}

}  // namespace millrace
