// SPDX-License-Identifier: Apache-2.0
// f64 tiles of transcendental functions.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_tiles_double_functions.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

void AddTiles(TileTable& t) {
  AddUnary<ExpOp, double>(t, "Exp", 2);
  AddUnary<Expm1Op, double>(t, "Expm1", 2);
  AddUnary<LogOp, double>(t, "Log", 3);
  AddUnary<Log1pOp, double>(t, "Log1p", 4);
  AddUnary<TanhOp, double>(t, "Tanh", 4);
  AddUnary<SigmoidOp, double>(t, "Sigmoid", 3);
  AddUnary<SoftplusOp, double>(t, "Softplus", 6);
  AddUnary<EluOp, double>(t, "Elu", 3);
  AddUnary<SeluOp, double>(t, "Selu", 3);
  AddBinary<SoftplusGradOp, double>(t, "SoftplusGrad", 3);
  AddBinary<XlogyOp, double>(t, "Xlogy", 3);
  TileFn f;
  f.in = f.out = DType::kDouble;
  f.cost = 4;
  f.unary = &Trigonometric<SinFn, double>;
  t.Add("Sin", f);
  f.unary = &Trigonometric<CosFn, double>;
  t.Add("Cos", f);
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
void AddDoubleFunctionTiles(TileTable& t) { HWY_DYNAMIC_DISPATCH(AddTiles)(t); }
}  // namespace millrace
#endif  // HWY_ONCE
