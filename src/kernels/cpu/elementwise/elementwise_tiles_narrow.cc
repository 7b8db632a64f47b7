// SPDX-License-Identifier: Apache-2.0
// Tiles of narrow types that gain from no detour over a wide one: arithmetic and comparison of 8- and 16-bit integers
// and of uint32, which wrap, and arithmetic of halves and bfloat16s, in float and rounded once, or by their bits.
#include <type_traits>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_tiles_narrow.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_tiles-inl.h"
#include "kernels/cpu/engine/narrow_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#define MR_BINARY_OP(Name, R, expr) \
  struct Name {                     \
    template <typename T>           \
    static inline R Do(T a, T b) {  \
      return expr;                  \
    }                               \
  };
MR_BINARY_OP(AddOp, T, static_cast<T>(a + b))
MR_BINARY_OP(SubOp, T, static_cast<T>(a - b))
MR_BINARY_OP(MulOp, T, static_cast<T>(static_cast<unsigned>(a) * static_cast<unsigned>(b)))
MR_BINARY_OP(AndOp, T, static_cast<T>(a& b))
MR_BINARY_OP(OrOp, T, static_cast<T>(a | b))
MR_BINARY_OP(XorOp, T, static_cast<T>(a ^ b))
MR_BINARY_OP(EqualOp, bool, a == b)
MR_BINARY_OP(NotEqualOp, bool, a != b)
MR_BINARY_OP(MaximumOp, T, a > b ? a : b)
MR_BINARY_OP(MinimumOp, T, a < b ? a : b)
MR_BINARY_OP(LessOp, bool, a < b)
MR_BINARY_OP(LessEqualOp, bool, a <= b)
MR_BINARY_OP(GreaterOp, bool, a > b)
MR_BINARY_OP(GreaterEqualOp, bool, a >= b)
#undef MR_BINARY_OP
struct InvertOp {
  template <typename T>
  static inline T Do(T a) {
    return static_cast<T>(~a);
  }
};
struct SquareOp {
  template <typename T>
  static inline T Do(T a) {
    return MulOp::Do(a, a);
  }
};

// Of signed integers; they wrap.
struct NegOp {
  template <typename T>
  static inline T Do(T a) {
    return static_cast<T>(0 - a);
  }
};
struct AbsOp {
  template <typename T>
  static inline T Do(T a) {
    return static_cast<T>(a < 0 ? 0 - a : a);
  }
};
struct SignOp {
  template <typename T>
  static inline T Do(T a) {
    return static_cast<T>((a > 0) - (a < 0));
  }
};

// Of the bits of a half or a bfloat16, whose infinity is `kInfinity`.
template <uint16_t kInfinity>
struct Bits {
#define MR_BITS_OP(Name, R, expr)                                   \
  struct Name {                                                     \
    static inline R Do(uint16_t a) { return static_cast<R>(expr); } \
  };
  MR_BITS_OP(Neg, uint16_t, a ^ 0x8000u)
  MR_BITS_OP(Abs, uint16_t, a & 0x7fffu)
  MR_BITS_OP(IsNan, bool, (a & 0x7fffu) > kInfinity)
  MR_BITS_OP(IsInf, bool, (a & 0x7fffu) == kInfinity)
  MR_BITS_OP(IsFinite, bool, (a & 0x7fffu) < kInfinity)
#undef MR_BITS_OP
};

// What looks at all bits alike, with U unsigned; the signed type of its size shares it.
template <typename U>
void AddForBits(TileTable& t) {
  AddBinary<AddOp, U>(t, "Add");
  AddBinary<SubOp, U>(t, "Sub");
  AddBinary<MulOp, U>(t, "Mul");
  AddBinary<AndOp, U>(t, "BitwiseAnd");
  AddBinary<OrOp, U>(t, "BitwiseOr");
  AddBinary<XorOp, U>(t, "BitwiseXor");
  AddBinary<EqualOp, U, bool>(t, "Equal");
  AddBinary<NotEqualOp, U, bool>(t, "NotEqual");
  AddUnary<InvertOp, U>(t, "Invert");
  AddUnary<SquareOp, U>(t, "Square");
  if constexpr (sizeof(U) < 4) {
    constexpr DType kUnsigned = DTypeOf<U>::value, kSigned = DTypeOf<std::make_signed_t<U>>::value;
    for (const char* op :
         {"Add", "Sub", "Mul", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "NotEqual", "Invert", "Square"}) {
      TileFn f = *t.Find(op, kUnsigned);
      f.in = kSigned;
      if (f.out == kUnsigned) f.out = kSigned;
      t.Add(op, f);
    }
  }
}
template <typename T>
void AddForOrder(TileTable& t) {
  AddBinary<MaximumOp, T>(t, "Maximum");
  AddBinary<MinimumOp, T>(t, "Minimum");
  AddBinary<LessOp, T, bool>(t, "Less");
  AddBinary<LessEqualOp, T, bool>(t, "LessEqual");
  AddBinary<GreaterOp, T, bool>(t, "Greater");
  AddBinary<GreaterEqualOp, T, bool>(t, "GreaterEqual");
}

