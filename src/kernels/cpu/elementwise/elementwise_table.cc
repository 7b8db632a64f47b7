// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/elementwise_table.h"

#include <algorithm>

#include "kernels/cpu/elementwise/elementwise_twofold.h"

namespace millrace {
namespace {

constexpr size_t kMaxElement = 16;

// The type to compute in when `in` has no function of its own: the first of these that the op has.
DType WiderType(DType t) {
  switch (t) {
    case DType::kHalf:
    case DType::kBFloat16: return DType::kFloat;
    case DType::kInt8:
    case DType::kInt16:
    case DType::kUInt8:
    case DType::kUInt16: return DType::kInt32;
    case DType::kQInt8:
    case DType::kQInt16:
    case DType::kQUInt8:
    case DType::kQUInt16:
    case DType::kQInt32: return DType::kInt32;
    case DType::kInt32:
    case DType::kUInt32: return DType::kInt64;
    case DType::kFloat: return DType::kDouble;
    case DType::kComplex64: return DType::kComplex128;
    default: return DType::kInvalid;
  }
}

// Other names of the same functions, on all dtypes.
struct Alias {
  const char* name;
  const char* of;
};
constexpr Alias kAliases[] = {
    {"AddV2", "Add"},       {"Inv", "Reciprocal"}, {"InvGrad", "ReciprocalGrad"},
    {"TruncateMod", "Mod"}, {"Round", "Rint"},     {"Div", "RealDiv"},
};

void AddAliases(TileTable& t) {
  for (const Alias& alias : kAliases) {
    for (DType type : AllTypes()) {
      if (const TileFn* fn = t.Find(alias.of, type)) t.Add(alias.name, TileFn(*fn));
    }
  }
  // Div truncates integers.
  for (DType type : {DType::kInt32, DType::kInt64, DType::kUInt64}) {
    if (const TileFn* fn = t.Find("TruncateDiv", type)) t.Add("Div", TileFn(*fn));
  }
}

}  // namespace

const TileTable& Tiles() {
  static const TileTable* const table = [] {
    auto* t = new TileTable;
    AddScalarFunctionTiles(*t);
    AddArithmeticTiles(*t);
    AddUnaryTiles(*t);
    AddFloatFunctionTiles(*t);
    AddPiecewiseFunctionTiles(*t);
    AddDoubleFunctionTiles(*t);
    AddTwofoldTiles(*t);
    AddIntegerTiles(*t);
    AddNarrowTiles(*t);
    AddComplexTiles(*t);
    AddComplexFunctionTiles(*t);
    AddBoolTiles(*t);
    AddObjectTiles(*t);
    AddSpecialTiles(*t);
    AddSpecialFunctionTiles(*t);
    AddBesselFunctionTiles(*t);
    AddQuantileFunctionTiles(*t);
    AddAliases(*t);
    return t;
  }();
  return *table;
}

TileOp ResolveTile(absl::string_view op, DType in, DType out) {
  const TileTable& tiles = Tiles();
  DType compute = in;
  const TileFn* fn = tiles.Find(op, compute);
  while (fn == nullptr) {
    compute = WiderType(compute);
    if (compute == DType::kInvalid) return {};
    fn = tiles.Find(op, compute);
  }
  TileOp r;
  r.in = in;
  if (out == DType::kInvalid) out = fn->out == fn->in ? in : fn->out;
  r.out = out;
  r.in_size = static_cast<uint32_t>(DTypeSize(in));
  r.out_size = static_cast<uint32_t>(DTypeSize(out));
  r.direct = fn->in == in && fn->out == out;
  if (!r.direct) {
    r.widen = FindConvert(in, fn->in);
    r.narrow = FindConvert(fn->out, out);
    if (!r.widen.found || !r.narrow.found) return {};
  }
  r.fn = fn;
  return r;
}

void RunUnaryConverting(const TileOp& op, const void* a, void* out, int64_t n) {
  alignas(64) char x[kConvertTile * kMaxElement];
  alignas(64) char y[kConvertTile * kMaxElement];
  const char* pa = static_cast<const char*>(a);
  char* po = static_cast<char*>(out);
  for (int64_t i = 0; i < n; i += kConvertTile) {
    const int64_t k = std::min(kConvertTile, n - i);
    const void* in = pa;
    if (op.widen.steps > 0) op.widen.Run(pa, x, k), in = x;
    if (op.narrow.steps > 0) {
      op.fn->unary(in, y, k);
      op.narrow.Run(y, po, k);
    } else {
      op.fn->unary(in, po, k);
    }
    pa += k * op.in_size;
    po += k * op.out_size;
  }
}

void RunBinaryConverting(const TileOp& op, BinaryForm form, const void* a, const void* b, void* out, int64_t n) {
  alignas(64) char x[kConvertTile * kMaxElement];
  alignas(64) char y[kConvertTile * kMaxElement];
  alignas(64) char z[kConvertTile * kMaxElement];
  const TileFn& fn = *op.fn;
  const BinaryTile f = form == BinaryForm::kVV ? fn.vv : form == BinaryForm::kVS ? fn.vs : fn.sv;
  const char* pa = static_cast<const char*>(a);
  const char* pb = static_cast<const char*>(b);
  char* po = static_cast<char*>(out);
  const bool move_a = form != BinaryForm::kSV;
  const bool move_b = form != BinaryForm::kVS;
  for (int64_t i = 0; i < n; i += kConvertTile) {
    const int64_t k = std::min(kConvertTile, n - i);
    const void* qa = pa;
    const void* qb = pb;
    if (op.widen.steps > 0) {
      if (move_a || i == 0) op.widen.Run(pa, x, move_a ? k : 1);
      if (move_b || i == 0) op.widen.Run(pb, y, move_b ? k : 1);
      qa = x, qb = y;
    }
    if (op.narrow.steps > 0) {
      f(qa, qb, z, k);
      op.narrow.Run(z, po, k);
    } else {
      f(qa, qb, po, k);
    }
    if (move_a) pa += k * op.in_size;
    if (move_b) pb += k * op.in_size;
    po += k * op.out_size;
  }
}

bool CheckRightOperand(const TileOp& op, const void* b, int64_t n) {
  if (op.widen.steps == 0) return op.fn->check_b(b, n);
  alignas(64) char x[kConvertTile * kMaxElement];
  const char* pb = static_cast<const char*>(b);
  for (int64_t i = 0; i < n; i += kConvertTile) {
    const int64_t k = std::min(kConvertTile, n - i);
    op.widen.Run(pb, x, k);
    if (!op.fn->check_b(x, k)) return false;
    pb += k * op.in_size;
  }
  return true;
}

}  // namespace millrace
