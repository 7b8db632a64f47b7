// SPDX-License-Identifier: Apache-2.0
// Tiles on bool: any byte but 0 is true.
#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_tiles_bool.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

#define MR_BOOL_OP(Name, expr)                                   \
  struct Name {                                                  \
    static inline bool Do(uint8_t a, uint8_t b) { return expr; } \
  };
MR_BOOL_OP(AndOp, (a != 0) & (b != 0))
MR_BOOL_OP(OrOp, (a | b) != 0)
MR_BOOL_OP(SameOp, (a != 0) == (b != 0))
MR_BOOL_OP(DifferentOp, (a != 0) != (b != 0))
#undef MR_BOOL_OP
struct NotOp {
  static inline bool Do(uint8_t a) { return a == 0; }
};

void Not(const void* a, void* out, int64_t n) { UnaryLoop<NotOp, uint8_t, bool>::Run(a, out, n); }

template <class Op>
void AddBool(TileTable& t, const char* name) {
  using L = BinaryLoop<Op, uint8_t, bool>;
  TileFn fn;
  fn.in = fn.out = DType::kBool;
  fn.vv = &L::VV;
  fn.vs = &L::VS;
  fn.sv = &L::SV;
  t.Add(name, fn);
}

void AddTiles(TileTable& t) {
  AddBool<AndOp>(t, "LogicalAnd");
  AddBool<OrOp>(t, "LogicalOr");
  AddBool<SameOp>(t, "Equal");
  AddBool<DifferentOp>(t, "NotEqual");
  TileFn fn;
  fn.in = fn.out = DType::kBool;
  fn.unary = &Not;
  t.Add("LogicalNot", fn);
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
void AddBoolTiles(TileTable& t) { HWY_DYNAMIC_DISPATCH(AddTiles)(t); }
}  // namespace millrace
#endif  // HWY_ONCE