template <typename T>
void AddForSigns(TileTable& t) {
  AddUnary<NegOp, T>(t, "Neg");
  AddUnary<AbsOp, T>(t, "Abs");
  AddUnary<SignOp, T>(t, "Sign");
}
template <DType kType, uint16_t kInfinity>
void AddForFloatBits(TileTable& t) {
  const auto add = [&t](const char* op, DType out, UnaryTile run) {
    TileFn f;
    f.in = kType;
    f.out = out;
    f.unary = run;
    t.Add(op, f);
  };
  using Of = Bits<kInfinity>;
  add("Neg", kType, &UnaryLoop<typename Of::Neg, uint16_t, uint16_t>::Run);
  add("Abs", kType, &UnaryLoop<typename Of::Abs, uint16_t, uint16_t>::Run);
  add("IsNan", DType::kBool, &UnaryLoop<typename Of::IsNan, uint16_t, bool>::Run);
  add("IsInf", DType::kBool, &UnaryLoop<typename Of::IsInf, uint16_t, bool>::Run);
  add("IsFinite", DType::kBool, &UnaryLoop<typename Of::IsFinite, uint16_t, bool>::Run);
}

#define MR_VECTOR_OP(Name, expr)       \
  struct Name {                        \
    template <class V>                 \
    static HWY_INLINE V Do(V a, V b) { \
      return expr;                     \
    }                                  \
  };
MR_VECTOR_OP(VAdd, hn::Add(a, b))
MR_VECTOR_OP(VSub, hn::Sub(a, b))
MR_VECTOR_OP(VMul, hn::Mul(a, b))
MR_VECTOR_OP(VDiv, hn::Div(a, b))
// NaN in either operand gives NaN.
MR_VECTOR_OP(VMaximum, hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b))
MR_VECTOR_OP(VMinimum, hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b))
#undef MR_VECTOR_OP

// The quotient rounds to T before it loses its fraction.
template <typename T, class V>
HWY_INLINE V NarrowQuotient(V a, V b) {
  const hn::DFromV<V> d;
  T quotient[hn::MaxLanes(d)];
  StoreNarrow(hn::Div(a, b), d, quotient);
  return LoadWide(d, quotient);
}
template <typename T>
struct VFloorDiv {
  template <class V>
  static HWY_INLINE V Do(V a, V b) {
    return hn::Floor(NarrowQuotient<T>(a, b));
  }
};
template <typename T>
struct VTruncateDiv {
  template <class V>
  static HWY_INLINE V Do(V a, V b) {
    return hn::Trunc(NarrowQuotient<T>(a, b));
  }
};

// Steps are 1, or 0 for an operand that is one element.
template <class Op, typename T, int AStep, int BStep>
void NarrowFloats(const void* a_raw, const void* b_raw, void* out_raw, int64_t n) {
  const T* a = static_cast<const T*>(a_raw);
  const T* b = static_cast<const T*>(b_raw);
  T* out = static_cast<T*>(out_raw);
  const WideTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one_a = hn::Set(d, n > 0 ? WidenOne(a[0]) : 0), one_b = hn::Set(d, n > 0 ? WidenOne(b[0]) : 0);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = AStep ? LoadWide(d, a + i) : one_a, y = BStep ? LoadWide(d, b + i) : one_b;
    StoreNarrow(Op::Do(x, y), d, out + i);
  }
  const hn::CappedTag<float, 1> single;
  const auto of_a = hn::Set(single, hn::GetLane(one_a)), of_b = hn::Set(single, hn::GetLane(one_b));
  for (; i < n; ++i) {
    const auto x = AStep ? hn::Set(single, WidenOne(a[i])) : of_a, y = BStep ? hn::Set(single, WidenOne(b[i])) : of_b;
    out[i] = T(hn::GetLane(Op::Do(x, y)));
  }
}
template <class Op, typename T>
void AddNarrowBinary(TileTable& t, const char* name) {
  TileFn f;
  f.in = f.out = DTypeOf<T>::value;
  f.cost = 0.5f;
  f.vv = &NarrowFloats<Op, T, 1, 1>;
  f.vs = &NarrowFloats<Op, T, 1, 0>;
  f.sv = &NarrowFloats<Op, T, 0, 1>;
  t.Add(name, f);
}
template <typename T>
void AddForNarrowFloats(TileTable& t) {
  if constexpr (kConvertsInVectors<T>) {
    AddNarrowBinary<VAdd, T>(t, "Add");
    AddNarrowBinary<VSub, T>(t, "Sub");
    AddNarrowBinary<VMul, T>(t, "Mul");
    AddNarrowBinary<VDiv, T>(t, "RealDiv");
    AddNarrowBinary<VFloorDiv<T>, T>(t, "FloorDiv");
    AddNarrowBinary<VTruncateDiv<T>, T>(t, "TruncateDiv");
    AddNarrowBinary<VMaximum, T>(t, "Maximum");
    AddNarrowBinary<VMinimum, T>(t, "Minimum");
  }
}

void AddTiles(TileTable& t) {
  AddForBits<uint8_t>(t);
  AddForBits<uint16_t>(t);
  AddForBits<uint32_t>(t);
  AddForOrder<uint8_t>(t);
  AddForOrder<int8_t>(t);
  AddForOrder<uint16_t>(t);
  AddForOrder<int16_t>(t);
  AddForOrder<uint32_t>(t);
  AddForSigns<int8_t>(t);
  AddForSigns<int16_t>(t);
  AddForFloatBits<DType::kHalf, 0x7c00>(t);
  AddForFloatBits<DType::kBFloat16, 0x7f80>(t);
  AddForNarrowFloats<BFloat16>(t);
  AddForNarrowFloats<Half>(t);
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
void AddNarrowTiles(TileTable& t) { HWY_DYNAMIC_DISPATCH(AddTiles)(t); }
}  // namespace millrace
#endif  // HWY_ONCE
