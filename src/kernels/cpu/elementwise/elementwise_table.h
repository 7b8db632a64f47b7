// SPDX-License-Identifier: Apache-2.0
// Tile functions: what element-wise ops do to a run of elements.
//
// A tile function computes n elements from contiguous memory; `out` may be the very memory of `a` or `b`, but must not
// overlap them otherwise. It never fails and has no state, so an interpreter over cache-sized tiles can chain them. The
// table holds them by op name and dtype; it is filled once with the best functions for this processor. Ops on dtypes
// that have no function of their own compute in another type (halves in float, small integers in int32, ...): TileOp
// pairs a function with the conversions on both sides.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "kernels/cpu/engine/elementwise_convert.h"
#include "tensor/dtype.h"

namespace millrace {

using UnaryTile = void (*)(const void* a, void* out, int64_t n);
using BinaryTile = void (*)(const void* a, const void* b, void* out, int64_t n);
// Whether all n elements are legal as right operand (a divisor that is not zero, an exponent that is not negative).
using OperandCheck = bool (*)(const void* b, int64_t n);

struct TileFn {
  DType in = DType::kInvalid;
  DType out = DType::kInvalid;
  float cost = 1;             // about nanoseconds per element
  UnaryTile unary = nullptr;  // unary ops, else the next three
  BinaryTile vv = nullptr;    // vector and vector
  BinaryTile vs = nullptr;    // right operand is the one element at b
  BinaryTile sv = nullptr;    // left operand is the one element at a
  OperandCheck check_b = nullptr;
};

class TileTable {
 public:
  void Add(absl::string_view op, TileFn fn) { tiles_[Key(op, fn.in)] = fn; }
  // Null when the op has no function of its own for this dtype.
  const TileFn* Find(absl::string_view op, DType in) const {
    auto it = tiles_.find(Key(op, in));
    return it == tiles_.end() ? nullptr : &it->second;
  }

 private:
  static std::string Key(absl::string_view op, DType t) {
    std::string key(op);
    key.push_back(static_cast<char>(t));
    return key;
  }
  absl::flat_hash_map<std::string, TileFn> tiles_;
};

// The table for this processor, made on first use.
const TileTable& Tiles();

// An op on a dtype: the function and, where its types differ, conversions before and after it.
struct TileOp {
  const TileFn* fn = nullptr;
  DType in = DType::kInvalid;
  DType out = DType::kInvalid;
  uint32_t in_size = 0;
  uint32_t out_size = 0;
  bool direct = true;   // no conversion at all
  ConvertRoute widen;   // in -> fn->in
  ConvertRoute narrow;  // fn->out -> out
  explicit operator bool() const { return fn != nullptr; }
};
// `out` kInvalid: like `in`, or what the function gives when that is no number of the operand's kind (bool).
// Empty when the op cannot be computed on this dtype.
TileOp ResolveTile(absl::string_view op, DType in, DType out = DType::kInvalid);

enum class BinaryForm : uint8_t { kVV, kVS, kSV };

void RunUnaryConverting(const TileOp& op, const void* a, void* out, int64_t n);
void RunBinaryConverting(const TileOp& op, BinaryForm form, const void* a, const void* b, void* out, int64_t n);

inline void RunUnary(const TileOp& op, const void* a, void* out, int64_t n) {
  if (op.direct) return op.fn->unary(a, out, n);
  RunUnaryConverting(op, a, out, n);
}
inline void RunBinary(const TileOp& op, BinaryForm form, const void* a, const void* b, void* out, int64_t n) {
  if (op.direct) {
    const BinaryTile f = form == BinaryForm::kVV ? op.fn->vv : form == BinaryForm::kVS ? op.fn->vs : op.fn->sv;
    return f(a, b, out, n);
  }
  RunBinaryConverting(op, form, a, b, out, n);
}
// Runs the operand check over n elements of the op's own dtype.
bool CheckRightOperand(const TileOp& op, const void* b, int64_t n);

// The parts of the table, one per file.
void AddArithmeticTiles(TileTable& t);         // f32 f64 i32 i64
void AddUnaryTiles(TileTable& t);              // f32 f64 i32 i64: no transcendental functions
void AddFloatFunctionTiles(TileTable& t);      // f32 exp, log, tanh, sin, ... and activations
void AddPiecewiseFunctionTiles(TileTable& t);  // f32 erf, asin, atan2, ... for AVX-512, instead of those
void AddDoubleFunctionTiles(TileTable& t);     // the same in f64
void AddScalarFunctionTiles(TileTable& t);     // functions of the C library, f32 and f64
void AddIntegerTiles(TileTable& t);            // division, modulo, powers, shifts, bits counted, u64
void AddNarrowTiles(TileTable& t);             // i8 i16 u8 u16 u32 f16 bf16: arithmetic and comparison
void AddComplexTiles(TileTable& t);
void AddComplexFunctionTiles(TileTable& t);  // those that are vector code
void AddBoolTiles(TileTable& t);
void AddObjectTiles(TileTable& t);            // string
void AddSpecialTiles(TileTable& t);           // special functions
void AddSpecialFunctionTiles(TileTable& t);   // those of f32 as vector code
void AddBesselFunctionTiles(TileTable& t);    // of f32
void AddQuantileFunctionTiles(TileTable& t);  // of f32

}  // namespace millrace
