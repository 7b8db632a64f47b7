// SPDX-License-Identifier: Apache-2.0
// Tiles of special functions and of neighbouring floats.
#include <cmath>

#include "kernels/cpu/elementwise/elementwise_special.h"
#include "kernels/cpu/elementwise/elementwise_tiles-inl.h"

namespace millrace {
namespace HWY_NAMESPACE {
namespace {

#define MR_UNARY_OP(Name, expr)                        \
  struct Name {                                        \
    static inline double Do(double a) { return expr; } \
  };
MR_UNARY_OP(BesselI0eOp, BesselI0Scaled(a))
MR_UNARY_OP(BesselI1eOp, BesselI1Scaled(a))
MR_UNARY_OP(BesselI0Op, BesselI0(a))
MR_UNARY_OP(BesselI1Op, BesselI1(a))
MR_UNARY_OP(BesselJ0Op, BesselJ0(a))
MR_UNARY_OP(BesselJ1Op, BesselJ1(a))
MR_UNARY_OP(BesselK0Op, BesselK0(a))
MR_UNARY_OP(BesselK1Op, BesselK1(a))
MR_UNARY_OP(BesselK0eOp, BesselK0Scaled(a))
MR_UNARY_OP(BesselK1eOp, BesselK1Scaled(a))
MR_UNARY_OP(BesselY0Op, BesselY0(a))
MR_UNARY_OP(BesselY1Op, BesselY1(a))
MR_UNARY_OP(ErfinvOp, InverseErf(a))
MR_UNARY_OP(NdtriOp, NormalQuantile(a))
#undef MR_UNARY_OP

#define MR_BINARY_OP(Name, expr)                                 \
  struct Name {                                                  \
    static inline double Do(double a, double b) { return expr; } \
  };
MR_BINARY_OP(IgammaOp, IncompleteGammaP(a, b))
MR_BINARY_OP(IgammacOp, IncompleteGammaQ(a, b))
MR_BINARY_OP(IgammaGradAOp, IncompleteGammaPByA(a, b))
MR_BINARY_OP(RandomGammaGradOp, GammaSampleByA(a, b))
MR_BINARY_OP(Xlog1pyOp, a == 0 ? 0.0 : a * std::log1p(b))
#undef MR_BINARY_OP

struct NextAfterOp {
  template <typename T>
  static inline T Do(T a, T b) {
    return std::nextafter(a, b);
  }
};

// Truncated towards zero; what has no angle is the smallest number, as in conversions.
struct IntegerAcosOp {
  template <typename T>
  static inline T Do(T a) {
    return a == 1 || a == 0 || a == -1
               ? static_cast<T>(std::acos(static_cast<double>(a)))
               : std::numeric_limits<T>::min();
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE

void AddSpecialTiles(TileTable& t) {
  using namespace HWY_NAMESPACE;  // NOLINT
  AddUnary<BesselI0eOp, double>(t, "BesselI0e", 100);
  AddUnary<BesselI1eOp, double>(t, "BesselI1e", 100);
  AddUnary<BesselI0Op, double>(t, "BesselI0", 100);
  AddUnary<BesselI1Op, double>(t, "BesselI1", 100);
  AddUnary<BesselJ0Op, double>(t, "BesselJ0", 100);
  AddUnary<BesselJ1Op, double>(t, "BesselJ1", 100);
  AddUnary<BesselK0Op, double>(t, "BesselK0", 200);
  AddUnary<BesselK1Op, double>(t, "BesselK1", 200);
  AddUnary<BesselK0eOp, double>(t, "BesselK0e", 200);
  AddUnary<BesselK1eOp, double>(t, "BesselK1e", 200);
  AddUnary<BesselY0Op, double>(t, "BesselY0", 100);
  AddUnary<BesselY1Op, double>(t, "BesselY1", 100);
  AddUnary<ErfinvOp, double>(t, "Erfinv", 100);
  AddUnary<NdtriOp, double>(t, "Ndtri", 100);
  AddBinary<IgammaOp, double>(t, "Igamma", 300);
  AddBinary<IgammacOp, double>(t, "Igammac", 300);
  AddBinary<IgammaGradAOp, double>(t, "IgammaGradA", 600);
  AddBinary<RandomGammaGradOp, double>(t, "RandomGammaGrad", 600);
  AddBinary<Xlog1pyOp, double>(t, "Xlog1py", 20);
  AddBinary<NextAfterOp, float>(t, "NextAfter", 5);
  AddBinary<NextAfterOp, double>(t, "NextAfter", 5);
  AddUnary<IntegerAcosOp, int32_t>(t, "Acos", 3);
  AddUnary<IntegerAcosOp, int64_t>(t, "Acos", 3);
}

}  // namespace millrace
